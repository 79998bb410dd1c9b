package runtime

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/qtype-dev/qtype/internal/checkpoint"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/steps"
)

// HeapStore is a checkpoint.Store in memory. After some rows it fails, as a run
// does that is stopped.
type HeapStore struct {
	mu   sync.Mutex
	rows map[checkpoint.Key][][]byte
	open map[checkpoint.Key][][]byte
	room int // how many more rows are saved; below 0 for any number
}

// ErrFull ends a run.
var ErrFull = errors.New("the store is full")

// NewHeapStore returns a store that saves a number of rows before it fails; below 0
// it never fails.
func NewHeapStore(room int) *HeapStore {
	return &HeapStore{rows: map[checkpoint.Key][][]byte{}, open: map[checkpoint.Key][][]byte{}, room: room}
}

// More makes room for more rows.
func (h *HeapStore) More(room int) { h.room, h.open = room, map[checkpoint.Key][][]byte{} }

func (h *HeapStore) Save(key checkpoint.Key, made []checkpoint.Row, last bool) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.room == 0 {
		return ErrFull
	}
	for _, row := range made {
		h.open[key] = append(h.open[key], slices.Clone(row.Data))
	}
	if !last {
		return nil
	}
	if _, twice := h.rows[key]; twice {
		return fmt.Errorf("%v was finished twice", key)
	}
	h.room--
	h.rows[key] = h.open[key]
	return nil
}

func (h *HeapStore) Load(key checkpoint.Key, take func([]byte) error) (bool, error) {
	h.mu.Lock()
	all, known := h.rows[key]
	h.mu.Unlock()
	for _, data := range all {
		if err := take(data); err != nil {
			return true, err
		}
	}
	return known, nil
}

// WithStore is WithCheckpoints for a store.
func WithStore(s checkpoint.Store, flow, runID string) RunOption {
	return func(r *run) { r.checkpoints, r.checkpointFlow, r.id = s, flow, runID }
}

// summing is a flow with three segments, between two batch steps. Each of its steps
// counts its calls.
type summing struct {
	mu    sync.Mutex
	calls map[string]int
}

func (s *summing) step(id string, most int) *node {
	return nodeFor(id, stepFunc(func(_ context.Context, row *steps.Row, emit steps.Emit) error {
		text := fmt.Sprint(id, " ", row.Values[0], " ", row.Ordinal)
		s.mu.Lock()
		s.calls[text]++
		s.mu.Unlock()
		n := len(fmt.Sprint(row.Values[0])) + int(row.Number)
		if n%7 == 3 {
			return errors.New("no " + id)
		}
		for k := range n%most + 1 {
			c := row.Clone()
			c.Values[0] = fmt.Sprint(row.Values[0], id, k)
			if err := emit(c); err != nil {
				return err
			}
		}
		return nil
	}))
}

// sized joins the first slots of a batch, and sets the number as Collect does.
type sized int

func (g sized) Size() int { return int(g) }

func (g sized) Batch(_ context.Context, rows []*steps.Row, emit steps.Emit) error {
	sum := rows[0].Clone()
	for _, r := range rows[1:] {
		if r.Number != sum.Number {
			sum.Number = 0
		}
	}
	sum.Values[0] = fmt.Sprint(len(rows), rows[0].Values[0])
	return emit(sum)
}

func (s *summing) flow(workers, first, second int) *flow {
	group := func(id string, size, segment int) stage {
		n := &node{id: id, plan: &spec.StepPlan{}, batch: sized(size), count: &counter{}}
		return stage{nodes: []*node{n}, workers: 1, isBatch: true, segment: segment}
	}
	f := flowOf(stage{nodes: []*node{s.step("a", 3)}, workers: workers},
		group("g", first, 1),
		stage{nodes: []*node{s.step("b", 2)}, workers: workers, segment: 1}, stage{nodes: []*node{s.step("c", 1)}, workers: 1, segment: 1},
		group("h", second, 2),
		stage{nodes: []*node{s.step("d", 1)}, workers: workers, segment: 2})
	f.spec.Outputs = []spec.Ref[*spec.Variable]{{To: f.layout.vars[0]}}
	f.layout.slots[f.layout.vars[0]] = 0
	return f
}

