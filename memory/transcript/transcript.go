// Package transcript writes sessions as JSON lines and reads them, to move them
// between stores and programs.
//
//	err := transcript.Export(ctx, m, session, out)
//	err := transcript.Import(ctx, m, session, in)
//
// A line is a message in OpenAI's form, an event, the variables, or the id of the session
// that follows:
//
//	{"role": "user", "content": "hello", "qtype": {"id": "4a", "turn": 1, "tokens": 8, "time": "2026-11-22T10:00:00Z", "status": "in window"}}
//	{"op": "session", "session": "c-1"}
//	{"op": "event", "event": {"kind": "flush", "turn": 7, "from": 1, "to": 4, …}}
//	{"op": "variables", "set": {"plan": "Gold"}, "turns": {"plan": 3}}
//	{"op": "context", "set": {"facts": {"facts": [{"id": "f1", …}], "next": 1, "to": 4}}}
//
// The object qtype is optional, in all messages or in none: without it the messages
// are appended, and each user message begins a turn. Its field message has the
// message whole if OpenAI's form cannot express it. Operations follow the
// messages of their session. `qtype memory replay` reads the same lines.
package transcript

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"reflect"
	"time"

	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/spec/chat"
)

// details is what a line has in addition to the message in OpenAI's form.
type details struct {
	ID      string        `json:"id"`                // the message's id
	Turn    int64         `json:"turn"`              // number of its turn
	Tokens  int           `json:"tokens,omitempty"`  // its size
	Time    time.Time     `json:"time,omitzero"`     // when its turn ended
	Status  string        `json:"status,omitempty"`  // its status, such as failed
	Of      int64         `json:"of,omitempty"`      // position of the message whose new text it is
	Message *chat.Message `json:"message,omitempty"` // nil if OpenAI's form has everything
}

// operation is a line that is not a message.
type operation struct {
	Op      string                     `json:"op"`                // the name of the operation
	Session *string                    `json:"session,omitempty"` // of the operation session: the id of the session that follows
	Event   *memory.Event              `json:"event,omitempty"`   // of the operation event
	Set     map[string]json.RawMessage `json:"set,omitempty"`     // of the operations variables and context: values by name
	Turns   map[string]int64           `json:"turns,omitempty"`   // those that set the variables
}

// Names of operations.
const (
	opSession   = "session"
	opEvent     = "event"
	opVariables = "variables"
	opContext   = "context"
)

// ExportSession is Export after a line with the id of the session, so that a file may
// have several sessions. ImportAll reads it.
func ExportSession(ctx context.Context, m *memory.Memory, session string, out io.Writer) error {
	if err := writeLine(out, operation{Op: opSession, Session: &session}); err != nil {
		return err
	}
	return Export(ctx, m, session, out)
}

// Export writes a session: messages, events, variables and facts, as they are when it begins. It
// reads the history while it writes. A session that does not exist has no lines.
func Export(ctx context.Context, m *memory.Memory, session string, out io.Writer) error {
	s, err := m.Snapshot(ctx, session)
	if err != nil {
		return err
	}
	edits := s.Head.State.Edits()
	for e, err := range s.History(ctx) {
		if err == nil {
			err = writeMessage(out, &e, edits)
		}
		if err != nil {
			return err
		}
	}
	for e, err := range s.Events(ctx) {
		if err == nil {
			err = writeLine(out, operation{Op: opEvent, Event: &e})
		}
		if err != nil {
			return err
		}
	}
	return exportValues(s, out)
}

// exportValues writes the variables, and the values of context blocks such as facts.
func exportValues(s *memory.Snapshot, out io.Writer) error {
	if variables := s.Variables(); len(variables) > 0 {
		op := operation{Op: opVariables, Set: map[string]json.RawMessage{}, Turns: map[string]int64{}}
		for _, v := range variables {
			op.Set[v.Name], op.Turns[v.Name] = v.Value, v.Turn
		}
		if err := writeLine(out, op); err != nil {
			return err
		}
	}
	values := s.ContextValues()
	if len(values) == 0 {
		return nil
	}
	op := operation{Op: opContext, Set: map[string]json.RawMessage{}}
	for name, value := range values {
		op.Set[name] = value
	}
	return writeLine(out, op)
}

func writeMessage(out io.Writer, e *memory.Entry, edits store.Edits) error {
	line := chat.OpenAI(e.Message)
	d := details{ID: e.Message.ID, Turn: e.Turn, Tokens: e.Tokens, Time: e.Time, Status: e.Status.String()}
	if of := edits.Original(e.Seq); of != e.Seq {
		d.Of = of
	}
	if back, err := chat.ParseOpenAI(line); err != nil || !sameMessage(back, e.Message) {
		d.Message = &e.Message
	}
	more, err := encode(d)
	if err != nil {
		return err
	}
	line = append(append(line[:len(line)-1:len(line)-1], `,"qtype":`...), more...)
	_, err = out.Write(append(line, "}\n"...))
	return err
}

// sameMessage reports whether two messages are equal but for their ids.
func sameMessage(a, b chat.Message) bool {
	a.ID = b.ID
	return reflect.DeepEqual(a, b)
}

func writeLine(out io.Writer, v any) error {
	line, err := encode(v)
	if err == nil {
		_, err = out.Write(append(line, '\n'))
	}
	return err
}

// encode returns v as JSON without HTML escapes.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}
