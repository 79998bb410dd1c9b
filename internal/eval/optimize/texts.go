package optimize

import (
	"cmp"
	"context"
	"errors"
	"slices"
)

// rewriteTexts lets a model rewrite texts (GEPA): a candidate of the Pareto front over the validation rows is run with a batch of
// training rows, the model sees what fails, and its text is compared with the same batch. If it is better, it runs all validation rows.
func (s *search) rewriteTexts(ctx context.Context) error {
	for s.proposals < s.declared.Proposals {
		if s.unchanged >= s.patience {
			return s.stop("nothing better in %d proposals", s.patience)
		}
		parent := s.choose()
		if parent == nil {
			return s.stop("no training row fails with the best candidates")
		}
		batch, err := s.batch(ctx, parent)
		if err != nil {
			return err
		}
		if batch == nil {
			continue
		}
		admitted, err := s.rewrite(ctx, parent, batch)
		if err != nil {
			return err
		}
		if admitted {
			if err := s.merge(ctx); err != nil {
				return err
			}
		}
	}
	return s.stop("the limit of %d proposals", s.declared.Proposals)
}

// choose selects a candidate of the front by the number of sessions in which it is best; nil if no training session fails with any.
func (s *search) choose() *Candidate {
	front, wins := s.front()
	sum := 0
	for i, c := range front {
		if c.perfect {
			wins[i] = 0
		}
		sum += wins[i]
	}
	if sum == 0 {
		return nil
	}
	at := s.random.IntN(sum)
	for i, n := range wins {
		if at -= n; at < 0 {
			return front[i]
		}
	}
	return nil
}

// batch returns the next training sessions of a candidate of which one fails; none if all pass.
func (s *search) batch(ctx context.Context, c *Candidate) ([][]int, error) {
	if c.order == nil {
		c.order = s.shuffled(s.unseen(c))
	}
	size := min(s.declared.Batch, len(c.order))
	for tried := 0; tried < len(c.order); tried += size {
		var batch [][]int
		for range size {
			batch = append(batch, c.order[c.next%len(c.order)])
			c.next++
		}
		if err := s.measure(ctx, c, batch); err != nil {
			return nil, err
		}
		if slices.ContainsFunc(batch, func(session []int) bool { return s.fails(c, session) }) {
			return batch, nil
		}
	}
	c.perfect = true
	return nil, nil
}

// rewrite tries a new text, and reports whether it was better with the batch.
func (s *search) rewrite(ctx context.Context, parent *Candidate, batch [][]int) (admitted bool, err error) {
	t := s.texts[parent.turn%len(s.texts)]
	parent.turn++
	s.proposals++
	shown := slices.Clone(batch)
	slices.SortStableFunc(shown, func(a, b []int) int { return cmp.Compare(s.score(parent, a), s.score(parent, b)) })
	text, money, err := s.propose(ctx, parent, t, slices.Concat(shown...))
	if err != nil {
		return false, err
	}
	s.money += money
	if err := s.check(parent, t, text); err != nil {
		s.unchanged++
		s.note(&Candidate{Parent: parent.ID, Changed: []string{t.Address}, Verdict: "rejected: " + err.Error()})
		return false, nil //nolint:nilerr // the log has it
	}
	c, err := s.child(ctx, parent, map[string]any{t.Address: text})
	if errors.Is(err, errRejected) {
		s.unchanged++
		s.note(c)
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return s.admit(ctx, c, batch, parent)
}

// admit runs a candidate with a batch, and with the validation rows if it is better than its parents with all training rows that
// both have run.
func (s *search) admit(ctx context.Context, c *Candidate, batch [][]int, parents ...*Candidate) (bool, error) {
	if err := s.measure(ctx, c, batch); err != nil {
		return false, err
	}
	for i, p := range parents {
		both := slices.DeleteFunc(s.unseen(c), func(session []int) bool { return p.results[session[0]] == nil || c.results[session[0]] == nil })
		if before, after := s.mean(p, both), s.mean(c, both); i == 0 {
			c.Before, c.Training = &before, &after
		}
		d := s.metric.Compare(p.of(both), c.of(both), 1).Difference
		if better := s.metric.Better(d); !better && (len(parents) == 1 || d != 0) {
			s.unchanged++
			c.Verdict = "not better with the training rows that it was made for"
			s.note(c)
			return false, nil
		}
	}
	return true, s.validate(ctx, c)
}

// merge adds the changes of two candidates of the front, which are in different texts, if none has been made of the other.
func (s *search) merge(ctx context.Context) error {
	if len(s.texts) < 2 || s.merges >= maxMerges {
		return nil
	}
	front, _ := s.front()
	for i, a := range front {
		for _, b := range front[i+1:] {
			changes := s.changesOf(a, b)
			if changes == nil {
				continue
			}
			c, err := s.child(ctx, a, changes)
			if errors.Is(err, errRejected) {
				continue
			}
			if err != nil {
				return err
			}
			s.merges++
			c.MergedWith, c.Examples = b.ID, slices.Concat(a.Examples, b.Examples)
			batch := s.shuffled(s.unseen(c))
			batch = batch[:min(2*s.declared.Batch, len(batch))]
			for _, p := range []*Candidate{a, b} {
				if err := s.measure(ctx, p, batch); err != nil {
					return err
				}
			}
			_, err = s.admit(ctx, c, batch, a, b)
			return err
		}
	}
	return nil
}

// changesOf returns what b has changed since its common ancestor with a, where a has not; nil if one is an ancestor of the other, or
// both have changed the same text only.
func (s *search) changesOf(a, b *Candidate) map[string]any {
	line := s.lineage(a)
	at := slices.IndexFunc(s.lineage(b), func(c *Candidate) bool { return slices.Contains(line, c) })
	if at < 0 {
		return nil
	}
	ancestor := s.lineage(b)[at]
	if ancestor == a || ancestor == b {
		return nil
	}
	changes := map[string]any{}
	own := false
	for _, t := range s.texts {
		was, inA, inB := ancestor.textOf(t), a.textOf(t), b.textOf(t)
		switch {
		case inA == was && inB != was:
			changes[t.Address] = inB
		case inA != was && inB == was:
			own = true
		case inA != inB && s.gain(b) > s.gain(a):
			changes[t.Address] = inB
		case inA != inB:
			own = true
		}
	}
	if !own || len(changes) == 0 {
		return nil
	}
	return changes
}

// lineage returns a candidate and those that it was made of.
func (s *search) lineage(c *Candidate) (all []*Candidate) {
	for ; c != nil; c = s.known[c.Parent] {
		all = append(all, c)
	}
	return all
}
