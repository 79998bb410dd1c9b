package runtime

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
	"github.com/qtype-dev/qtype/steps"
)

// newTestNode returns the node of a step with the declared retry policy.
func newTestNode(t *testing.T, base *spec.StepBase, r steps.Runner) *node {
	t.Helper()
	base.ID = "s"
	n, err := newNode(spec.PlanStep(&spec.Echo{StepBase: *base}), r, &layout{})
	if err != nil {
		t.Fatal(err)
	}
	n.outputs = []int{1}
	return n
}

func TestRetry_EmitsRowsOnce(t *testing.T) {
	var calls atomic.Int64
	flaky := stepFunc(func(_ context.Context, row *steps.Row, emit steps.Emit) error {
		row.Values[0] = "changed by a failed attempt"
		if err := emit(row.Clone()); err != nil {
			return err
		}
		if calls.Add(1) < 3 {
			return errors.New("not yet")
		}
		return emit(row)
	})
	retry := &spec.RetryPolicy{MaxAttempts: 3, InitialDelay: spec.Duration(time.Microsecond), MaxDelay: spec.Duration(time.Millisecond)}
	n := newTestNode(t, &spec.StepBase{Retry: retry}, flaky)
	rows, err := drive(t.Context(), []stage{{nodes: []*node{n}, workers: 1}}, 1)
	if err != nil || len(rows) != 2 || rows[0].Err != nil || calls.Load() != 3 {
		t.Fatalf("%d rows after %d calls, %v", len(rows), calls.Load(), err)
	}
	calls.Store(-10)
	rows, err = drive(t.Context(), []stage{{nodes: []*node{n}, workers: 1}}, 1)
	if err != nil || len(rows) != 1 || rows[0].Values[0] != 0 || !strings.Contains(rows[0].Err.Error(), "not yet, tried 3 times") {
		t.Fatalf("%v, %v", rows, err)
	}
}

func TestRetry_Timeout(t *testing.T) {
	slow := stepFunc(func(ctx context.Context, row *steps.Row, emit steps.Emit) error {
		if row.Values[0] == 1 {
			<-ctx.Done()
			return ctx.Err()
		}
		return emit(row)
	})
	n := newTestNode(t, &spec.StepBase{Timeout: spec.Duration(250 * time.Millisecond)}, slow)
	for _, workers := range []int{1, 3} {
		synctest.Test(t, func(t *testing.T) { // a fake clock, which does not advance while code runs
			rows, err := drive(t.Context(), []stage{{nodes: []*node{n}, workers: workers}}, 3)
			if err != nil || len(rows) != 3 {
				t.Fatal(len(rows), err)
			}
			var late *TimeoutError
			if !errors.As(rows[1].Err, &late) || rows[0].Err != nil || rows[2].Err != nil {
				t.Errorf("row 2 ended with %v", rows[1].Err)
			}
		})
	}
}

func TestRetry_Cancel(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	failing := stepFunc(func(context.Context, *steps.Row, steps.Emit) error { cancel(why); return errors.New("again") })
	retry := &spec.RetryPolicy{MaxAttempts: 1000, InitialDelay: spec.Duration(time.Hour), MaxDelay: spec.Duration(time.Hour)}
	rows, err := drive(ctx, []stage{{nodes: []*node{newTestNode(t, &spec.StepBase{Retry: retry}, failing)}, workers: 1}}, 2)
	if !errors.Is(err, why) || len(rows) != 0 {
		t.Errorf("%d rows, %v", len(rows), err)
	}
}

// half is a batch step that fails every other row.
type half struct{}

func (half) Size() int { return 0 }

func (half) Batch(_ context.Context, rows []*steps.Row, emit steps.Emit) error {
	for i, r := range rows {
		if i%2 == 1 {
			r.Err = &steps.Error{Step: "s", Err: errors.New("odd")}
		}
		if err := emit(r); err != nil {
			return err
		}
	}
	return nil
}

// once fails rows until they are tried often enough, and counts the rows of each call.
type once struct {
	tries map[int]int // by the value of the row: the number of attempts that fail
	calls []int
}

func (*once) Size() int { return 0 }

func (o *once) Batch(_ context.Context, rows []*steps.Row, emit steps.Emit) error {
	o.calls = append(o.calls, len(rows))
	for _, r := range rows {
		if key := r.Values[0].(int); o.tries[key] > 0 {
			o.tries[key]--
			r.Err = &steps.Error{Step: "s", Err: errors.New("not yet")}
		}
		if err := emit(r); err != nil {
			return err
		}
	}
	return nil
}

// TestRetry_RowsOfBatch: single rows that a batch step fails are tried again, the others are not, and their order stays.
func TestRetry_RowsOfBatch(t *testing.T) {
	o := &once{tries: map[int]int{1: 1, 2: 2, 4: 5}}
	retry := &spec.RetryPolicy{MaxAttempts: 3, InitialDelay: spec.Duration(time.Microsecond), MaxDelay: spec.Duration(time.Millisecond)}
	n := newTestNode(t, &spec.StepBase{Retry: retry}, o)
	first := nodeFor("first", stepFunc(func(_ context.Context, row *steps.Row, emit steps.Emit) error { return emit(row) }))
	rows, err := drive(t.Context(), []stage{{nodes: []*node{first}, workers: 1}, {nodes: []*node{n}, workers: 1}}, 5)
	var got []string
	for i, row := range rows {
		if row.Values[0] != i {
			t.Errorf("row %d is %v", i, row.Values[0])
		}
		if row.Err != nil {
			got = append(got, row.Err.Error())
		}
	}
	if err != nil || len(rows) != 5 || len(got) != 1 || !strings.Contains(got[0], "not yet, tried 3 times") {
		t.Errorf("%d rows, %q, %v", len(rows), got, err)
	}
	if want := []int{5, 2, 1, 1, 1}; !slices.Equal(o.calls, want) {
		t.Errorf("calls of %v rows, not %v", o.calls, want)
	}
}

func TestRetry_OnError(t *testing.T) {
	odd := stepFunc(func(_ context.Context, row *steps.Row, emit steps.Emit) error {
		row.Values = append(row.Values, "partial")
		if row.Values[0].(int)%2 == 1 {
			return errors.New("odd")
		}
		return emit(row)
	})
	pad := stepFunc(func(_ context.Context, row *steps.Row, emit steps.Emit) error {
		row.Values = append(row.Values, "old")
		return emit(row)
	})
	for _, c := range []struct {
		onError     string
		rows, fails int
	}{{"", 4, 2}, {"fail", 4, 2}, {"skip", 2, 0}, {"continue", 4, 0}} {
		for name, r := range map[string]steps.Runner{"step": odd, "batch": half{}} {
			n := newTestNode(t, &spec.StepBase{OnError: c.onError}, r)
			stages := []stage{{nodes: []*node{n}, workers: 1}}
			if name == "batch" {
				stages = []stage{{nodes: []*node{nodeFor("pad", pad)}, workers: 1}, stages[0]}
			}
			rows, err := drive(t.Context(), stages, 4)
			fails := 0
			for _, row := range rows {
				if row.Err != nil {
					fails++
				}
			}
			if err != nil || len(rows) != c.rows || fails != c.fails || n.count.failed.Load() != 2 {
				t.Errorf("%s, on_error %q: %d rows, %d failed, %d counted, %v", name, c.onError, len(rows), fails, n.count.failed.Load(), err)
			}
			if c.onError == "continue" && rows[1].Values[1] != value.Unset {
				t.Errorf("%s: a row that continues has what the step left in its output: %v", name, rows[1].Values)
			}
		}
	}
}
