package memory

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/qtype-dev/qtype/memory/internal/change"
	"github.com/qtype-dev/qtype/memory/internal/window"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/spec/chat"
)

// Transcript is a session as data; package memory/transcript reads and writes it.
type Transcript struct {
	Entries   []store.Entry     // in order; Seq and Tokens are ignored, and of the statuses only Failed counts
	Events    []store.Event     // in order; none if the entries have no turns
	Variables []change.Variable // the one that was set last at the end

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

// Import creates a session with the content of a transcript, in one change. The
// window follows from the events, so that it is that of the session that was
// exported. Entries without turns are appended instead: each user message begins a
// turn, and the policy applies. Tokens are counted again. Import returns a
// *SessionExistsError if the session exists, and a *TranscriptError for an invalid
// transcript: among others for a tool call without result, and the reverse.
func (m *Memory) Import(ctx context.Context, session string, in Transcript) error {
	in.Variables = slices.Clone(in.Variables)
	err := in.check(m.id)
	if err == nil {
		in.Values, err = m.importedValues(in.Values)
	}
	if err != nil {
		return err
	}
	return m.create(ctx, session, func(p window.Policy, n *change.Transition) error {
		scratch := m.clone()
		scratch.store = NewInProcess()
		err := (&importing{scratch, p, scratch.key(session), in}).prepare(ctx, n)
		if err == nil && len(in.Variables) > 0 {
			n.WriteVariables(in.Variables, nil)
		}
		if err == nil {
			for name, value := range in.Values {
				n.SetValue(name, value)
			}
		}
		return err
	})
}

// importing is an import of a checked transcript, by way of a memory without other sessions.
type importing struct {
	scratch    *Memory
	policy     window.Policy
	key        store.Key // of the session
	transcript Transcript
}

// prepare makes t the transition that creates the session.
func (i *importing) prepare(ctx context.Context, t *change.Transition) error {
	switch in := i.transcript; {
	case len(in.Entries) == 0:
		i.empty(t)
		return nil
	case in.Entries[0].Turn == 0:
		return i.bare(ctx, t)
	}
	return i.whole(ctx, t)
}

// ContextValues returns the values of a session, as JSON, that its context has in addition to the
// messages and that a transcript has too, such as facts.
func (m *Memory) ContextValues(ctx context.Context, session string) (map[string][]byte, error) {
	portable, ok := m.context.(PortableContext)
	if !ok {
		return nil, nil
	}
	head, err := m.Head(ctx, session)
	if err != nil {
		return nil, err
	}
	return portable.Portable(head), nil
}

// importedValues checks the values of a transcript.
func (m *Memory) importedValues(values map[string][]byte) (map[string][]byte, error) {
	portable, ok := m.context.(PortableContext)
	checked := map[string][]byte{}
	for i, name := range slices.Sorted(maps.Keys(values)) {
		err := fmt.Errorf("the memory has no context block for %s", name)
		if ok {
			checked[name], err = portable.Imported(name, values[name])
		}
		if err != nil {
			return nil, &TranscriptError{Part: "value", Index: i, Problem: err.Error()}
		}
	}
	return checked, nil
}

// empty creates a session without messages: what several sessions share, or what was set
// before the first message.
func (i *importing) empty(t *change.Transition) {
	t.Begin(i.scratch.newView(), i.scratch.moment())
	t.Next.State.LastSaid = t.Now
	t.Change.Events = i.transcript.Events
}

// bare appends the entries to a scratch memory, and copies its session.
func (i *importing) bare(ctx context.Context, t *change.Transition) error {
	in, scratch, key := i.transcript, i.scratch, i.key
	var round []chat.Message
	for at, e := range in.Entries {
		if e.Message.Role == chat.User && len(round) > 0 {
			if err := scratch.Append(ctx, key.Session, round...); err != nil {
				return err
			}
			round = nil
		}
		round = append(round, in.Entries[at].Message)
	}
	if err := scratch.Append(ctx, key.Session, round...); err != nil {
		return err
	}
	return scratch.copyTo(ctx, i.policy, t, key.Session, 0)
}

// whole puts the entries into a scratch memory, and restores the window there.
func (i *importing) whole(ctx context.Context, t *change.Transition) error {
	in, scratch := i.transcript, i.scratch
	base := scratch.newView()
	st := &base.State
	t.Begin(base, scratch.moment())
	for at, e := range in.Entries {
		entry := window.NewEntry(scratch.counter, e.Message)
		entry.Seq, entry.Turn, entry.Time = int64(at+1), e.Turn, e.Time
		if entry.Time.IsZero() {
			entry.Time = t.Now
		}
		if e.Status == store.Failed {
			entry.Status = store.Failed
		}
		t.Change.Entries = append(t.Change.Entries, entry)
		st.Last, st.Turns, st.LastSaid = entry.Seq, e.Turn, t.Now
	}
	l := &change.Timeline{Returned: true}
	for _, e := range in.Events {
		if e.Kind != store.EventSummary { // belongs to a turn that may be yet to come
			st.Turns = max(st.Turns, e.Turn)
		}
		l.Add(e, e.Turn)
	}
	if err := scratch.store.Apply(ctx, i.key, store.Change{Next: 1, State: *st, Entries: t.Change.Entries}); err != nil {
		return err
	}
	past, err := scratch.restore(ctx, i.policy, base, l, i.key, st.Last, st.Last)
	if err != nil {
		return err
	}
	if _, problem := unbalanced(past.Entries); problem != "" {
		return &TranscriptError{Part: "event", Index: -1, Problem: "of the events, some divide a tool call from its results"}
	}
	past.State.Flushes = l.Flushes
	t.Next = *past
	t.Change.Events = in.Events
	t.Settle(i.policy)
	return nil
}

// check returns a *TranscriptError for an invalid transcript.
func (in *Transcript) check(memory string) error {
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
	if i, problem := unbalanced(live); problem != "" {
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
	l := &change.Timeline{}
	for _, e := range in.Events {
		l.Add(e, e.Turn)
	}
	return l.Hidden()
}

// checkEvents checks what the window follows from.
func (in *Transcript) checkEvents() error {
	kinds := []store.EventKind{store.EventFlush, store.EventFailed, store.EventSet, store.EventRewind, store.EventDelete, store.EventEdit, store.EventPin, store.EventUnpin, store.EventSent, store.EventSummary, store.EventVariables}
	texts := map[int64]bool{}
	for i, e := range in.Events {
		problem := ""
		switch {
		case !slices.Contains(kinds, e.Kind):
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
	return editProblem(&old.Message, &text.Message)
}

// checkVariables checks the variables, and makes their values compact.
func (in *Transcript) checkVariables(memory string) error {
	for i, v := range in.Variables {
		checked, err := change.NewVariable(memory, v.Name, v.Value)
		if err == nil && (len(in.Variables) > change.MaxVariables || v.Turn < 0 || v.Turn > maxImported) {
			err = change.TooManyVariables(memory, v.Name)
		}
		if err == nil && (checked.Value == nil || slices.ContainsFunc(in.Variables[:i], func(o change.Variable) bool { return o.Name == v.Name })) {
			err = &change.VariableError{Memory: memory, Name: v.Name, Problem: "it has no value, or two"}
		}
		if err != nil {
			return &TranscriptError{Part: "variable", Index: i, Problem: err.Error()}
		}
		in.Variables[i].Value = checked.Value
	}
	return nil
}

// unbalanced returns the index of the first tool call without a result that
// directly follows it, or of a result without its call, and what is wrong; the
// problem is empty if there is none.
func unbalanced(entries []*store.Entry) (index int, problem string) {
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
			open, call = slices.Clone(e.Message.ToolCalls), i
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
