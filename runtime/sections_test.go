package runtime

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/steps"
)

// flowOf is a compiled flow of one slot whose input is the row's number.
func flowOf(stages ...stage) *flow {
	f := &flow{spec: &spec.Flow{ID: "f"}, layout: &layout{slots: map[*spec.Variable]int{}, vars: []*spec.Variable{{ID: "x"}}}, stages: stages}
	for _, s := range stages {
		f.nodes = append(f.nodes, s.nodes...)
	}
	return f
}

// fan is a step that makes n%(most+1) rows of row n, and fails every 7th.
func fan(most int) stepFunc {
	return func(_ context.Context, row *steps.Row, emit steps.Emit) error {
		if row.Number%7 == 0 {
			return errors.New("no")
		}
		for k := range row.Number % int64(most+1) {
			c := row.Clone()
			c.Values[0] = fmt.Sprint(row.Number, "/", k)
			if err := emit(c); err != nil {
				return err
			}
		}
		return nil
	}
}

// outAt runs a flow of several sections and returns what comes out at which second.
func outAt(t *testing.T, f *flow, rows func(func(Input) bool)) []string {
	t.Helper()
	r := &run{flow: f, stages: f.stages, progress: &Progress{}}
	began := time.Now()
	var out []string
	err := r.runSections(t.Context(), rows, &resultSink{run: r, yield: func(res *Result) bool {
		out = append(out, fmt.Sprintf("%v at %s", res.values[0], time.Since(began)))
		return true
	}})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// count is a step that puts the row's number into its slot.
func count(_ context.Context, row *steps.Row, emit steps.Emit) error {
	row.Values[0] = row.Number
	return emit(row)
}

// TestSections_MaxWait flushes batches in time, whether the rows come slowly or the
// step before is slow, and never an empty batch.
func TestSections_MaxWait(t *testing.T) {
	slowRows := func(yield func(Input) bool) {
		for _, pause := range []time.Duration{0, time.Second, 10 * time.Second, 0, 0, 0, 0, 20 * time.Second} {
			time.Sleep(pause)
			if !yield(Input{}) {
				return
			}
		}
	}
	group := func() *node { return &node{id: "group", batch: gather(3), maxWait: 5 * time.Second, count: &counter{}} }
	want := []string{"[1 2] at 5s", "[3 4 5] at 11s", "[6 7] at 16s", "[8] at 31s"}
	synctest.Test(t, func(t *testing.T) {
		number := stage{nodes: []*node{nodeFor("count", stepFunc(count))}, workers: 1}
		if got := outAt(t, flowOf(number, stage{nodes: []*node{group()}, workers: 1}), slowRows); !slices.Equal(got, want) {
			t.Errorf("slow rows:\ngot  %q\nwant %q", got, want)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		slow := func(ctx context.Context, row *steps.Row, emit steps.Emit) error {
			time.Sleep(4 * time.Second)
			return count(ctx, row, emit)
		}
		f := flowOf(stage{nodes: []*node{nodeFor("slow", stepFunc(slow))}, workers: 1}, stage{nodes: []*node{group()}, workers: 1},
			stage{nodes: []*node{nodeFor("after", stepFunc(pass))}, workers: 2})
		if got := outAt(t, f, slices.Values(make([]Input, 4))); !slices.Equal(got, []string{"[1 2] at 9s", "[3 4] at 16s"}) {
			t.Errorf("a slow step: got %q", got)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		first := flowOf(stage{nodes: []*node{group()}, workers: 1})
		if got := outAt(t, first, slowRows); len(got) != 4 {
			t.Errorf("a batch step at the start: got %q", got)
		}
	})
}

func TestSections_Stop(t *testing.T) {
	boom := errors.New("boom")
	f := func() *flow {
		return flowOf(stage{nodes: []*node{nodeFor("count", stepFunc(count))}, workers: 2},
			stage{nodes: []*node{{id: "group", batch: gather(2), maxWait: time.Hour, count: &counter{}}}, workers: 1})
	}
	endless := func(yield func(Input) bool) {
		for yield(Input{}) {
		}
	}
	r := &run{flow: f(), progress: &Progress{}}
	n := 0
	err := r.runSections(t.Context(), endless, &resultSink{run: r, yield: func(*Result) bool { n++; return n < 5 }})
	if !errors.Is(err, errStopped) || n != 5 {
		t.Errorf("after a break: %d results, %v", n, err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	r = &run{flow: f(), progress: &Progress{}}
	err = r.runSections(ctx, endless, &resultSink{run: r, yield: func(*Result) bool { cancel(boom); return true }})
	if !errors.Is(err, boom) {
		t.Errorf("after the context's end: %v", err)
	}
}
