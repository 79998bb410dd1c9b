package runtime

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/steps"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// stepFunc is a function as a step.
type stepFunc func(ctx context.Context, row *steps.Row, emit steps.Emit) error

func (f stepFunc) Process(ctx context.Context, row *steps.Row, emit steps.Emit) error {
	return f(ctx, row, emit)
}

// gather is a batch step that joins the first slots of a batch.
type gather int

func (g gather) Size() int { return int(g) }

func (g gather) Batch(_ context.Context, rows []*steps.Row, emit steps.Emit) error {
	sum := rows[0].Clone()
	var all []any
	for _, r := range rows {
		all = append(all, r.Values[0])
	}
	sum.Values[0] = fmt.Sprint(all)
	return emit(sum)
}

func pass(_ context.Context, row *steps.Row, emit steps.Emit) error { return emit(row) }

func nodeFor(id string, s steps.Step) *node {
	return &node{id: id, plan: &spec.StepPlan{}, step: s, count: &counter{}}
}

// outSink collects the results; if limit is set, it stops the run after limit rows.
type outSink struct {
	rows  []*steps.Row
	limit int
}

func (o *outSink) push(_ context.Context, row *steps.Row) error {
	o.rows = append(o.rows, row)
	if o.limit > 0 && len(o.rows) == o.limit {
		return errStopped
	}
	return nil
}
func (o *outSink) finish(context.Context) error { return nil }
func (o *outSink) stop()                        {}

// drive sends rows 0…n-1 through stages; the session of row i is sessions[i % len].
func drive(ctx context.Context, stages []stage, n int, sessions ...string) ([]*steps.Row, error) {
	out := &outSink{}
	first := chain(ctx, stages, out)
	defer first.stop()
	for i := range n {
		row := &steps.Row{Values: []any{i}, Number: int64(i + 1)}
		if len(sessions) > 0 {
			row.Session = sessions[i%len(sessions)]
		}
		if err := first.push(ctx, row); err != nil {
			return out.rows, err
		}
	}
	return out.rows, first.finish(ctx)
}

func firsts(rows []*steps.Row) []any {
	var all []any
	for _, r := range rows {
		all = append(all, r.Values[0])
	}
	return all
}

func TestChain_WorkersKeepOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		workers := rapid.IntRange(1, 8).Draw(t, "workers")
		n := rapid.IntRange(0, 300).Draw(t, "rows")
		fan := rapid.IntRange(0, 40).Draw(t, "fan")
		bySession := rapid.Bool().Draw(t, "by session")
		explode := func(_ context.Context, row *steps.Row, emit steps.Emit) error {
			for k := range row.Values[0].(int) % (fan + 1) {
				c := row.Clone()
				c.Values[0] = fmt.Sprint(row.Values[0], "/", k)
				if err := emit(c); err != nil {
					return err
				}
			}
			return nil
		}
		var want []any
		for i := range n {
			for k := range i % (fan + 1) {
				want = append(want, fmt.Sprint(i, "/", k))
			}
		}
		nodes := []*node{nodeFor("a", stepFunc(pass)), nodeFor("b", stepFunc(explode)), nodeFor("c", stepFunc(pass))}
		rows, err := drive(t.Context(), []stage{{nodes: nodes, workers: workers, sessions: bySession}}, n, "x", "y", "x", "z")
		if err != nil {
			t.Fatal(err)
		}
		if got := firsts(rows); !slices.Equal(got, want) {
			t.Fatalf("rows out of order:\n got %v\nwant %v", got, want)
		}
	})
}

func TestChain_WorkersRunConcurrently(t *testing.T) {
	const workers = 8
	var barrier sync.WaitGroup
	barrier.Add(workers)
	meet := func(_ context.Context, row *steps.Row, emit steps.Emit) error {
		barrier.Done()
		barrier.Wait() // passes only when all workers have a row at the same time
		return emit(row)
	}
	rows, err := drive(t.Context(), []stage{{nodes: []*node{nodeFor("meet", stepFunc(meet))}, workers: workers}}, workers)
	if err != nil || len(rows) != workers {
		t.Fatal(len(rows), err)
	}
}

