package evalrun

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/qtype-dev/qtype/spec"
)

// The statistics. Rows of a session, and trials of a row, are not independent: their cluster is, and all
// errors are computed from the differences between clusters.

// alpha is the probability that an interval does not contain the true mean, or that equal variants differ
// significantly.
const alpha = 0.05

// observation is the scores of a metric in the trials of one row.
type observation struct {
	row     int64
	cluster string // the session of the row, or the row itself
	values  []float64
}

// Summary is the mean of a metric over the rows of a variant.
type Summary struct {
	Mean     float64   `json:"mean"`               // rows have the same weight, for any number of their trials
	Low      float64   `json:"low"`                // the lower end of the 95 % interval
	High     float64   `json:"high"`               // the upper end
	Count    int       `json:"count"`              // results with a value
	Errors   int       `json:"errors"`             // results without a value
	Clusters int       `json:"clusters"`           // independent parts: sessions, and rows without one
	Noise    float64   `json:"noise,omitempty"`    // the share of the mean's variance that more trials would reduce, from 0 to 1
	PassAt   []float64 `json:"pass_at,omitempty"`  // pass@k for k from 1: the probability that one of k trials passes
	PassHat  []float64 `json:"pass_hat,omitempty"` // pass^k for k from 1: the probability that all of k trials pass
}

// summarize returns the mean with its interval, which misses the true mean with the probability miss: Wilson's
// for scores from 0 to 1, with the effective number of independent results, and Student's for values with a unit,
// which are not negative.
func summarize(rows []observation, rate, score bool, miss float64) Summary {
	e := estimateOf(rows)
	s := Summary{Mean: e.mean, Low: e.mean, High: e.mean, Count: e.values, Clusters: len(e.sums)}
	switch {
	case e.values == 0:
	case score:
		s.Low, s.High = wilson(e.mean, e.effective(rate, miss), normalQuantile(1-miss/2))
	case len(e.sums) > 1:
		margin := tQuantile(1-miss/2, len(e.sums)-1) * e.se
		s.Low, s.High = max(0, e.mean-margin), e.mean+margin
	}
	if rate {
		s.PassAt, s.PassHat = passes(rows)
	}
	if e.se > 0 {
		s.Noise = min(1, e.within/(e.se*e.se))
	}
	return s
}

// estimate is a mean over rows with its standard error between clusters.
type estimate struct {
	mean, se float64
	within   float64   // the part of the variance, se², that is between trials of a row
	rows     int       // with a value
	values   int       // of all trials
	sums     []float64 // of the means of the rows of each cluster
}

// estimateOf computes the mean of the means of the rows.
func estimateOf(rows []observation) (e estimate) {
	index, counts := map[string]int{}, []float64{}
	for _, r := range rows {
		if len(r.values) == 0 {
			continue
		}
		i, known := index[r.cluster]
		if !known {
			i = len(e.sums)
			index[r.cluster], e.sums, counts = i, append(e.sums, 0), append(counts, 0)
		}
		m := mean(r.values)
		e.sums[i], counts[i] = e.sums[i]+m, counts[i]+1
		e.mean, e.rows, e.values = e.mean+m, e.rows+1, e.values+len(r.values)
		if n := float64(len(r.values)); n > 1 {
			for _, v := range r.values {
				e.within += (v - m) * (v - m) / (n - 1) / n
			}
		}
	}
	n, clusters := float64(max(e.rows, 1)), float64(len(e.sums))
	e.mean, e.within = e.mean/n, e.within/n/n
	if clusters > 1 {
		sum := 0.0
		for i, s := range e.sums {
			d := s - counts[i]*e.mean
			sum += d * d
		}
		e.se = math.Sqrt(clusters/(clusters-1)*sum) / n
	}
	return e
}