// run takes n rows through the flow and returns what comes out; store may be nil.
func (s *summing) run(t context.Context, f *flow, n int, store *HeapStore) ([]string, error) {
	r := &run{flow: f, stages: f.stages, progress: &Progress{}}
	if store != nil {
		r.checkpoints = store
	}
	var out []string
	sink := &resultSink{run: r, yield: func(res *Result) bool {
		out = append(out, fmt.Sprint(res.Number, " ", res.Session, " ", res.values[0], " ", res.Err))
		return true
	}}
	head := r.chain(t, f.stages, sink)
	defer head.stop()
	return out, func() error {
		err := r.feed(t, func(yield func(Input) bool) {
			for i := range n {
				if !yield(Input{Session: fmt.Sprint(i % 3)}) {
					return
				}
			}
		}, head)
		return err
	}()
}

// TestSegments_Resume interrupts a flow with batch steps at any row and with any
// number of workers. The same comes out as of a run that is not interrupted, and no
// saved work is repeated.
func TestSegments_Resume(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 60).Draw(t, "rows")
		first, second := rapid.IntRange(0, 4).Draw(t, "first size"), rapid.IntRange(0, 4).Draw(t, "second size")
		calm := &summing{calls: map[string]int{}}
		want, err := calm.run(t.Context(), calm.flow(1, first, second), n, nil)
		if err != nil {
			t.Fatal(err)
		}
		clear(calm.calls) // calls have the rows' ordinals within segments, which that run did not count
		if _, err := calm.run(t.Context(), calm.flow(1, first, second), n, NewHeapStore(-1)); err != nil {
			t.Fatal(err)
		}
		store := NewHeapStore(-1)
		s := &summing{calls: map[string]int{}}
		stops := 0
		for {
			store.More(rapid.IntRange(-1, 30).Draw(t, "until"))
			if stops == 5 {
				store.room = -1
			}
			got, err := s.run(t.Context(), s.flow(rapid.SampledFrom([]int{1, 3}).Draw(t, "workers"), first, second), n, store)
			if errors.Is(err, ErrFull) {
				stops++
				continue
			}
			if err != nil || !slices.Equal(got, want) {
				t.Fatalf("after %d stops: %v\ngot  %q\nwant %q", stops, err, got, want)
			}
			break
		}
		for text := range calm.calls {
			if again := s.calls[text] - 1; again < 0 || again > stops {
				t.Fatalf("%s was called %d times in %d runs", text, again+1, stops+1)
			}
		}
		total := 0
		for _, times := range s.calls {
			total += times
		}
		if most := len(calm.calls) + stops*3*4*lookahead; total > most {
			t.Fatalf("%d calls instead of %d after %d stops", total, len(calm.calls), stops)
		}
	})
}

// TestSegments_ReplayComplete: nothing of a complete run is repeated.
func TestSegments_ReplayComplete(t *testing.T) {
	store := NewHeapStore(-1)
	s := &summing{calls: map[string]int{}}
	want, err := s.run(t.Context(), s.flow(2, 2, 2), 40, store)
	if err != nil {
		t.Fatal(err)
	}
	clear(s.calls)
	got, err := s.run(t.Context(), s.flow(2, 2, 2), 40, store)
	if err != nil || !slices.Equal(got, want) || len(s.calls) > 0 {
		t.Errorf("%v, %d calls\ngot  %q\nwant %q", err, len(s.calls), got, want)
	}
}

