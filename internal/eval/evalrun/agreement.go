package evalrun

import (
	"cmp"
	"math"
	"slices"
)

// Interval is an estimate with its 95 % interval.
type Interval struct {
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
	Count int     `json:"count"` // of what it is estimated from
}

// rateOf returns the share of successes with Wilson's interval.
func rateOf(successes, count int) Interval {
	if count == 0 {
		return Interval{}
	}
	p := float64(successes) / float64(count)
	low, high := wilson(p, float64(count), normalQuantile(1-alpha/2))
	return Interval{p, low, high, count}
}

// kappa returns Cohen's kappa of pairs of verdicts, each a number from 0 to labels-1. Its interval is Wilson's of the
// share of equal pairs, with the number of pairs that has the variance of kappa (Fleiss, Cohen and Everitt 1969): it
// has no width of 0 where all pairs are equal. Without a kappa, where both always give one label, Count is 0.
func kappa(pairs [][2]int, labels int) Interval {
	n := float64(len(pairs))
	table, rows, columns := make([][]float64, labels), make([]float64, labels), make([]float64, labels)
	for i := range table {
		table[i] = make([]float64, labels)
	}
	for _, p := range pairs {
		table[p[0]][p[1]] += 1 / n
		rows[p[0]] += 1 / n
		columns[p[1]] += 1 / n
	}
	equal, chance := 0.0, 0.0
	for i := range labels {
		equal, chance = equal+table[i][i], chance+rows[i]*columns[i]
	}
	const rounding = 1e-12
	if len(pairs) == 0 || chance > 1-rounding {
		return Interval{}
	}
	effective := n
	if variance := kappaVariance(table, rows, columns, equal, chance) / n; equal < 1-rounding && equal > rounding && variance > rounding {
		effective = equal * (1 - equal) / ((1 - chance) * (1 - chance) * variance)
	}
	low, high := wilson(min(equal, 1), effective, normalQuantile(1-alpha/2))
	scale := func(share float64) float64 {
		return max(-1, min(1, math.Round((share-chance)/(1-chance)/rounding)*rounding)) + 0
	}
	return Interval{scale(equal), scale(low), scale(high), len(pairs)}
}

// kappaVariance returns the variance of kappa for one pair, by the shares of each pair of labels.
func kappaVariance(table [][]float64, rows, columns []float64, equal, chance float64) float64 {
	sum := 0.0
	for i := range table {
		for j, share := range table[i] {
			d := (rows[j] + columns[i]) * (1 - equal)
			if i == j {
				d = 1 - chance - d
			}
			sum += share * d * d
		}
	}
	d := equal*chance - 2*chance + equal
	return (sum - d*d) / math.Pow(1-chance, 4)
}

// Bias is the difference of two means with its 95 % interval.
type Bias struct {
	Difference float64 `json:"difference"`
	Low        float64 `json:"low"`
	High       float64 `json:"high"`
	P          float64 `json:"p"` // the probability of such a difference if there is none
}

// lengthBias returns how much more a judge exceeds people with long outputs than with short ones: the difference of
// the means of judge - people between the longer half of the outputs and the other one. ok is false for fewer than four results.
func lengthBias(lengths []int, excess []float64) (b Bias, ok bool) {
	order := make([]int, len(lengths))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(lengths[a], lengths[b]) })
	if len(order) < 4 || lengths[order[0]] == lengths[order[len(order)-1]] {
		return b, false
	}
	u := unit{}
	for i, at := range order {
		if i < len(order)/2 {
			u.from = append(u.from, excess[at])
		} else {
			u.to = append(u.to, excess[at])
		}
	}
	b.Difference = mean(u.to) - mean(u.from)
	se := math.Sqrt(variance(u.from)/float64(len(u.from)) + variance(u.to)/float64(len(u.to)))
	margin := tQuantile(1-alpha/2, len(u.from)-1) * se
	b.Low, b.High = b.Difference-margin, b.Difference+margin
	_, b.P = permute([]unit{u})
	return b, true
}

// variance returns the variance of values, of which there are at least two.
func variance(values []float64) float64 {
	m, sum := mean(values), 0.0
	for _, v := range values {
		sum += (v - m) * (v - m)
	}
	return sum / float64(len(values)-1)
}
