package checkpoint

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/spec/value"
	"github.com/qtype-dev/qtype/steps"
)

// memoryStore is a Store that has finished rows in memory.
type memoryStore struct {
	open, finished map[Key][][]byte
	saves          int
}

func newMemoryStore() *memoryStore {
	return &memoryStore{open: map[Key][][]byte{}, finished: map[Key][][]byte{}}
}

func (m *memoryStore) Save(key Key, rows []Row, last bool) error {
	m.saves++
	for _, r := range rows {
		m.open[key] = append(m.open[key], slices.Clone(r.Data))
	}
	if last {
		m.finished[key] = m.open[key]
	}
	return nil
}

func (m *memoryStore) Load(key Key, take func([]byte) error) (bool, error) {
	rows, found := m.finished[key]
	for _, data := range rows {
		if err := take(data); err != nil {
			return true, err
		}
	}
	return found, nil
}

// newSegment returns a segment of rows with one slot.
func newSegment(store Store, number int) *Segment {
	return NewSegment(SegmentConfig{
		Store: store, Number: number, Inputs: []int{0}, Outputs: []int{0},
		Code:   func(*steps.Error) string { return "failed" },
		Redo:   func(err *steps.Error) bool { return strings.Contains(err.Error(), "again") },
		NewRow: func() *steps.Row { return &steps.Row{Values: []any{value.Unset}} },
	})
}

func rowWith(ordinal, number int64, v any) *steps.Row {
	return &steps.Row{Ordinal: ordinal, Number: number, Session: "s", Values: []any{v}}
}

// TestSegment_Keys: equal rows of later segments have different keys, which are the
// same in another run.
func TestSegment_Keys(t *testing.T) {
	keys := func() (all []Key) {
		s := newSegment(newMemoryStore(), 1)
		for _, number := range []int64{0, 1, 1, 0, 2, 0} {
			all = append(all, s.key(rowWith(0, number, "x")))
		}
		return all
	}
	first := keys()
	for i, k := range first {
		if slices.Contains(first[:i], k) {
			t.Errorf("rows %d and %d have one key", slices.Index(first, k), i)
		}
	}
	if !slices.Equal(first, keys()) {
		t.Error("the keys differ in another run")
	}
}

// replayed returns the results of a row from an earlier run, nil if it is not finished.
func replayed(t *testing.T, s *Segment, row *steps.Row) []string {
	t.Helper()
	got := []string{}
	found, err := s.Replay(row, func(r *steps.Row) error {
		if !r.Replayed || r.Ordinal != row.Ordinal {
			t.Errorf("the row is not marked: %+v", r)
		}
		got = append(got, fmt.Sprint(r.Values[0], " ", r.Err))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if !found {
		return nil
	}
	return got
}

func TestSegment_Replay(t *testing.T) {
	failed := &steps.Error{Step: "a", Err: errors.New("no")}
	for _, number := range []int{0, 2} {
		store := newMemoryStore()
		s := newSegment(store, number)
		row := rowWith(7, 7, "in")
		if got := replayed(t, s, row); got != nil {
			t.Fatalf("a new row has results: %q", got)
		}
		r := s.NewRecorder()
		r.Begin(7)
		bad := rowWith(7, 7, value.Unset)
		bad.Err = failed
		for _, result := range []*steps.Row{rowWith(7, 7, "out"), bad} {
			if err := r.Add(result); err != nil {
				t.Fatal(err)
			}
		}
		if err := r.End(); err != nil {
			t.Fatal(err)
		}
		got := replayed(t, newSegment(store, number), rowWith(7, 7, "in"))
		if want := []string{"out <nil>", fmt.Sprint(value.Unset, " ", failed)}; !slices.Equal(got, want) {
			t.Errorf("segment %d: got %q, want %q", number, got, want)
		}
	}
}

// TestInflightRows_Finish finishes rows in order, with many results in parts, and
// not those that are to be repeated.
func TestInflightRows_Finish(t *testing.T) {
	store := newMemoryStore()
	s := newSegment(store, 0)
	f := s.NewInflightRows()
	for n := int64(1); n <= 3; n++ {
		replayed(t, s, rowWith(n, n, "in"))
		f.Begin(n)
	}
	for range 2*maxBuffered + 1 {
		if err := f.Record(rowWith(1, 1, "out")); err != nil {
			t.Fatal(err)
		}
	}
	again := rowWith(2, 2, "out")
	again.Err = &steps.Error{Step: "a", Err: errors.New("again")}
	for _, row := range []*steps.Row{again, rowWith(2, 2, "out"), rowWith(9, 9, "replayed")} {
		if err := f.Record(row); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.FinishBefore(3); err != nil {
		t.Fatal(err)
	}
	if n := len(store.finished[Key{Row: 1}]); n != 2*maxBuffered+1 || store.saves != 3 {
		t.Errorf("row 1 has %d results in %d parts", n, store.saves)
	}
	if len(store.finished) != 1 {
		t.Errorf("finished: %d rows, want row 1 only", len(store.finished))
	}
	if err := f.FinishBefore(None); err != nil || len(store.finished) != 2 {
		t.Errorf("%d rows are finished at the end, %v", len(store.finished), err)
	}
}
