package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/qtype-dev/qtype/internal/appstate"
	"github.com/qtype-dev/qtype/internal/server/schema"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
)

// Inputs keeps the first values of session inputs. It reads the store once for each
// request of a flow that has such inputs. It is safe for concurrent use.
type Inputs struct{ state func() store.Application }

// NewInputs returns the session inputs that an application has stored.
func NewInputs(state func() store.Application) *Inputs { return &Inputs{state} }

// SessionInputs are the stored inputs of a session.
type SessionInputs struct {
	flow    *schema.Flow
	session string
	version int64
	values  map[string]any
}

// id returns the id of the record.
func (s *SessionInputs) id() string { return appstate.OfFlow(s.session, s.flow.ID()) }

// Has reports whether an input has a value. s may be nil.
func (s *SessionInputs) Has(v *spec.Variable) bool {
	if s == nil {
		return false
	}
	_, ok := s.values[v.ID]
	return ok
}

// Known returns the stored inputs of a stored session of a flow; nil if the flow has none.
func (i *Inputs) Known(ctx context.Context, flow *schema.Flow, session string) (*SessionInputs, error) {
	if len(flow.Session) == 0 {
		return nil, nil
	}
	s := &SessionInputs{flow: flow, session: session, values: map[string]any{}}
	rec, err := i.state().Records(appstate.Inputs).Get(ctx, s.id())
	if err != nil {
		return nil, err
	}
	s.version = rec.Version
	for _, v := range flow.Session {
		raw, ok := rec.Values[v.ID]
		if !ok {
			continue
		}
		parsed, err := value.Parse(string(raw))
		if err == nil && parsed != nil {
			parsed, err = value.Coerce(v.Type, parsed)
		}
		if err != nil {
			return nil, fmt.Errorf("the stored input %s of the session is damaged: %w", v.ID, err)
		}
		s.values[v.ID] = parsed
	}
	return s, nil
}

// Apply replaces the session inputs of the rows by their first values, and stores new
// ones. s is the result of Known.
func (i *Inputs) Apply(ctx context.Context, s *SessionInputs, rows ...map[string]any) error {
	if s == nil {
		return nil
	}
	added := map[string][]byte{}
	for _, row := range rows {
		for _, v := range s.flow.Session {
			if x, ok := s.values[v.ID]; ok {
				row[v.ID] = x
			} else if x, ok := row[v.ID]; ok {
				s.values[v.ID] = x
				added[v.ID] = value.JSON(x)
			}
		}
	}
	if len(added) == 0 {
		return nil
	}
	err := i.state().Records(appstate.Inputs).Write(ctx, s.id(), store.RecordChange{Version: s.version, Next: store.NextVersion(s.version), Values: added})
	if !errors.Is(err, store.ErrConflict) {
		return err
	}
	first, err := i.Known(ctx, s.flow, s.session) // another request was first
	if err != nil {
		return err
	}
	return i.Apply(ctx, first, rows...) // it may have set other inputs
}

// Copy copies the inputs of a stored session of a flow to another one.
func (i *Inputs) Copy(ctx context.Context, flow *schema.Flow, from, to string) error {
	records := i.state().Records(appstate.Inputs)
	rec, err := records.Get(ctx, appstate.OfFlow(from, flow.ID()))
	if err != nil || rec.Version == 0 {
		return err
	}
	return records.Write(ctx, appstate.OfFlow(to, flow.ID()), store.RecordChange{Next: store.NextVersion(0), Values: rec.Values})
}

// RecordOf decodes the inputs that a chat client sends in addition to its messages.
func RecordOf(raw map[string]json.RawMessage) (*value.Record, error) {
	fields := make([]value.Field, 0, len(raw))
	for name, text := range raw {
		v, err := value.Parse(string(text))
		if err != nil {
			return nil, err
		}
		fields = append(fields, value.Field{Name: name, Value: v})
	}
	return value.NewRecord("", fields...), nil
}
