package runtime

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/qtype-dev/qtype/steps"
)

// neighbours gathers rows whose numbers have the same tens, as a Collect with `by`.
type neighbours struct{ sized }

func (neighbours) SameGroup(before, row *steps.Row) bool { return before.Number/10 == row.Number/10 }

func (n neighbours) OtherGroup(before, failed *steps.Row) bool {
	return failed.Number%3 == 0 && !n.SameGroup(before, failed) // of some it is not known
}

// lastOf gathers groups, and tells each group's last row.
type lastOf struct{ size int }

func (g lastOf) Size() int { return g.size }

func (g lastOf) Batch(_ context.Context, rows []*steps.Row, emit steps.Emit) error {
	out := rows[0].Clone()
	out.Number = rows[len(rows)-1].Number
	return emit(out)
}

// TestWhatComesOfAGroupHasThePlaceOfItsLastRow: failed rows before it stand
// before it, those behind it behind it, whatever ends the groups and with
// however many workers.
func TestWhatComesOfAGroupHasThePlaceOfItsLastRow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		fails := rapid.SliceOfN(rapid.Bool(), 0, 80).Draw(t, "fails")
		size := rapid.SampledFrom([]int{0, 1, 2, 5}).Draw(t, "size")
		tens := rapid.Bool().Draw(t, "by")
		var before []string
		for _, workers := range []int{1, 8} {
			work := nodeFor("work", stepFunc(func(_ context.Context, row *steps.Row, emit steps.Emit) error {
				if fails[row.Number-1] {
					return errors.New("no")
				}
				return emit(row)
			}))
			group := &node{id: "group", batch: lastOf{size}, count: &counter{}}
			if tens {
				group.grouper = neighbours{}
			}
			rows, err := drive(t.Context(), []stage{{nodes: []*node{work}, workers: workers}, {nodes: []*node{group}, workers: 1, isBatch: true, segment: 1}}, len(fails))
			if err != nil {
				t.Fatal(err)
			}
			var order []string
			for i, row := range rows {
				order = append(order, fmt.Sprint(row.Number, row.Err))
				if i > 0 && row.Number <= rows[i-1].Number {
					t.Fatalf("row %d came out behind row %d", row.Number, rows[i-1].Number)
				}
			}
			if workers > 1 && !slices.Equal(order, before) {
				t.Fatalf("with workers: %q, without: %q", order, before)
			}
			before = order
		}
	})
}

// TestAFailedRowThatNobodyLetsWaitComesOutAtOnce: so that a run can end with it.
func TestAFailedRowThatNobodyLetsWaitComesOutAtOnce(t *testing.T) {
	out := &outSink{}
	b := newBatchSink(t.Context(), &node{id: "group", batch: lastOf{}, count: &counter{}}, out)
	asked := 0
	b.mayDefer = func(*steps.Row) bool { asked++; return asked < 3 }
	for i := range 4 {
		row := &steps.Row{Values: []any{i}, Number: int64(i + 1)}
		if i > 0 {
			row.Err = &steps.Error{Err: errors.New("no")}
		}
		if err := b.push(t.Context(), row); err != nil {
			t.Fatal(err)
		}
	}
	if got := firsts(out.rows); !slices.Equal(got, []any{1, 2, 3}) {
		t.Errorf("came out: %v", got)
	}
}

// TestRowsThatWaitAreBounded: behind a group of limited size.
func TestRowsThatWaitAreBounded(t *testing.T) {
	out := &outSink{}
	b := newBatchSink(t.Context(), &node{id: "group", batch: lastOf{2}, count: &counter{}}, out)
	for i := range 3 * maxDeferred {
		row := &steps.Row{Values: []any{i}, Number: int64(i + 1)}
		if i > 0 {
			row.Err = &steps.Error{Err: errors.New("no")}
		}
		if err := b.push(t.Context(), row); err != nil {
			t.Fatal(err)
		}
		if len(b.deferred) > maxDeferred {
			t.Fatalf("%d rows wait", len(b.deferred))
		}
	}
	if len(out.rows) < 2*maxDeferred {
		t.Errorf("%d rows came out", len(out.rows))
	}
}
