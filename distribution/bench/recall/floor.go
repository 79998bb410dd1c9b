package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/qtype-dev/qtype/memory/search"
)

// scores are those of the best results: of questions about a conversation, and of those about another one.
type scores struct{ own, other []float64 }

// compareScores searches each conversation for its own questions and for those of the next one that are not
// among them, to which it has no answer.
func (o *options) compareScores(ctx context.Context, all []conversation) error {
	var s scores
	for i := range all {
		c := &all[i]
		m, _, err := o.remember(ctx, c)
		if err != nil {
			return err
		}
		searcher := search.New(m)
		best := func(text string) (float64, error) {
			found, err := searcher.Search(ctx, search.Query{Text: text, Scope: search.Session("s"), Limit: 1})
			if err != nil || len(found.Messages) == 0 {
				return 0, err
			}
			return found.Messages[0].Score, nil
		}
		for _, list := range []struct {
			to        *[]float64
			questions []question
		}{{&s.own, c.Questions}, {&s.other, c.foreign(&all[(i+1)%len(all)])}} {
			for _, q := range list.questions {
				score, err := best(q.Question)
				if err != nil {
					return err
				}
				*list.to = append(*list.to, score)
			}
		}
	}
	s.print()
	return nil
}

// foreign returns the questions of another conversation that this one does not answer.
func (c *conversation) foreign(other *conversation) []question {
	return slices.DeleteFunc(slices.Clone(other.Questions), func(q question) bool {
		return slices.ContainsFunc(c.Questions, func(own question) bool { return own.Question == q.Question })
	})
}

// print prints for each of some scores how many questions have a result with at least this score.
func (s *scores) print() {
	fmt.Printf("%d questions, %d without an answer\n", len(s.own), len(s.other))
	for floor := 0.0; floor < 1; floor += 0.05 {
		fmt.Printf("score %.2f: %.3f answered, %.3f answered without an answer\n", floor, share(s.own, floor), share(s.other, floor))
	}
}

// share returns how many of the scores reach a floor.
func share(all []float64, floor float64) float64 {
	n := 0
	for _, x := range all {
		if x > 0 && x >= floor {
			n++
		}
	}
	return float64(n) / float64(max(len(all), 1))
}
