package evalrun

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/qtype-dev/qtype/internal/textfmt"
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
func (x *execution) runUntil(ctx context.Context) {
	sessions := x.sessions()
	if x.config.Until == 0 {
		x.run(ctx, sessions)
		return
	}
	random := rand.New(rand.NewPCG(seed1, seed2))
	random.Shuffle(len(sessions), func(i, j int) { sessions[i], sessions[j] = sessions[j], sessions[i] })
	planned := looks(len(sessions))
	x.miss = alpha / float64(len(planned))
	for _, n := range planned {
		x.run(ctx, sessions[:n])
		if ctx.Err() != nil || x.err != nil {
			return
		}
		data, results := x.data, x.results
		x.keep(slices.Concat(sessions[:n]...))
		width, of := x.widest()
		switch {
		case width <= x.config.Until:
			return
		case n == len(sessions):
			x.warnings = append(x.warnings, fmt.Sprintf("--until %v is not reached with all %s: the interval of %s is ±%.3f", x.config.Until, textfmt.Count(int64(len(data.rows)), "row"), of, width))
		}
		x.data, x.results = data, results
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
