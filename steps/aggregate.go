package steps

import (
	"context"
	"sync"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
)

// noInputSession is the session of the summary row if there were no rows.
const noInputSession = "aggregate-no-input"

// aggregate passes all rows on and adds one with their counts.
type aggregate struct {
	out   slot
	slots int

	mu      sync.Mutex
	passed  int64
	failed  int64
	session string // session of the last row that had not failed
}

func buildAggregate(s *spec.Aggregate, env *Env) (Runner, error) {
	out, err := env.single("output", s.Outputs)
	if err != nil {
		return nil, err
	}
	return &aggregate{out: out, slots: env.Slots.Len(), session: noInputSession}, nil
}

// Process counts a row and passes it on.
func (a *aggregate) Process(_ context.Context, row *Row, emit Emit) error {
	a.mu.Lock()
	a.passed++
	a.session = row.Session
	a.mu.Unlock()
	return emit(row)
}

// Failed counts a row that failed in an earlier step.
func (a *aggregate) Failed(*Row) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.failed++
}

// Close adds the row with the counts. No other variable is set on it.
func (a *aggregate) Close(_ context.Context, emit Emit) error {
	a.mu.Lock()
	row := &Row{Values: make([]any, a.slots), Session: a.session}
	stats := value.NewRecord("AggregateStats", value.Field{Name: "num_successful", Value: a.passed},
		value.Field{Name: "num_failed", Value: a.failed}, value.Field{Name: "num_total", Value: a.passed + a.failed})
	a.mu.Unlock()
	for i := range row.Values {
		row.Values[i] = value.Unset
	}
	a.out.write(row, stats)
	return emit(row)
}
