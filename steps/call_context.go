package steps

import (
	"context"

	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/spec/value"
	"github.com/qtype-dev/qtype/tool"
)

// callContext identifies the step, the row and the memory turn of a call of a model
// or a tool. It travels in the context.Context, for tools that set values of a memory
// and for the models that a memory itself calls.
type callContext struct {
	step    string
	session string
	row     int64
	ordinal int64          // of the row; see Ordinal
	memory  *memory.Memory // nil outside of a turn
	turn    *memory.Turn   // nil outside of a turn
	outer   *callContext   // the enclosing call: a turn may call a tool that runs a flow
}

type callContextKey struct{}

// withCallContext returns a context for the calls of a step on a row.
func withCallContext(ctx context.Context, step string, row *Row) context.Context {
	return enterTurn(ctx, callContext{step: step, session: row.Session, row: row.Number, ordinal: row.Ordinal})
}

// withTurn returns a context for the calls within the conversation's turn.
func (s *llmStep) withTurn(ctx context.Context, row *Row, d *conversation) context.Context {
	if d.turn == nil {
		return ctx
	}
	return enterTurn(ctx, callContext{step: s.id, session: row.Session, row: row.Number, ordinal: row.Ordinal, memory: s.memory, turn: d.turn})
}

func enterTurn(ctx context.Context, s callContext) context.Context {
	s.outer = callContextFrom(ctx)
	return context.WithValue(ctx, callContextKey{}, &s)
}

// callContextFrom returns the innermost call context, nil for none.
func callContextFrom(ctx context.Context) *callContext {
	s, _ := ctx.Value(callContextKey{}).(*callContext)
	return s
}

// inputRow returns the number of the row of the run around a call, 0 for none.
func inputRow(ctx context.Context) (number int64) {
	for s := callContextFrom(ctx); s != nil; s = s.outer {
		number = s.row
	}
	return number
}

// activeTurn returns the turn of a memory's session that is in progress around a
// call, nil for none. Waiting for another turn of that session would deadlock.
func activeTurn(ctx context.Context, m *memory.Memory, session string) *memory.Turn {
	if s := turnCallContext(ctx, m, session); s != nil {
		return s.turn
	}
	return nil
}

// turnCallContext returns the call context of that turn.
func turnCallContext(ctx context.Context, m *memory.Memory, session string) *callContext {
	for s := callContextFrom(ctx); s != nil; s = s.outer {
		if s.memory == m && m.Conversation(s.session) == m.Conversation(session) && s.turn != nil {
			return s
		}
	}
	return nil
}

// reportUsage reports the cost of a model that a memory called, as the cost of the
// step that used the memory.
func reportUsage(ctx context.Context, ev Event) {
	ev.Kind = EventUsage
	if s := callContextFrom(ctx); s != nil {
		ev.Step, ev.Session, ev.Row = s.step, s.session, s.row
	}
	Report(ctx, ev)
}

// toolSession returns the session of the step that calls a tool of a memory.
func toolSession(ctx context.Context, id string) (string, error) {
	at := callContextFrom(ctx)
	if at == nil {
		return "", &tool.Error{Tool: id, Message: "called outside of a step: there is no session"}
	}
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	return at.session, nil
}

// sessionArguments returns the session of the step that calls a tool, and the arguments converted
// to their declared types.
func sessionArguments(ctx context.Context, info tool.Info, args map[string]any) (session string, given map[string]any, err error) {
	if session, err = toolSession(ctx, info.ID); err != nil {
		return "", nil, err
	}
	given, err = tool.ConvertArgs(info, args, value.Assign)
	return session, given, err
}
