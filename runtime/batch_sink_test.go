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

// neighbours groups rows whose numbers have the same tens, as Collect with group_by.
type neighbours struct{ sized }

func (neighbours) SameGroup(before, row *steps.Row) bool { return before.Number/10 == row.Number/10 }

func (n neighbours) OtherGroup(before, failed *steps.Row) bool {
	return failed.Number%3 == 0 && !n.SameGroup(before, failed) // for some it is not known
}

// lastOf makes one row of a batch, with the number of its last row.
type lastOf struct{ size int }

func (g lastOf) Size() int { return g.size }

func (g lastOf) Batch(_ context.Context, rows []*steps.Row, emit steps.Emit) error {
	out := rows[0].Clone()
	out.Number = rows[len(rows)-1].Number
	return emit(out)
}

// TestBatchSink_Order: the result of a batch has the place of its last row among the
// failed rows, for batches by size and by group, and with any number of workers.
func TestBatchSink_Order(t *testing.T) {
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
			batch := &node{id: "batch", batch: lastOf{size}, count: &counter{}}
			if tens {
				batch.grouper = neighbours{}
			}
			rows, err := drive(t.Context(), []stage{{nodes: []*node{work}, workers: workers}, {nodes: []*node{batch}, workers: 1, isBatch: true, segment: 1}}, len(fails))
			if err != nil {
				t.Fatal(err)
			}
			var order []string
			for i, row := range rows {
				order = append(order, fmt.Sprint(row.Number, row.Err))
				if i > 0 && row.Number <= rows[i-1].Number {
					t.Fatalf("row %d was emitted after row %d", row.Number, rows[i-1].Number)
				}
			}
			if workers > 1 && !slices.Equal(order, before) {
				t.Fatalf("with workers: %q, without: %q", order, before)
			}
			before = order
		}
	})
}

// TestBatchSink_MayDefer: a failed row that may not wait is emitted at once.
func TestBatchSink_MayDefer(t *testing.T) {
	out := &outSink{}
	b := newBatchSink(t.Context(), &node{id: "batch", batch: lastOf{}, count: &counter{}}, out)
	calls := 0
	b.mayDefer = func(*steps.Row) bool { calls++; return calls < 3 }
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
		t.Errorf("emitted: %v", got)
	}
}

func TestBatchSink_MaxDeferred(t *testing.T) {
	out := &outSink{}
	b := newBatchSink(t.Context(), &node{id: "batch", batch: lastOf{2}, count: &counter{}}, out)
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
		t.Errorf("%d rows were emitted", len(out.rows))
	}
}
