package change

import (
	"fmt"
	"slices"

	"github.com/qtype-dev/qtype/internal/memory/window"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/spec/chat"
)

// Transcript is a session as data; package memory/transcript reads and writes it.
type Transcript struct {
	Entries   []store.Entry // in order; Seq and Tokens are ignored, and of the statuses only Failed counts
	Events    []store.Event // in order; none if the entries have no turns
	Variables []Variable    // the one that was set last at the end

	Values map[string][]byte // what ContextValues returned, such as facts
}

// TranscriptError reports why a transcript cannot be imported.
type TranscriptError struct {
	Part    string // entry, event, variable or value
	Index   int    // its index in the Transcript, of values in the order of their names; -1 if the error concerns them all
	Problem string // what is wrong
}

// Error names the part, counted from 1.
func (e *TranscriptError) Error() string {
	if e.Index < 0 {
		return "transcript: " + e.Problem
	}
	return fmt.Sprintf("transcript, %s %d: %s", e.Part, e.Index+1, e.Problem)
}

// Check returns a *TranscriptError for an invalid transcript.
func (in *Transcript) Check(memory string) error {
	if len(in.Entries) == 0 && len(in.Variables) == 0 && len(in.Values) == 0 {
		return &TranscriptError{Index: -1, Problem: "it has no messages"}
	}
	ids := map[string]bool{}
	var live []*store.Entry
	var indexes []int
	hidden := in.hidden()
	for i := range in.Entries {
		e := &in.Entries[i]
		if problem := in.entryProblem(i, ids); problem != "" {
			return &TranscriptError{Part: "entry", Index: i, Problem: problem}
		}
		if e.Status == store.Failed {
			continue
		}
		ids[e.Message.ID] = e.Message.ID != ""
		if !hidden.Has(int64(i + 1)) {
			live, indexes = append(live, e), append(indexes, i)
		}
	}
	if i, problem := Unbalanced(live); problem != "" {
		return &TranscriptError{Part: "entry", Index: indexes[i], Problem: problem}
	}
	if err := in.checkEvents(); err != nil {
		return err
	}
	return in.checkVariables(memory)
}

// entryProblem returns what is wrong with an entry, empty for nothing; ids has those of the
// messages before it.
func (in *Transcript) entryProblem(i int, ids map[string]bool) string {
	e := &in.Entries[i]
	switch err := window.CheckMessages([]chat.Message{e.Message}); {
	case err != nil:
		return err.Error()
	case e.Turn < 0 || e.Turn > maxImported:
		return fmt.Sprintf("invalid turn %d", e.Turn)
	case i > 0 && (e.Turn == 0) != (in.Entries[0].Turn == 0):
		return "either all messages have a turn, or none"
	case i > 0 && e.Turn < in.Entries[i-1].Turn:
		return fmt.Sprintf("turn %d follows turn %d", e.Turn, in.Entries[i-1].Turn)
	case e.Turn == 0 && (e.Status == store.Failed || len(in.Events) > 0):
		return "without turns there are no statuses and no events"
	case e.Status != store.Failed && ids[e.Message.ID]:
		return fmt.Sprintf("an earlier message has the id %q", e.Message.ID)
	}
	return ""
}

// maxImported bounds turns and positions of a transcript, so that numbers do not overflow.
const maxImported = 1 << 40

// hidden returns the positions that have no place in the conversation.
func (in *Transcript) hidden() store.Ranges {
	l := &Timeline{}
	for _, e := range in.Events {
		l.Add(e, e.Turn)
	}
	return l.Hidden()
}

