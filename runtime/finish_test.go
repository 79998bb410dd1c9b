package runtime

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

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

// finishes gathers what a run tells of its rows.
type finishes struct {
	mu    sync.Mutex
	known map[int64][]string
	last  map[int64]int
}

func (f *finishes) take(number int64, results []*Result, last bool) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range results {
		text := fmt.Sprint(r.values[0])
		if r.Err != nil {
			text = r.Err.Error()
		}
		f.known[number] = append(f.known[number], text)
	}
	if last {
		f.last[number]++
	}
	return nil
}

// TestEveryRowIsToldOfOnceWithAllThatBecameOfIt: whatever the stages, and also
// of rows that nothing becomes of; what is told is what comes out.
func TestEveryRowIsToldOfOnceWithAllThatBecameOfIt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.IntRange(0, 5).Draw(t, "most")
		n := rapid.IntRange(0, 200).Draw(t, "rows")
		first := stage{nodes: []*node{nodeFor("fan", fan(most))}, workers: rapid.IntRange(1, 5).Draw(t, "workers")}
		stages := []stage{first}
		if rapid.Bool().Draw(t, "two stages") {
			stages = append(stages, stage{nodes: []*node{nodeFor("pass", stepFunc(pass))}, workers: rapid.IntRange(1, 5).Draw(t, "more workers")})
		}
		got := &finishes{known: map[int64][]string{}, last: map[int64]int{}}
		r := &run{flow: flowOf(stages...), progress: &Progress{}, finished: got.take}
		out := map[int64][]string{}
		sink := &resultSink{run: r, yield: func(res *Result) bool {
			text := fmt.Sprint(res.values[0])
			if res.Err != nil {
				text = res.Err.Error()
			}
			out[res.Number] = append(out[res.Number], text)
			return true
		}}
		head := r.chain(t.Context(), r.flow.stages, sink)
		defer head.stop()
		inputs := func(yield func(Input) bool) {
			for i := range n {
				if !yield(Input{Number: int64(2*i + 1)}) { // every other row of a file
					return
				}
			}
		}
		if err := r.feed(t.Context(), inputs, head); err != nil {
			t.Fatal(err)
		}
		for i := range n {
			number := int64(2*i + 1)
			if got.last[number] != 1 || !slices.Equal(got.known[number], out[number]) {
				t.Fatalf("row %d was finished %d times with %q; %q came out", number, got.last[number], got.known[number], out[number])
			}
		}
		if len(got.last) != n {
			t.Fatalf("%d rows were told of, %d were run", len(got.last), n)
		}
	})
}

// TestARowThatIsDoneIsToldOfBeforeTheOneInFrontOfIt: what a worker has done is
// not lost with a row that takes long.
func TestARowThatIsDoneIsToldOfBeforeTheOneInFrontOfIt(t *testing.T) {
	told := make(chan int64, 10)
	wait := func(_ context.Context, row *steps.Row, emit steps.Emit) error {
		if row.Number == 1 {
			for range 3 { // until the others are told of
				<-told
			}
		}
		return emit(row)
	}
	r := &run{flow: flowOf(stage{nodes: []*node{nodeFor("wait", stepFunc(wait))}, workers: 4}), progress: &Progress{}}
	r.finished = func(number int64, _ []*Result, _ bool) error { told <- number; return nil }
	out := &resultSink{run: r, yield: func(*Result) bool { return true }}
	head := r.chain(t.Context(), r.flow.stages, out)
	defer head.stop()
	if err := r.feed(t.Context(), slices.Values(make([]Input, 4)), head); err != nil {
		t.Fatal(err)
	}
}

func TestAnErrorOfWhoIsToldEndsTheRun(t *testing.T) {
	full := errors.New("the disk is full")
	for _, workers := range []int{1, 3} {
		r := &run{flow: flowOf(stage{nodes: []*node{nodeFor("pass", stepFunc(pass))}, workers: workers}), progress: &Progress{}}
		r.finished = func(number int64, _ []*Result, _ bool) error {
			if number == 5 {
				return full
			}
			return nil
		}
		out := &resultSink{run: r, yield: func(*Result) bool { return true }}
		head := r.chain(t.Context(), r.flow.stages, out)
		err := r.feed(t.Context(), slices.Values(make([]Input, 100)), head)
		head.stop()
		if !errors.Is(err, full) {
			t.Errorf("workers %d: the run ended with %v", workers, err)
		}
	}
}

// outAt runs a flow of several sections and tells what comes out at which second.
func outAt(t *testing.T, f *flow, rows func(func(Input) bool)) []string {
	t.Helper()
	r := &run{flow: f, progress: &Progress{}}
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

// TestAGroupThatHasWaitedLongEnoughGoesOn: whether the rows come slowly or the
// step before is slow, and never with an empty group.
func TestAGroupThatHasWaitedLongEnoughGoesOn(t *testing.T) {
	slowRows := func(yield func(Input) bool) {
		for _, pause := range []time.Duration{0, time.Second, 10 * time.Second, 0, 0, 0, 0, 20 * time.Second} {
			time.Sleep(pause)
			if !yield(Input{}) {
				return
			}
		}
	}
	group := func() *node { return &node{id: "group", batch: gather(3), wait: 5 * time.Second, count: &counter{}} }
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
			t.Errorf("a group at the beginning: got %q", got)
		}
	})
}

func TestALiveFlowStopsLikeAnyOther(t *testing.T) {
	boom := errors.New("boom")
	f := func() *flow {
		return flowOf(stage{nodes: []*node{nodeFor("count", stepFunc(count))}, workers: 2},
			stage{nodes: []*node{{id: "group", batch: gather(2), wait: time.Hour, count: &counter{}}}, workers: 1})
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
