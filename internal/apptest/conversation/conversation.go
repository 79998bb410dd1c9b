// Package conversation makes tests of stored conversations: the turns with their inputs, and mocks that answer as
// the models and tools did.
package conversation

import (
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/qtype-dev/qtype/internal/appstate"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/spec/chat"
)

// Turn is a question of a conversation and what followed.
type Turn struct {
	Number int64    // in the conversation, from 1
	Input  string   // the question
	Rounds []*Round // the answers of the model, in order
	Failed bool     // it ended with an error
}

// Round is an answer of a model.
type Round struct {
	Text    string
	Calls   []chat.ToolCall
	Results map[string]string // what tools answered, by the ids of the calls
}

// Read returns the turns of a conversation up to a number; 0 for all. Turns that failed, but for the one with the number, and messages that were rewound, deleted
// or replaced are not part of it. redact replaces the secrets in all texts.
func Read(history iter.Seq2[store.Entry, error], until int64, redact func(string) string) ([]*Turn, error) {
	var turns []*Turn
	for e, err := range history {
		if err != nil {
			return nil, err
		}
		if until > 0 && e.Turn > until {
			break
		}
		if isAsked := until > 0 && e.Turn == until; e.Status != store.InWindow && e.Status != store.Flushed && (e.Status != store.Failed || !isAsked) {
			continue
		}
		if e.Message.Role == chat.User {
			if i := slices.IndexFunc(e.Message.Blocks, func(b chat.Block) bool { return !b.IsText() }); i >= 0 {
				return nil, fmt.Errorf("turn %d has a part of type %s: only questions of text can be inputs of a test", e.Turn, e.Message.Blocks[i].Type)
			}
			turns = append(turns, &Turn{Number: e.Turn, Failed: e.Status == store.Failed, Input: redact(e.Message.TextWithoutMemory())})
			continue
		}
		if len(turns) > 0 {
			turns[len(turns)-1].add(e.Message, redact)
		}
	}
	switch {
	case len(turns) == 0:
		return nil, fmt.Errorf("the conversation has no turn")
	case until > 0 && turns[len(turns)-1].Number != until:
		return nil, fmt.Errorf("the conversation has no turn %d: the last one before is %d", until, turns[len(turns)-1].Number)
	}
	return turns, nil
}

// LacksAnswer reports whether the turn failed after an answer that is not stored: calls of tools were answered, and nothing follows.
func (t *Turn) LacksAnswer() bool {
	return t.Failed && (len(t.Rounds) == 0 || len(t.Rounds[len(t.Rounds)-1].Calls) > 0)
}

// add adds an answer, or the result of a tool.
func (t *Turn) add(m chat.Message, redact func(string) string) {
	switch m.Role {
	case chat.Assistant:
		r := &Round{Text: redact(m.Text()), Results: map[string]string{}}
		for _, c := range m.Calls() {
			c.Arguments = redact(c.Arguments)
			r.Calls = append(r.Calls, c)
		}
		t.Rounds = append(t.Rounds, r)
	case chat.Tool, chat.Function:
		for _, r := range t.Rounds {
			if slices.ContainsFunc(r.Calls, func(c chat.ToolCall) bool { return c.ID == m.ToolCallID }) {
				r.Results[m.ToolCallID] = redact(m.Text())
			}
		}
	}
}

// calls returns the calls of a turn with their results, in order.
func (t *Turn) calls() iter.Seq2[chat.ToolCall, string] {
	return func(yield func(chat.ToolCall, string) bool) {
		for _, r := range t.Rounds {
			for _, c := range r.Calls {
				if !yield(c, r.Results[c.ID]) {
					return
				}
			}
		}
	}
}

// resultOf returns the result of a tool as a value, or its error: what the model got has the form "error: tool ID: …".
func resultOf(id, text string) (result any, failed string) {
	if reason, ok := strings.CutPrefix(text, "error: "); ok {
		return nil, strings.TrimPrefix(reason, "tool "+id+": ")
	}
	var v any
	if json.Unmarshal([]byte(text), &v) == nil && v != nil {
		return v, ""
	}
	return text, ""
}

// Calls returns the number of calls of models and tools in turns.
func Calls(turns []*Turn) int {
	n := 0
	for _, t := range turns {
		n += len(t.Rounds)
		for range t.calls() {
			n++
		}
	}
	return n
}

// Minimize returns the turns that the last one needs: as few as possible with which same still is true.
func Minimize(turns []*Turn, same func([]*Turn) bool) []*Turn {
	last := turns[len(turns)-1]
	earlier := minimize(turns[:len(turns)-1], func(some []*Turn) bool { return same(append(slices.Clone(some), last)) })
	return append(earlier, last)
}