// checkEvents checks what the window follows from.
func (in *Transcript) checkEvents() error {
	texts := map[int64]bool{}
	for i, e := range in.Events {
		problem := ""
		switch {
		case !slices.Contains(store.EventKinds(), e.Kind):
			problem = fmt.Sprintf("unknown kind %q", e.Kind)
		case e.Turn < 0 || e.Turn > maxImported || e.Rewound < 0:
			problem = fmt.Sprintf("invalid turn %d", e.Turn)
		case i > 0 && e.Turn < in.Events[i-1].Turn:
			problem = fmt.Sprintf("turn %d follows turn %d", e.Turn, in.Events[i-1].Turn)
		case e.From < 0 || e.From > e.To || e.To > int64(len(in.Entries)) || e.From == 0 && e.To > 0:
			problem = fmt.Sprintf("there are no messages %d to %d", e.From, e.To)
		case (e.Kind == store.EventDelete || e.Kind == store.EventPin || e.Kind == store.EventUnpin) && e.From == 0:
			problem = "it names no messages"
		case e.Kind == store.EventEdit:
			problem = in.editProblem(e, texts)
			texts[e.By] = true
		case e.By != 0:
			problem = `"by" is for edits`
		}
		if problem != "" {
			return &TranscriptError{Part: "event", Index: i, Problem: problem}
		}
	}
	return nil
}

// editProblem returns what is wrong with an edit, empty for nothing; texts has the
// positions of the texts of earlier ones.
func (in *Transcript) editProblem(e store.Event, texts map[int64]bool) string {
	if e.From == 0 || e.From != e.To || e.By <= e.From || e.By > int64(len(in.Entries)) {
		return fmt.Sprintf("there is no message %d with the new text %d", e.From, e.By)
	}
	old, text := &in.Entries[e.From-1], &in.Entries[e.By-1]
	if old.Status == store.Failed || text.Status == store.Failed || text.Turn != e.Turn || texts[e.By] || texts[e.From] {
		return fmt.Sprintf("message %d is not the new text of message %d", e.By, e.From)
	}
	return EditProblem(&old.Message, &text.Message)
}

// checkVariables checks the variables, and makes their values compact.
func (in *Transcript) checkVariables(memory string) error {
	for i, v := range in.Variables {
		checked, err := NewVariable(memory, v.Name, v.Value)
		if err == nil && (len(in.Variables) > MaxVariables || v.Turn < 0 || v.Turn > maxImported) {
			err = TooManyVariables(memory, v.Name)
		}
		if err == nil && (checked.Value == nil || slices.ContainsFunc(in.Variables[:i], func(o Variable) bool { return o.Name == v.Name })) {
			err = &VariableError{Memory: memory, Name: v.Name, Problem: "it has no value, or two"}
		}
		if err != nil {
			return &TranscriptError{Part: "variable", Index: i, Problem: err.Error()}
		}
		in.Variables[i].Value = checked.Value
	}
	return nil
}

// Unbalanced returns the index of the first tool call without a result that
// directly follows it, or of a result without its call, and what is wrong; the
// problem is empty if there is none.
func Unbalanced(entries []*store.Entry) (index int, problem string) {
	var open []chat.ToolCall
	call := 0
	for i, e := range entries {
		if window.IsSystem(e) {
			continue
		}
		if !window.IsResult(e) {
			if len(open) > 0 {
				break
			}
			open, call = e.Message.Calls(), i
			continue
		}
		found := slices.IndexFunc(open, func(c chat.ToolCall) bool {
			return c.ID == e.Message.ToolCallID || e.Message.ToolCallID == "" && c.Name == e.Message.Name
		})
		if found < 0 {
			return i, fmt.Sprintf("the tool result for call %q does not follow its call", e.Message.ToolCallID)
		}
		open = slices.Delete(open, found, found+1)
	}
	if len(open) > 0 {
		return call, fmt.Sprintf("the tool call %q (%s) has no result", open[0].ID, open[0].Name)
	}
	return 0, ""
}

// EditProblem returns why a message cannot take the place of another one, empty if it can.
func EditProblem(old, msg *chat.Message) string {
	if old.Role != msg.Role {
		return fmt.Sprintf("its role is %s, an edit cannot make it %s", old.Role, msg.Role)
	}
	if old.ToolCallID != msg.ToolCallID {
		return fmt.Sprintf("it is the result of the tool call %q, an edit cannot make it that of %q", old.ToolCallID, msg.ToolCallID)
	}
	same := slices.EqualFunc(old.Calls(), msg.Calls(), func(a, b chat.ToolCall) bool { return a.ID == b.ID && a.Name == b.Name })
	if !same {
		return "an edit must keep the ids and the names of its tool calls, which have results"
	}
	return ""
}