// effective returns the number of independent results, each 0 or 1, that have as much information about the
// mean (Korn and Graubard). The variance of a few clusters can be low by chance: it is taken together with a
// quarter of a cluster that has the largest variance, that of a rate.
func (e *estimate) effective(rate bool, miss float64) float64 {
	n, most := float64(len(e.sums)), e.mean*(1-e.mean)
	if len(e.sums) == 1 || most <= 0 || rate && e.values == len(e.sums) {
		return n
	}
	const prior = 0.25
	shrunk := (e.mean*n + 1) / (n + 2)
	variance := ((n-1)*e.se*e.se + prior*shrunk*(1-shrunk)/n) / (n - 1 + prior)
	ratio := normalQuantile(1-miss/2) / tQuantile(1-miss/2, len(e.sums)-1)
	return max(1, most/variance*ratio*ratio)
}

func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

// wilson returns Wilson's score interval of a rate.
func wilson(p, n, z float64) (low, high float64) {
	center := p + z*z/(2*n)
	margin := z * math.Sqrt(p*(1-p)/n+z*z/(4*n*n))
	scale := 1 + z*z/n
	return max(0, (center-margin)/scale), min(1, (center+margin)/scale)
}

// normalQuantile returns a quantile of the normal distribution.
func normalQuantile(p float64) float64 { return math.Sqrt2 * math.Erfinv(2*p-1) }

// maxDegrees is the number of degrees of freedom from which Student's distribution is taken as normal.
const maxDegrees = 10_000

// tQuantile returns a quantile, of at least 1/2, of Student's distribution.
func tQuantile(p float64, degrees int) float64 {
	if degrees > maxDegrees {
		return normalQuantile(p)
	}
	low, high := 0.0, 1.0
	for tDistribution(high, degrees) < p {
		high *= 2
	}
	for range 60 {
		if middle := (low + high) / 2; tDistribution(middle, degrees) < p {
			low = middle
		} else {
			high = middle
		}
	}
	return high
}

// tDistribution returns the probability of at most t, which is not negative, by the finite series for whole
// degrees of freedom (Abramowitz and Stegun, 26.7.3 and 26.7.4).
func tDistribution(t float64, degrees int) float64 {
	angle := math.Atan(t / math.Sqrt(float64(degrees)))
	cosine := math.Cos(angle) * math.Cos(angle)
	term, first := 1.0, 1
	if degrees%2 == 1 {
		term, first = math.Cos(angle), 2
	}
	sum := 0.0
	for k := first; k <= degrees-1; k += 2 {
		sum += term
		term *= cosine * float64(k) / float64(k+1)
	}
	inside := math.Sin(angle) * sum
	if degrees%2 == 1 {
		inside = 2 / math.Pi * (angle + inside)
	}
	return 0.5 + inside/2
}

// Comparison is the difference of a metric between two variants on the same rows.
type Comparison struct {
	Metric     string  `json:"metric"`
	From       string  `json:"from"`       // the id of the first variant
	To         string  `json:"to"`         // the id of the other variant
	Difference float64 `json:"difference"` // of the means: to - from
	Low        float64 `json:"low"`        // the lower end of its 95 % interval; the intervals of all variants hold together
	High       float64 `json:"high"`       // the upper end
	Better     int     `json:"better"`     // rows in which to is better
	Worse      int     `json:"worse"`      // rows in which to is worse
	Rows       int     `json:"rows"`       // rows with a value of both
	P          float64 `json:"p"`          // the probability of such a difference between equal variants, corrected for their number
	Detectable float64 `json:"detectable"` // the difference that is found with the probability 80 %; 0 if unknown
}

// Significant reports whether equal variants differ as much with a probability of at most 5 %.
func (c *Comparison) Significant() bool { return c.Rows > 0 && c.P <= alpha }

// compare compares two variants row by row. count is the number of comparisons with the first variant.
func compare(from, to []observation, of spec.MetricRow, count int, miss float64) Comparison {
	var c Comparison
	differences := pairs(from, to, func(a, b observation) {
		switch d := mean(b.values) - mean(a.values); {
		case d == 0:
		case d > 0 != of.Lower:
			c.Better++
		default:
			c.Worse++
		}
	})
	e := estimateOf(differences)
	c.Rows, c.Difference, c.P = e.rows, e.mean, 1
	c.Low, c.High = e.mean, e.mean
	if e.rows == 0 {
		return c
	}
	units := make([]unit, len(e.sums))
	for i, s := range e.sums {
		units[i] = unit{[]float64{0}, []float64{s}}
	}
	_, either := permute(units)
	c.P = min(1, either*float64(count))
	if len(e.sums) > 1 {
		t := tQuantile(1-miss/2/float64(count), len(e.sums)-1)
		c.Low, c.High = e.mean-t*e.se, e.mean+t*e.se
		const power = 0.8
		c.Detectable = (t + normalQuantile(power)) * e.se
		if of.Unit == "" {
			c.Low, c.High = max(-1, c.Low), min(1, c.High)
		}
	}
	return c
}

