package runtime

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/steps"
)

// timedPipe returns a pipe of two steps that take the times, the first of which makes
// two rows of each.
func timedPipe(ctx context.Context, kind spec.Step, first, second time.Duration) (*pipe, []*node) {
	took := func(id string, span time.Duration, rows int) *node {
		n := nodeFor(id, stepFunc(func(_ context.Context, row *steps.Row, emit steps.Emit) error {
			time.Sleep(span)
			for range rows {
				if err := emit(row); err != nil {
					return err
				}
			}
			return nil
		}))
		n.timed, n.plan = true, &spec.StepPlan{Step: kind}
		return n
	}
	nodes := []*node{took("first", first, 2), took("second", second, 1)}
	return newPipe(ctx, nodes, func(*steps.Row) error { time.Sleep(time.Hour); return nil }), nodes
}

// TestStopwatch_Totals: the times are exact for slow rows and for steps that do more than
// compute, and within a tenth for fast rows, of which some are measured. The time after
// the steps counts for none of them.
func TestStopwatch_Totals(t *testing.T) {
	for _, c := range []struct {
		step  spec.Step
		each  time.Duration
		exact bool
	}{{&spec.Echo{}, time.Millisecond, true}, {&spec.InvokeTool{}, time.Microsecond, true}, {&spec.Echo{}, time.Microsecond, false}} {
		t.Run(fmt.Sprintf("%T %v", c.step, c.each), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const rows = 5000
				p, nodes := timedPipe(t.Context(), c.step, c.each, c.each)
				measured := 0
				for range rows {
					before := nodes[0].count.time.Load()
					if err := p.process(&steps.Row{}); err != nil {
						t.Fatal(err)
					}
					if nodes[0].count.time.Load() > before {
						measured++
					}
				}
				if few := measured < rows/8; few == c.exact {
					t.Errorf("%d of %d rows were measured", measured, rows)
				}
				for i, want := range []time.Duration{rows * c.each, 2 * rows * c.each} {
					got := time.Duration(nodes[i].count.time.Load())
					if off := (got - want).Abs(); c.exact && off > 0 || off > want/10 {
						t.Errorf("step %s took %v, measured as %v", nodes[i].id, want, got)
					}
				}
			})
		})
	}
}

// BenchmarkStopwatch measures what the times of two steps cost a row.
func BenchmarkStopwatch(b *testing.B) {
	pass := stepFunc(func(_ context.Context, row *steps.Row, emit steps.Emit) error { return emit(row) })
	for _, kind := range []spec.Step{nil, &spec.InvokeTool{}, &spec.Echo{}} {
		b.Run(fmt.Sprintf("%T", kind), func(b *testing.B) {
			nodes := []*node{nodeFor("a", pass), nodeFor("b", pass)}
			for _, n := range nodes {
				n.timed, n.plan = kind != nil, &spec.StepPlan{Step: kind}
			}
			p := newPipe(b.Context(), nodes, func(*steps.Row) error { return nil })
			row := &steps.Row{}
			for b.Loop() {
				_ = p.process(row)
			}
		})
	}
}
