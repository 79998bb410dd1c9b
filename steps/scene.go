package steps

import (
	"context"

	"github.com/qtype-dev/qtype/memory"
)

// scene is where a call takes place: in which step and for which row, and in
// which turn of a memory. Tools that keep values in a memory and the models
// that a memory asks by itself need to know.
type scene struct {
	step    string
	session string
	row     int64
	place   int64          // where the row stands in the run
	memory  *memory.Memory // nil outside of a turn
	turn    *memory.Turn   // nil outside of a turn
	outer   *scene         // the scene around it: a turn may call a tool that runs a flow
}

type sceneKey struct{}

// within is ctx with what a step works on.
func within(ctx context.Context, step string, row *Row) context.Context {
	return enter(ctx, scene{step: step, session: row.Session, row: row.Number, place: row.Place})
}

// inTurn is ctx within a turn of a memory.
func (s *speaker) inTurn(ctx context.Context, row *Row, d *dialogue) context.Context {
	if d.turn == nil {
		return ctx
	}
	return enter(ctx, scene{step: s.id, session: row.Session, row: row.Number, place: row.Place, memory: s.memory, turn: d.turn})
}

func enter(ctx context.Context, s scene) context.Context {
	s.outer = sceneOf(ctx)
	return context.WithValue(ctx, sceneKey{}, &s)
}

// sceneOf is the innermost scene, nil where there is none.
func sceneOf(ctx context.Context) *scene {
	s, _ := ctx.Value(sceneKey{}).(*scene)
	return s
}

// turnOf is the turn of a memory's session that goes on around a call, nil where
// none does. To wait for another one of that session would be to wait for ever.
func turnOf(ctx context.Context, m *memory.Memory, session string) *memory.Turn {
	if s := turnScene(ctx, m, session); s != nil {
		return s.turn
	}
	return nil
}

// turnScene is the scene of that turn.
func turnScene(ctx context.Context, m *memory.Memory, session string) *scene {
	for s := sceneOf(ctx); s != nil; s = s.outer {
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
	if s := sceneOf(ctx); s != nil {
		ev.Step, ev.Session, ev.Row = s.step, s.session, s.row
	}
	Report(ctx, ev)
}