func TestChain_SessionsInOrder(t *testing.T) {
	var mu sync.Mutex
	inside := map[string]int{}
	order := map[string][]int{}
	atOnce := map[string]bool{}
	enter := func(_ context.Context, row *steps.Row, emit steps.Emit) error {
		mu.Lock()
		inside[row.Session]++
		if inside[row.Session] > 1 {
			atOnce[row.Session] = true
		}
		order[row.Session] = append(order[row.Session], row.Values[0].(int))
		mu.Unlock()
		return emit(row)
	}
	leave := func(_ context.Context, row *steps.Row, emit steps.Emit) error {
		mu.Lock()
		inside[row.Session]--
		mu.Unlock()
		return emit(row)
	}
	nodes := []*node{nodeFor("enter", stepFunc(enter)), nodeFor("leave", stepFunc(leave))}
	if _, err := drive(t.Context(), []stage{{nodes: nodes, workers: 6, sessions: true}}, 2000, "a", "a", "a", "b", "c", "b"); err != nil {
		t.Fatal(err)
	}
	if len(atOnce) > 0 {
		t.Errorf("two rows of one session were in the stage concurrently: %v", atOnce)
	}
	for session, rows := range order {
		if !slices.IsSorted(rows) {
			t.Errorf("session %s was processed out of order", session)
		}
	}
}

