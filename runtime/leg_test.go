package runtime

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/steps"
)

// Heap is a Keeper in memory. After some rows it fails, as a run that is ended.
type Heap struct {
	mu   sync.Mutex
	rows map[CheckpointKey][][]byte
	open map[CheckpointKey][][]byte
	room int // how many more rows are kept; below 0 for any number
}

// ErrHeap ends a run.
var ErrHeap = errors.New("ended")

// NewHeap is a Keeper that keeps so many rows before it fails; below 0 any number.
func NewHeap(room int) *Heap {
	return &Heap{rows: map[CheckpointKey][][]byte{}, open: map[CheckpointKey][][]byte{}, room: room}
}

// More has it keep so many rows more.
func (h *Heap) More(room int) { h.room, h.open = room, map[CheckpointKey][][]byte{} }

func (h *Heap) Keep(row CheckpointKey, made []CheckpointRow, last bool) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.room == 0 {
		return ErrHeap
	}
	for _, k := range made {
		h.open[row] = append(h.open[row], slices.Clone(k.Data))
	}
	if !last {
		return nil
	}
	if _, twice := h.rows[row]; twice {
		return fmt.Errorf("%v was finished twice", row)
	}
	h.room--
	h.rows[row] = h.open[row]
	return nil
}

func (h *Heap) Kept(row CheckpointKey, take func([]byte) error) (bool, error) {
	h.mu.Lock()
	all, known := h.rows[row]
	h.mu.Unlock()
	for _, data := range all {
		if err := take(data); err != nil {
			return true, err
		}
	}
	return known, nil
}

// summing is a flow with three legs: work, groups, work on the groups, groups of
// those, work. Each step counts what it is asked.
type summing struct {
	mu    sync.Mutex
	asked map[string]int
}

func (s *summing) step(id string, most int) *node {
	return nodeFor(id, stepFunc(func(_ context.Context, row *steps.Row, emit steps.Emit) error {
		text := fmt.Sprint(id, " ", row.Values[0], " ", row.Place)
		s.mu.Lock()
		s.asked[text]++
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

// sized gathers the first slots of a group, and tells the sum's source as Collect does.
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
	group := func(id string, size, leg int) stage {
		n := &node{id: id, batch: sized(size), count: &counter{}}
		return stage{nodes: []*node{n}, workers: 1, gathers: true, leg: leg}
	}
	f := flowOf(stage{nodes: []*node{s.step("a", 3)}, workers: workers},
		group("g", first, 1),
		stage{nodes: []*node{s.step("b", 2)}, workers: workers, leg: 1}, stage{nodes: []*node{s.step("c", 1)}, workers: 1, leg: 1},
		group("h", second, 2),
		stage{nodes: []*node{s.step("d", 1)}, workers: workers, leg: 2})
	f.spec.Outputs = []spec.Ref[*spec.Variable]{{To: f.layout.vars[0]}}
	f.layout.slots[f.layout.vars[0]] = 0
	for range f.nodes {
		f.spec.Steps = append(f.spec.Steps, &spec.StepItem{Step: &spec.Echo{}})
	}
	return f
}

// run takes n rows through the flow and tells what comes out.
func (s *summing) run(t context.Context, f *flow, n int, k Checkpointer) ([]string, error) {
	r := &run{flow: f, progress: &Progress{}, keeper: k}
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

// TestAFlowThatGathersRowsGoesOnWhereItWas: whenever it is ended, and with
// however many workers, the same comes out as of a run that is not, and
// nothing is done twice that was kept.
func TestAFlowThatGathersRowsGoesOnWhereItWas(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 60).Draw(t, "rows")
		first, second := rapid.IntRange(0, 4).Draw(t, "group"), rapid.IntRange(0, 4).Draw(t, "groups")
		calm := &summing{asked: map[string]int{}}
		want, err := calm.run(t.Context(), calm.flow(1, first, second), n, nil)
		if err != nil {
			t.Fatal(err)
		}
		clear(calm.asked) // questions have the rows' places in the legs, which nobody counted
		if _, err := calm.run(t.Context(), calm.flow(1, first, second), n, NewHeap(-1)); err != nil {
			t.Fatal(err)
		}
		keep := NewHeap(-1)
		s := &summing{asked: map[string]int{}}
		ends := 0
		for {
			keep.More(rapid.IntRange(-1, 30).Draw(t, "until"))
			if ends == 5 {
				keep.room = -1
			}
			got, err := s.run(t.Context(), s.flow(rapid.SampledFrom([]int{1, 3}).Draw(t, "workers"), first, second), n, keep)
			if errors.Is(err, ErrHeap) {
				ends++
				continue
			}
			if err != nil || !slices.Equal(got, want) {
				t.Fatalf("after %d ends: %v\ngot  %q\nwant %q", ends, err, got, want)
			}
			break
		}
		for text := range calm.asked {
			if again := s.asked[text] - 1; again < 0 || again > ends {
				t.Fatalf("%s was asked %d times in %d runs", text, again+1, ends+1)
			}
		}
		total := 0
		for _, times := range s.asked {
			total += times
		}
		if most := len(calm.asked) + ends*3*4*lookahead; total > most {
			t.Fatalf("%d questions instead of %d after %d ends", total, len(calm.asked), ends)
		}
	})
}

// TestWhatIsKnownSaysSo: of a run that was complete nothing is done again, and
// its results are marked as known.
func TestWhatIsKnownSaysSo(t *testing.T) {
	keep := NewHeap(-1)
	s := &summing{asked: map[string]int{}}
	want, err := s.run(t.Context(), s.flow(2, 2, 2), 40, keep)
	if err != nil {
		t.Fatal(err)
	}
	clear(s.asked)
	got, err := s.run(t.Context(), s.flow(2, 2, 2), 40, keep)
	if err != nil || !slices.Equal(got, want) || len(s.asked) > 0 {
		t.Errorf("%v, %d questions\ngot  %q\nwant %q", err, len(s.asked), got, want)
	}
}

// TestRowsThatHoldTheSameAreToldApart: a group like one before it is done even
// though the other is known.
func TestRowsThatHoldTheSameAreToldApart(t *testing.T) {
	k := (&run{flow: (&summing{}).flow(1, 2, 2)}).newSegmentCheckpoint(1)
	row := func(number int64) CheckpointKey {
		return k.mark(&steps.Row{Values: []any{"x"}, Session: "s", Number: number})
	}
	seen := map[CheckpointKey]bool{}
	for _, number := range []int64{0, 1, 1, 0, 2, 0} {
		m := row(number)
		if seen[m] {
			t.Fatalf("two rows have one mark: %v", m)
		}
		seen[m] = true
	}
	if again := (&run{flow: k.flow}).newSegmentCheckpoint(1); again.mark(&steps.Row{Values: []any{"x"}, Session: "s"}) != (&run{flow: k.flow}).newSegmentCheckpoint(1).mark(&steps.Row{Values: []any{"x"}, Session: "s"}) {
		t.Error("a row has another mark in another run")
	}
}