// pairs returns the difference, b - a, of the means of the rows that have values in both lists, which are in
// the order of the rows.
func pairs(from, to []observation, each func(a, b observation)) (differences []observation) {
	byRow := make(map[int64]observation, len(from))
	for _, a := range from {
		byRow[a.row] = a
	}
	for _, b := range to {
		a, known := byRow[b.row]
		if !known || len(a.values) == 0 || len(b.values) == 0 {
			continue
		}
		each(a, b)
		differences = append(differences, observation{b.row, b.cluster, []float64{mean(b.values) - mean(a.values)}})
	}
	return differences
}

// unit is values of two equal sources, by a hypothesis: each of them could be that of the other source.
type unit struct{ from, to []float64 }

// The permutations of a test, from a generator with a fixed seed, so that the same results give the same
// report. More values than maxPermuted take too long, and the distribution of their sum is normal.
const (
	permutations = 1999
	maxPermuted  = 20_000
	seed1, seed2 = 0x71747970652d6576, 0x616c2d626f6f7473
)

// permute returns the probabilities that units without a difference have at least the given sum of the
// differences of their means, to - from: in this direction, and in either. Each unit is permuted by itself.
func permute(units []unit) (more, either float64) {
	observed, variance, values := 0.0, 0.0, 0
	var pools [][]float64
	var sizes []int // how many values of a pool are of from
	for _, u := range units {
		pool := append(append([]float64{}, u.from...), u.to...)
		spread, m := 0.0, mean(pool)
		for _, v := range pool {
			spread += (v - m) * (v - m)
		}
		if spread == 0 {
			continue
		}
		observed += mean(u.to) - mean(u.from)
		variance += spread / float64(len(pool)-1) * (1/float64(len(u.from)) + 1/float64(len(u.to)))
		pools, sizes, values = append(pools, pool), append(sizes, len(u.from)), values+len(pool)
	}
	if len(pools) == 0 {
		return 1, 1
	}
	if values > maxPermuted {
		z := observed / math.Sqrt(variance)
		return math.Erfc(z/math.Sqrt2) / 2, math.Erfc(math.Abs(z) / math.Sqrt2)
	}
	random := rand.New(rand.NewPCG(seed1, seed2))
	const rounding = 1e-9
	above, beyond := 1, 1 // the observed order is one of them
	for range permutations {
		sum := 0.0
		for i, pool := range pools {
			sum += split(random, pool, sizes[i])
		}
		if sum >= observed-rounding {
			above++
		}
		if math.Abs(sum) >= math.Abs(observed)-rounding {
			beyond++
		}
	}
	return float64(above) / (permutations + 1), float64(beyond) / (permutations + 1)
}

// split chooses n values of a pool at random, and returns the mean of the others less that of the chosen ones.
func split(random *rand.Rand, pool []float64, n int) float64 {
	chosen, all := 0.0, 0.0
	for i := range n {
		j := i + random.IntN(len(pool)-i)
		pool[i], pool[j] = pool[j], pool[i]
		chosen += pool[i]
	}
	for _, v := range pool {
		all += v
	}
	return (all-chosen)/float64(len(pool)-n) - chosen/float64(n)
}

// holm corrects probabilities for their number (Holm's method).
func holm(p []float64) []float64 {
	order := make([]int, len(p))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(p[a], p[b]) })
	corrected, last := make([]float64, len(p)), 0.0
	for i, at := range order {
		last = max(last, min(1, p[at]*float64(len(p)-i)))
		corrected[at] = last
	}
	return corrected
}
