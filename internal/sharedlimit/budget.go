package sharedlimit

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/qtype-dev/qtype/internal/appstate"
	"github.com/qtype-dev/qtype/memory/store"
)

const (
	keepBudgets = 30 * 24 * time.Hour // after the last call of a run
	maxRemoved  = 100                 // when a run begins
)

// Spent is what calls of models and tools have used.
type Spent struct {
	Calls  int     `json:"calls,omitempty"`
	Tokens int     `json:"tokens,omitempty"`
	Money  float64 `json:"money,omitempty"`
}

func (s Spent) plus(o Spent) Spent {
	return Spent{Calls: s.Calls + o.Calls, Tokens: s.Tokens + o.Tokens, Money: s.Money + o.Money}
}

// Budget is what the parts of a run have spent together. Each part is a sequence of chunks of
// rows, one of which is run at a time.
type Budget struct{ cell cell }

// NewBudget returns the budget of a run of an application with an id.
func NewBudget(app store.Application, id string) *Budget {
	return &Budget{cell{records: app.Records(appstate.Budgets), id: id, keep: keepBudgets}}
}

// spending is the stored value of a Budget.
type spending struct {
	Ended Spent        `json:"ended"` // by chunks before those of Parts
	Parts map[int]part `json:"parts"`
}

// part is the newest chunk of a part of a run.
type part struct {
	Chunk int   `json:"chunk"`
	Spent Spent `json:"spent"`
}

// Set replaces what a chunk has spent, and returns the sum of all. A chunk that was run by
// several processes has spent the most that one of them has. What is set for a chunk after a
// later one of its part changes nothing.
func (b *Budget) Set(ctx context.Context, partition, chunk int, spent Spent) (sum Spent, err error) {
	isNew := false
	err = b.cell.update(ctx, func(r reading) ([]byte, error) {
		s := spending{Parts: map[int]part{}}
		if isNew = r.value == nil; !isNew {
			if err := json.Unmarshal(r.value, &s); err != nil {
				return nil, fmt.Errorf("the stored budget is damaged: %w", err)
			}
		}
		changed := s.set(partition, chunk, spent)
		sum = s.sum()
		if !changed {
			return nil, nil
		}
		return json.Marshal(s)
	})
	if err == nil && isNew {
		_, err = b.cell.records.Purge(ctx, maxRemoved)
	}
	return sum, err
}

// set reports whether anything has changed.
func (s *spending) set(partition, chunk int, spent Spent) bool {
	p, known := s.Parts[partition]
	switch {
	case known && chunk < p.Chunk:
		return false
	case known && chunk > p.Chunk:
		s.Ended = s.Ended.plus(p.Spent)
		p.Spent = Spent{}
	}
	next := part{Chunk: chunk, Spent: Spent{
		Calls: max(p.Spent.Calls, spent.Calls), Tokens: max(p.Spent.Tokens, spent.Tokens), Money: max(p.Spent.Money, spent.Money),
	}}
	s.Parts[partition] = next
	return !known || next != p || chunk > p.Chunk
}

func (s *spending) sum() Spent {
	sum := s.Ended
	for _, p := range s.Parts {
		sum = sum.plus(p.Spent)
	}
	return sum
}