func TestChain_RowsSortedBySession(t *testing.T) {
	const sessions = 4
	var barrier sync.WaitGroup
	barrier.Add(sessions)
	var met sync.Map
	meet := func(_ context.Context, row *steps.Row, emit steps.Emit) error {
		if _, seen := met.LoadOrStore(row.Session, true); !seen {
			barrier.Done()
			barrier.Wait() // hangs if rows of the first session occupied all workers
		}
		return emit(row)
	}
	out := &outSink{}
	first := chain(t.Context(), []stage{{nodes: []*node{nodeFor("meet", stepFunc(meet))}, workers: sessions, sessions: true}}, out)
	defer first.stop()
	for i := range sessions * 20 {
		if err := first.push(t.Context(), &steps.Row{Values: []any{i}, Session: fmt.Sprint(i / 20)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := first.finish(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i, r := range out.rows {
		if r.Values[0] != i {
			t.Fatalf("row %d was emitted in place %d", r.Values[0], i)
		}
	}
}

func TestChain_FailedRows(t *testing.T) {
	boom := errors.New("boom")
	var after atomic.Int64
	for _, workers := range []int{1, 4} {
		after.Store(0)
		fail := func(_ context.Context, row *steps.Row, emit steps.Emit) error {
			switch row.Values[0].(int) % 4 {
			case 1:
				return boom
			case 2:
				panic("a bug")
			}
			return emit(row)
		}
		later := func(_ context.Context, row *steps.Row, emit steps.Emit) error {
			after.Add(1)
			return emit(row)
		}
		nodes := []*node{nodeFor("fail", stepFunc(fail)), nodeFor("later", stepFunc(later))}
		rows, err := drive(t.Context(), []stage{{nodes: nodes, workers: workers}}, 40)
		if err != nil || len(rows) != 40 {
			t.Fatal(len(rows), err)
		}
		for i, r := range rows {
			failed := i%4 == 1 || i%4 == 2
			if r.Values[0] != i || (r.Err != nil) != failed {
				t.Fatalf("workers %d: place %d has row %v, error %v", workers, i, r.Values[0], r.Err)
			}
			if i%4 == 1 && (r.Err.Step != "fail" || !errors.Is(r.Err, boom)) {
				t.Fatalf("the error does not have the step and the reason: %v", r.Err)
			}
		}
		if after.Load() != 20 {
			t.Errorf("workers %d: the later step received %d rows, want the 20 others", workers, after.Load())
		}
		if got := nodes[0].count.failed.Load(); got != 20 {
			t.Errorf("workers %d: %d failures counted, want 20", workers, got)
		}
	}
}

func TestChain_Batches(t *testing.T) {
	b := &node{id: "gather", batch: gather(3), count: &counter{}}
	rows, err := drive(t.Context(), []stage{{nodes: []*node{nodeFor("a", stepFunc(pass))}, workers: 1}, {nodes: []*node{b}, workers: 1}}, 7)
	if err != nil {
		t.Fatal(err)
	}
	want := []any{"[0 1 2]", "[3 4 5]", "[6]"}
	if got := firsts(rows); !slices.Equal(got, want) {
		t.Fatalf("got %v, want %v", got, want)
	}
}

func TestChain_Window(t *testing.T) {
	const workers, n = 4, 2000
	var made, taken, most atomic.Int64
	count := func(_ context.Context, row *steps.Row, emit steps.Emit) error {
		most.Store(max(most.Load(), made.Add(1)-taken.Load()))
		return emit(row)
	}
	out := &countSink{taken: &taken}
	first := chain(t.Context(), []stage{{nodes: []*node{nodeFor("count", stepFunc(count))}, workers: workers}}, out)
	defer first.stop()
	for i := range n {
		if err := first.push(t.Context(), &steps.Row{Values: []any{i}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := first.finish(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := most.Load(); got > lookahead*workers+1 {
		t.Errorf("the stage had %d rows, more than its window of %d", got, lookahead*workers)
	}
}

type countSink struct{ taken *atomic.Int64 }

func (c *countSink) push(context.Context, *steps.Row) error { c.taken.Add(1); return nil }
func (c *countSink) finish(context.Context) error           { return nil }
func (c *countSink) stop()                                  {}

func TestChain_Cancel(t *testing.T) {
	for _, workers := range []int{1, 4} {
		ctx, cancel := context.WithCancelCause(t.Context())
		why := errors.New("enough")
		hang := func(ctx context.Context, row *steps.Row, emit steps.Emit) error {
			if row.Values[0].(int) == 3 {
				cancel(why)
			}
			if row.Values[0].(int) >= 3 {
				<-ctx.Done()
				return ctx.Err()
			}
			return emit(row)
		}
		rows, err := drive(ctx, []stage{{nodes: []*node{nodeFor("hang", stepFunc(hang))}, workers: workers}}, 50)
		if !errors.Is(err, why) {
			t.Errorf("workers %d: the run ended with %v, want the cause", workers, err)
		}
		for _, r := range rows {
			if r.Err != nil {
				t.Errorf("workers %d: a row failed because the run was canceled: %v", workers, r.Err)
			}
		}
	}
}

func TestChain_StopsWorkers(t *testing.T) {
	forever := func(ctx context.Context, row *steps.Row, emit steps.Emit) error {
		for {
			if err := emit(row.Clone()); err != nil {
				return fmt.Errorf("wrapped by the step: %w", err)
			}
		}
	}
	for _, workers := range []int{1, 3} {
		out := &outSink{limit: 5}
		first := chain(t.Context(), []stage{{nodes: []*node{nodeFor("forever", stepFunc(forever))}, workers: workers}}, out)
		err := first.push(t.Context(), &steps.Row{Values: []any{0}})
		if err == nil {
			err = first.finish(t.Context())
		}
		first.stop()
		if !errors.Is(err, errStopped) || len(out.rows) != 5 {
			t.Errorf("workers %d: %d rows, %v", workers, len(out.rows), err)
		}
	}
}

func TestChain_StepLimit(t *testing.T) {
	var inside, most atomic.Int64
	narrow := func(_ context.Context, row *steps.Row, emit steps.Emit) error {
		most.Store(max(most.Load(), inside.Add(1)))
		defer inside.Add(-1)
		return emit(row)
	}
	wide := nodeFor("wide", stepFunc(pass))
	wide.limit = 8
	n := nodeFor("narrow", stepFunc(narrow))
	n.limit, n.permits = 1, make(chan struct{}, 1)
	rows, err := drive(t.Context(), []stage{{nodes: []*node{wide, n, nodeFor("after", stepFunc(pass))}, workers: 8, sessions: true}}, 500, "a", "b", "c")
	if err != nil || len(rows) != 500 {
		t.Fatal(len(rows), err)
	}
	if most.Load() != 1 {
		t.Errorf("%d concurrent rows in a step with 1 worker", most.Load())
	}
}
