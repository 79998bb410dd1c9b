package evalrun

import (
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"

	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/spec"
)

// firstLook is the number of sessions after which the intervals are looked at for the first time. Each look has
// twice as many sessions as the one before.
const firstLook = 50

// looks returns the numbers of sessions after which an evaluation of all may end.
func looks(all int) []int {
	var at []int
	for n := firstLook; n < all; n *= 2 {
		at = append(at, n)
	}
	return append(at, all)
}

// runUntil runs the rows. With Config.Until it ends when the intervals are narrow enough: sessions are run in a
// random order that is always the same, so that those before a look are a sample of all. Each of k looks could end
// the evaluation at an interval that is narrow by chance, so each interval may miss with a k-th of the probability.
// With Config.Budget it ends when the money is spent, with the sessions of this order that are finished.
func (x *execution) runUntil(ctx context.Context) {
	sessions := x.sessions()
	if x.config.Until == 0 && x.config.Budget == 0 {
		x.run(ctx, sessions)
		return
	}
	random := rand.New(rand.NewPCG(seed1, seed2))
	random.Shuffle(len(sessions), func(i, j int) { sessions[i], sessions[j] = sessions[j], sessions[i] })
	planned := []int{len(sessions)}
	if x.config.Until > 0 {
		planned = looks(len(sessions))
	}
	x.miss = alpha / float64(len(planned))
	for _, n := range planned {
		x.run(ctx, sessions[:n])
		if ctx.Err() != nil || x.err != nil {
			return
		}
		data, results := x.data, x.results
		finished := x.finished(sessions[:n])
		if len(finished) == 0 {
			x.err = fmt.Errorf("--budget %v is spent before one session is finished", x.config.Budget)
			return
		}
		x.keep(slices.Concat(finished...))
		if x.isEnd(len(finished) < n, n == len(sessions), len(data.rows)) {
			return
		}
		x.data, x.results = data, results
	}
}

// isEnd reports whether the evaluation ends with the rows that are kept, of all of the data, and warns if it is not what was asked for.
func (x *execution) isEnd(spent, last bool, all int) bool {
	width, of := x.widest()
	if x.config.Until > 0 && width <= x.config.Until {
		return true
	}
	if spent {
		x.warnings = append(x.warnings, fmt.Sprintf("--budget %v is spent with %s of %s", x.config.Budget, textfmt.Thousands(len(x.data.rows)), textfmt.Count(int64(all), "row")))
	}
	if x.config.Until > 0 && (spent || last) {
		with := textfmt.Count(int64(len(x.data.rows)), "row")
		if !spent {
			with = "all " + with
		}
		x.warnings = append(x.warnings, fmt.Sprintf("--until %v is not reached with %s: the interval of %s is ±%.3f", x.config.Until, with, of, width))
	}
	return spent || last
}

// finished returns the sessions whose rows have results of all variants and trials.
func (x *execution) finished(sessions [][]int) (all [][]int) {
	for _, rows := range sessions {
		if len(x.groups([][]int{rows})) == 0 {
			all = append(all, rows)
		}
	}
	return all
}

// isSpent reports whether the budget is.
func (x *execution) isSpent() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.config.Budget > 0 && x.spent >= x.config.Budget
}

// checkPrices reports a model whose cost is not known, so that no budget can be kept.
func (x *execution) checkPrices() error {
	if x.config.Budget == 0 {
		return nil
	}
	for m := range x.called() {
		if m.Base().CallPrices() == nil && !m.Base().IsMock() {
			return &UsageError{fmt.Sprintf("--budget: model %s has no prices: declare them", m.EntityID())}
		}
	}
	return nil
}

// called returns the models that the evaluation calls.
func (x *execution) called() iter.Seq[spec.ModelEntity] {
	return func(yield func(spec.ModelEntity) bool) {
		var all []spec.ModelEntity
		for _, v := range x.variants {
			for _, f := range v.program.App.Flows {
				if f.ID != x.flow.ID {
					continue
				}
				for s := range f.Plan().All() {
					all = append(all, s.Models()...)
				}
			}
		}
		for _, m := range x.metrics {
			all = append(all, m.models()...)
		}
		for _, u := range x.users {
			if u.Model != nil {
				all = append(all, u.Model)
			}
		}
		for _, m := range all {
			if !yield(m) {
				return
			}
		}
	}
}

// keep removes all rows but some, by their places.
func (x *execution) keep(rows []int) {
	slices.Sort(rows)
	data, results := *x.data, []*Result(nil)
	data.rows = nil
	for _, i := range rows {
		data.rows = append(data.rows, x.data.rows[i])
	}
	for v := range x.variants {
		for _, i := range rows {
			results = append(results, x.results[x.index(v, i, 0):x.index(v, i+1, 0)]...)
		}
	}
	x.data, x.results = &data, results
}

// widest returns half of the widest interval of a score, or of the difference of one between variants.
func (x *execution) widest() (half float64, of string) {
	for _, m := range x.metrics {
		if m.row.Unit != "" {
			continue
		}
		for v := range x.variants {
			name, s := x.variants[v].declared.ID+": "+m.declared.Name(), x.summary(v, m)
			if h := (s.High - s.Low) / 2; h > half || s.Count == 0 {
				half, of = h, name
			}
			if v == 0 {
				continue
			}
			c := x.compareVariants(m, 0, v)
			if h := (c.High - c.Low) / 2; h > half {
				half, of = h, "the difference of "+name
			}
		}
	}
	return half, of
}