// TestSegments_RowsWithoutBatches records every row of a flow without batch steps
// once, with all its results, also rows that have none.
func TestSegments_RowsWithoutBatches(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.IntRange(0, 5).Draw(t, "most")
		n := rapid.IntRange(0, 200).Draw(t, "rows")
		stages := []stage{{nodes: []*node{nodeFor("fan", fan(most))}, workers: rapid.IntRange(1, 5).Draw(t, "workers")}}
		if rapid.Bool().Draw(t, "two stages") {
			stages = append(stages, stage{nodes: []*node{nodeFor("pass", stepFunc(pass))}, workers: rapid.IntRange(1, 5).Draw(t, "more workers")})
		}
		store := NewHeapStore(-1)
		out := map[int64]int{}
		r := &run{flow: flowOf(stages...), progress: &Progress{}, checkpoints: store}
		sink := &resultSink{run: r, yield: func(res *Result) bool { out[res.Number]++; return true }}
		r.stages = r.flow.stages
		head := r.chain(t.Context(), r.stages, sink)
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
			saved, ok := store.rows[checkpoint.Key{Row: number}]
			if !ok || len(saved) != out[number] {
				t.Fatalf("row %d was finished: %v, with %d results; %d came out", number, ok, len(saved), out[number])
			}
		}
		if len(store.rows) != n {
			t.Fatalf("%d rows were finished, %d were run", len(store.rows), n)
		}
	})
}

// saveFunc is a store that has nothing and calls the function for finished rows.
type saveFunc func(row int64) error

func (f saveFunc) Save(key checkpoint.Key, _ []checkpoint.Row, _ bool) error { return f(key.Row) }

func (f saveFunc) Load(checkpoint.Key, func([]byte) error) (bool, error) { return false, nil }

// TestSegments_SaveOutOfOrder: the results of a worker are saved while an earlier
// row is still processed.
func TestSegments_SaveOutOfOrder(t *testing.T) {
	saved := make(chan int64, 10)
	wait := func(_ context.Context, row *steps.Row, emit steps.Emit) error {
		if row.Number == 1 {
			for range 3 { // until the other rows are saved
				<-saved
			}
		}
		return emit(row)
	}
	r := &run{flow: flowOf(stage{nodes: []*node{nodeFor("wait", stepFunc(wait))}, workers: 4}), progress: &Progress{}}
	r.checkpoints = saveFunc(func(row int64) error { saved <- row; return nil })
	out := &resultSink{run: r, yield: func(*Result) bool { return true }}
	r.stages = r.flow.stages
	head := r.chain(t.Context(), r.stages, out)
	defer head.stop()
	if err := r.feed(t.Context(), slices.Values(make([]Input, 4)), head); err != nil {
		t.Fatal(err)
	}
}

func TestSegments_SaveErrorEndsRun(t *testing.T) {
	full := errors.New("the disk is full")
	for _, workers := range []int{1, 3} {
		r := &run{flow: flowOf(stage{nodes: []*node{nodeFor("pass", stepFunc(pass))}, workers: workers}), progress: &Progress{}}
		r.checkpoints = saveFunc(func(row int64) error {
			if row == 5 {
				return full
			}
			return nil
		})
		out := &resultSink{run: r, yield: func(*Result) bool { return true }}
		r.stages = r.flow.stages
		head := r.chain(t.Context(), r.stages, out)
		err := r.feed(t.Context(), slices.Values(make([]Input, 100)), head)
		head.stop()
		if !errors.Is(err, full) {
			t.Errorf("workers %d: the run ended with %v", workers, err)
		}
	}
}

// TestSegments_RejectedCredentials: rows that failed for rejected credentials are not
// finished.
func TestSegments_RejectedCredentials(t *testing.T) {
	refuse := func(_ context.Context, row *steps.Row, emit steps.Emit) error {
		if row.Number%2 == 0 {
			return &model.Error{Model: "m", Status: 401}
		}
		return emit(row)
	}
	for _, workers := range []int{1, 3} {
		store := NewHeapStore(-1)
		r := &run{flow: flowOf(stage{nodes: []*node{nodeFor("ask", stepFunc(refuse))}, workers: workers}), progress: &Progress{}, checkpoints: store}
		r.stages = r.flow.stages
		head := r.chain(t.Context(), r.stages, &resultSink{run: r, yield: func(*Result) bool { return true }})
		err := r.feed(t.Context(), slices.Values(make([]Input, 9)), head)
		head.stop()
		if err != nil || len(store.rows) != 5 {
			t.Errorf("workers %d: %d rows were finished, %v", workers, len(store.rows), err)
		}
	}
}
