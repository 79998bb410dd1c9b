package optimize

import (
	"context"
	"errors"
	"slices"
)

// chooseValues tries all combinations of the values. Many are compared with few training rows first; the better half is
// compared with twice as many, and so on (successive halving). The finalists run the validation rows.
func (s *search) chooseValues(ctx context.Context, base *Candidate) error {
	if len(s.choices) == 0 {
		return nil
	}
	var all []*Candidate
	for _, values := range s.combinations() {
		c, err := s.child(ctx, base, values)
		switch {
		case errors.Is(err, errRejected):
			s.note(c)
		case err != nil:
			return err
		default:
			all = append(all, c)
		}
	}
	order := s.shuffled(s.train)
	rounds := 0
	for n := len(all); n > finalists; n = (n + 1) / 2 {
		rounds++
	}
	for i := range rounds {
		n := max(min(firstRows, len(order)), len(order)>>(rounds-1-i))
		for _, c := range all {
			if err := s.measure(ctx, c, order[:n]); err != nil {
				return err
			}
			mean := s.mean(c, order[:n])
			c.Training = &mean
		}
		slices.SortStableFunc(all, func(a, b *Candidate) int {
			if s.metric.Lower {
				return cmpFloat(*a.Training, *b.Training, 0)
			}
			return cmpFloat(*b.Training, *a.Training, 0)
		})
		keep := max(finalists, (len(all)+1)/2)
		for _, c := range all[keep:] {
			c.Verdict = "others are better with training rows"
			s.note(c)
		}
		all = all[:keep]
	}
	for _, c := range all {
		if err := s.validate(ctx, c); err != nil {
			return err
		}
	}
	s.unchanged, s.stopped = 0, "all values were tried"
	return nil
}

// combinations returns all combinations of the values, in the order in which they are declared.
func (s *search) combinations() []map[string]any {
	all := []map[string]any{{}}
	for _, choice := range s.choices {
		var next []map[string]any
		for _, before := range all {
			for _, v := range choice.Values {
				with := map[string]any{choice.Address: v}
				for address, other := range before {
					with[address] = other
				}
				next = append(next, with)
			}
		}
		all = next
	}
	return all
}

// shuffled returns sessions in a random order.
func (s *search) shuffled(sessions [][]int) [][]int {
	order := slices.Clone(sessions)
	s.random.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	return order
}
