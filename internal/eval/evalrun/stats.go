package evalrun

import (
	"math"
	"math/rand/v2"
	"slices"
)

// The intervals: 95 %, by 2,000 samples from a generator with a fixed seed, so that the
// same results give the same report.
const (
	zScore       = 1.959963984540054
	resamples    = 2000
	seed1, seed2 = 0x71747970652d6576, 0x616c2d626f6f7473
)

// Summary is the mean of a metric over the rows of a variant.
type Summary struct {
	Mean   float64 `json:"mean"`
	Low    float64 `json:"low"`    // the lower end of the 95 % interval
	High   float64 `json:"high"`   // the upper end
	Count  int     `json:"count"`  // rows with a value
	Errors int     `json:"errors"` // rows without a value
}

// summarize returns the mean with its interval: Wilson's for rates, the bootstrap of the
// mean for other values.
func summarize(values []float64, errors int, rate bool) Summary {
	s := Summary{Count: len(values), Errors: errors}
	if len(values) == 0 {
		return s
	}
	s.Mean = mean(values)
	if rate {
		s.Low, s.High = wilson(s.Mean, len(values))
	} else {
		s.Low, s.High = bootstrap(values)
	}
	return s
}

func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

// wilson returns Wilson's score interval of a rate.
func wilson(p float64, n int) (low, high float64) {
	count, z2 := float64(n), zScore*zScore
	center := p + z2/(2*count)
	margin := zScore * math.Sqrt(p*(1-p)/count+z2/(4*count*count))
	scale := 1 + z2/count
	return max(0, (center-margin)/scale), min(1, (center+margin)/scale)
}

// bootstrap returns the percentile interval of the mean.
func bootstrap(values []float64) (low, high float64) {
	random := rand.New(rand.NewPCG(seed1, seed2)) // the report must be the same each time
	means := make([]float64, resamples)
	for i := range means {
		sum := 0.0
		for range values {
			sum += values[random.IntN(len(values))]
		}
		means[i] = sum / float64(len(values))
	}
	slices.Sort(means)
	const tail = resamples / 40 // 2.5 %
	return means[tail], means[resamples-1-tail]
}

// Comparison is the difference of a metric between two variants on the same rows.
type Comparison struct {
	Metric     string  `json:"metric"`
	From       string  `json:"from"`       // the id of the first variant
	To         string  `json:"to"`         // the id of the other variant
	Difference float64 `json:"difference"` // of the means: to - from
	Low        float64 `json:"low"`        // the lower end of its 95 % interval
	High       float64 `json:"high"`       // the upper end
	Better     int     `json:"better"`     // rows in which to is better
	Worse      int     `json:"worse"`      // rows in which to is worse
	Rows       int     `json:"rows"`       // rows with a value of both
}

// minDiffering is the number of rows that must differ for a significant difference: if no variant is better,
// all differences of n rows have one sign with the probability 2/2^n, which is below 5 % from 6 on. The
// interval of fewer rows that all differ excludes 0, even that of a single one.
const minDiffering = 6

// Significant reports whether the interval excludes no difference, and enough rows differ.
func (c *Comparison) Significant() bool {
	return c.Better+c.Worse >= minDiffering && (c.Low > 0 || c.High < 0)
}

// compare compares paired values.
func compare(from, to []float64, lower bool) Comparison {
	c := Comparison{Rows: len(from)}
	if len(from) == 0 {
		return c
	}
	differences := make([]float64, len(from))
	for i := range from {
		differences[i] = to[i] - from[i]
		switch {
		case differences[i] == 0:
		case differences[i] > 0 != lower:
			c.Better++
		default:
			c.Worse++
		}
	}
	c.Difference = mean(differences)
	c.Low, c.High = bootstrap(differences)
	return c
}
