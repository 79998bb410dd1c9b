package steps

import (
	"context"

	"github.com/qtype-dev/qtype/memory"
)

// callContext is where a call takes place: in which step and for which row, and in
// which turn of a memory. Tools that keep values in a memory and the models
// that a memory asks by itself need to know.
type callContext struct {
	step    string
	session string
	row     int64
	place   int64          // where the row stands in the run
	memory  *memory.Memory // nil outside of a turn
	turn    *memory.Turn   // nil outside of a turn
	outer   *callContext   // the scene around it: a turn may call a tool that runs a flow
}

type sceneKey struct{}

// withCallContext is ctx with what a step works on.
func withCallContext(ctx context.Context, step string, row *Row) context.Context {
	return enterTurn(ctx, callContext{step: step, session: row.Session, row: row.Number, place: row.Place})
}

// withTurn is ctx within a turn of a memory.
func (s *llmStep) withTurn(ctx context.Context, row *Row, d *conversation) context.Context {
	if d.turn == nil {
		return ctx
	}
	return enterTurn(ctx, callContext{step: s.id, session: row.Session, row: row.Number, place: row.Place, memory: s.memory, turn: d.turn})
}

func enterTurn(ctx context.Context, s callContext) context.Context {
	s.outer = callContextFrom(ctx)
	return context.WithValue(ctx, sceneKey{}, &s)
}

// callContextFrom is the innermost scene, nil where there is none.
func callContextFrom(ctx context.Context) *callContext {
	s, _ := ctx.Value(sceneKey{}).(*callContext)
	return s
}

// activeTurn is the turn of a memory's session that goes on around a call, nil where
// none does. To wait for another one of that session would be to wait for ever.
func activeTurn(ctx context.Context, m *memory.Memory, session string) *memory.Turn {
	if s := turnCallContext(ctx, m, session); s != nil {
		return s.turn
	}
	return nil
}

// turnCallContext is the scene of that turn.
func turnCallContext(ctx context.Context, m *memory.Memory, session string) *callContext {
	for s := callContextFrom(ctx); s != nil; s = s.outer {
		if s.memory == m && s.session == session && s.turn != nil {
			return s
		}
	}
	return nil
}

// reportUsage reports what a model cost that a memory asked by itself, as the
// cost of the step that used the memory.
func reportUsage(ctx context.Context, ev Event) {
	ev.Kind = EventUsage
	if s := callContextFrom(ctx); s != nil {
		ev.Step, ev.Session, ev.Row = s.step, s.session, s.row
	}
	Report(ctx, ev)
}