// MinimizeCalls returns the turns with as few calls of tools as possible with which same still is true. An answer of the
// model from which all calls are removed is removed, too.
func MinimizeCalls(turns []*Turn, same func([]*Turn) bool) []*Turn {
	var ids []callID
	for i, t := range turns {
		for j, r := range t.Rounds {
			for k := range r.Calls {
				ids = append(ids, callID{i, j, k})
			}
		}
	}
	kept := minimize(ids, func(some []callID) bool { return same(withCalls(turns, some)) })
	return withCalls(turns, kept)
}

// callID is the place of a call.
type callID struct{ turn, round, call int }

// withCalls returns copies of turns with some of their calls.
func withCalls(turns []*Turn, kept []callID) []*Turn {
	made := make([]*Turn, len(turns))
	for i, t := range turns {
		copied := *t
		copied.Rounds = nil
		for j, r := range t.Rounds {
			own := *r
			own.Calls = nil
			for k, c := range r.Calls {
				if slices.Contains(kept, callID{i, j, k}) {
					own.Calls = append(own.Calls, c)
				}
			}
			if len(own.Calls) > 0 || len(r.Calls) == 0 {
				copied.Rounds = append(copied.Rounds, &own)
			}
		}
		made[i] = &copied
	}
	return made
}

// minimize returns the items without which same is not true any more: none of them can be left out alone. It leaves out all,
// then halves, quarters and so on, as delta debugging does.
func minimize[T any](items []T, same func([]T) bool) []T {
	for size := len(items); size > 0; {
		before := len(items)
		for at := 0; at < len(items); {
			without := slices.Delete(slices.Clone(items), at, min(at+size, len(items)))
			if same(without) {
				items = without
			} else {
				at += size
			}
		}
		if size > 1 || len(items) == before {
			size /= 2
		}
	}
	return items
}

// Row is a turn of a conversation in a data set.
type Row struct {
	Session string    // the stored id
	Turn    int64     // the number in the session
	Time    time.Time // when the session was last used
	Inputs  map[string]any
	Answer  string // the last text of the model in the turn

	Feedback *appstate.Feedback // of the user on the turn; nil for none
}

// MarshalJSON writes the columns: session, turn, time, the inputs of the flow, and expected. With feedback there are feedback and
// comment; an answer that the user has rated down is rejected, and what was expected is not known.
func (r *Row) MarshalJSON() ([]byte, error) {
	columns := map[string]any{}
	for id, v := range r.Inputs {
		columns[id] = v
	}
	columns["session"], columns["turn"], columns["time"], columns["expected"] = r.Session, r.Turn, r.Time.UTC().Format(time.RFC3339), r.Answer
	if f := r.Feedback; f != nil {
		columns["feedback"] = f.Label()
		if f.Explanation != "" {
			columns["comment"] = f.Explanation
		}
		if f.Verdict == appstate.Down {
			columns["rejected"], columns["expected"] = r.Answer, nil
		}
	}
	return json.Marshal(columns)
}

// Rows returns the turns of a session as rows, with the feedback of the user.
func (s *Source) Rows(session string, used time.Time, turns []*Turn, given []*appstate.Feedback) []*Row {
	var rows []*Row
	for _, t := range turns {
		r := &Row{Session: session, Turn: t.Number, Time: used, Inputs: map[string]any{s.input: t.Input}}
		for id, v := range s.Inputs {
			r.Inputs[id] = v
		}
		if n := len(t.Rounds); n > 0 {
			r.Answer = t.Rounds[n-1].Text
		}
		if i := slices.IndexFunc(given, func(f *appstate.Feedback) bool { return f.Turn == t.Number }); i >= 0 {
			r.Feedback = given[i]
		}
		rows = append(rows, r)
	}
	return rows
}

// DataSet writes the rows of sessions as JSON lines, of equal conversations only the first one.
type DataSet struct {
	Out                      io.Writer
	Sessions, Rows, Repeated int // what was written, and sessions that were not

	seen map[string]bool
}

// Add writes the rows of a session.
func (d *DataSet) Add(rows []*Row) error {
	var questions strings.Builder
	for _, r := range rows {
		fmt.Fprintf(&questions, "%q ", fmt.Sprint(r.Inputs))
	}
	if d.seen[questions.String()] {
		d.Repeated++
		return nil
	}
	if d.seen == nil {
		d.seen = map[string]bool{}
	}
	d.seen[questions.String()] = true
	lines := json.NewEncoder(d.Out)
	lines.SetEscapeHTML(false)
	for _, r := range rows {
		if err := lines.Encode(r); err != nil {
			return err
		}
	}
	d.Sessions, d.Rows = d.Sessions+1, d.Rows+len(rows)
	return nil
}
