package history

import (
	"context"
	"fmt"
	"strconv"

	"github.com/qtype-dev/qtype/internal/memory/change"
	"github.com/qtype-dev/qtype/internal/memory/window"
	"github.com/qtype-dev/qtype/memory/store"
)

// MessageError reports that a message cannot be found, edited or deleted.
type MessageError struct {
	Memory  string // the memory's id
	Session string // the session's id
	Message string // the id or position that was named
	Problem string // why not
	Unknown bool   // the session has no such message
}

// Error names them all.
func (e *MessageError) Error() string {
	return fmt.Sprintf("memory %s, session %q, message %s: %s", e.Memory, e.Session, e.Message, e.Problem)
}

// MessageError returns the error about a message.
func (r *Reader) MessageError(session, message, problem string, args ...any) *MessageError {
	return &MessageError{Memory: r.Memory, Session: session, Message: message, Problem: fmt.Sprintf(problem, args...)}
}

// Place returns the message of the conversation to which a position belongs, as it is now.
func (r *Reader) Place(ctx context.Context, key store.Key, v *window.View, position int64) (*store.Entry, error) {
	statuses, err := v.State.Statuses()
	if err != nil {
		return nil, err
	}
	name := strconv.FormatInt(position, 10)
	if position < 1 || position > v.State.Last {
		unknown := r.MessageError(key.Session, name, "the session has no such message; its positions are 1 to %d", v.State.Last)
		if v.State.Last == 0 {
			unknown.Problem = "the session has no messages"
		}
		unknown.Unknown = true
		return nil, unknown
	}
	position = statuses.Edits.Original(position)
	e, err := r.Entry(ctx, key, v, position)
	if err != nil {
		return nil, err
	}
	if e == nil {
		return nil, store.ErrConflict // another process deleted the session
	}
	c := *e
	switch c.Status = statuses.At(position, e); c.Status {
	case store.Failed, store.Rewound, store.Deleted:
		refused := r.MessageError(key.Session, name, "it is not part of the conversation: %s", map[store.Status]string{
			store.Failed: "its turn failed", store.Rewound: "its turn was rewound", store.Deleted: "it was deleted"}[c.Status])
		refused.Unknown = true
		return nil, refused
	}
	return &c, nil
}

// Unit returns the entries that leave with one: a tool call and its results.
func (r *Reader) Unit(ctx context.Context, key store.Key, base *window.View, e *store.Entry) ([]*store.Entry, error) {
	hidden := change.ParsedRanges(base.State.Rewound)
	call := e
	for seq := e.Seq - 1; window.IsResult(call) && seq > 0; seq-- {
		before, err := r.Entry(ctx, key, &window.View{State: store.State{}}, seq)
		switch {
		case err != nil:
			return nil, err
		case before != nil && before.Status != store.Failed && !hidden.Has(seq) && !window.IsSystem(before):
			call = before
		}
	}
	if !call.Message.HasCalls() { // the call of a result is not there
		return []*store.Entry{e}, nil
	}
	unit := []*store.Entry{call}
	for next, err := range r.Store.Entries(ctx, key, store.Query{From: call.Seq + 1, Live: true}) {
		switch {
		case err != nil:
			return nil, err
		case hidden.Has(next.Seq) || window.IsSystem(next):
		case !window.IsResult(next):
			return unit, nil
		default:
			unit = append(unit, next)
		}
	}
	return unit, nil
}
