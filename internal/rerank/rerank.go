// Package rerank sorts search results by their relevance to a question: with the services
// of Cohere, Jina and Bedrock, with a chat model as judge, and by reciprocal rank fusion
// and maximal marginal relevance, which need no service.
package rerank

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/qtype-dev/qtype/model"
)

// maxItems is the maximum number of results of one call of a Ranker.
const maxItems = 10_000

// Item is one search result.
type Item struct {
	Text   string          // what is judged
	JSON   json.RawMessage // the content if it is a mapping, nil if it is a text
	Score  float64         // the score of the search
	Vector []float32       // the embedding of the text; nil if the search did not return it
	Ranks  []int           // its place in each of the lists, from 1; 0 where it is missing
}

// Request is a question and the results to sort.
type Request struct {
	Query string // empty for a Ranker that needs none
	Items []Item // in the order of the search
	Limit int    // maximum number of choices; 0 for all
}

// Choice is a result that was chosen.
type Choice struct {
	Index int     // its index in Request.Items
	Score float64 // greater is better
}

// Usage counts what the models of a call have used.
type Usage struct {
	Input   int     // tokens read, where the service reports them
	Output  int     // tokens written
	Queries int     // what a service charges for, if it does not charge for tokens
	Cost    float64 // by the prices of the models
	Model   string  // the id of the model that was called, if it is not the step's own
}

// Ranker sorts results. Implementations are safe for concurrent use.
type Ranker interface {
	// Rank returns the best items, the best first. Equal ones keep their order. It reports
	// what was used also with an error.
	Rank(ctx context.Context, req Request) ([]Choice, Usage, error)
}

// Rank calls r with a request that is checked before. It returns nothing, without a call,
// if there are no items.
func Rank(ctx context.Context, r Ranker, req Request) ([]Choice, Usage, error) {
	switch {
	case len(req.Items) == 0:
		return nil, Usage{}, nil
	case len(req.Items) > maxItems:
		return nil, Usage{}, fmt.Errorf("%d results are too many to sort: the maximum is %d", len(req.Items), maxItems)
	}
	return r.Rank(ctx, req)
}

// add adds the tokens of a model's call.
func (u *Usage) add(used model.Usage, id string) {
	u.Input, u.Output = u.Input+used.Input, u.Output+used.Output
	u.Cost += used.Cost
	u.Model = cmp.Or(id, u.Model)
}

// best sorts choices, the best first, and returns at most limit of them.
func best(choices []Choice, limit int) []Choice {
	slices.SortStableFunc(choices, func(a, b Choice) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Index, b.Index))
	})
	return first(choices, limit)
}

func first(choices []Choice, limit int) []Choice {
	if limit > 0 && len(choices) > limit {
		return choices[:limit]
	}
	return choices
}

// checked returns an error if a service chose an item twice or a missing item, or gave an
// invalid score.
func checked(choices []Choice, items int) error {
	seen := make([]bool, items)
	for _, c := range choices {
		switch {
		case c.Index < 0 || c.Index >= items:
			return fmt.Errorf("the server returned the index %d for %d documents", c.Index, items)
		case seen[c.Index]:
			return fmt.Errorf("the server returned the index %d twice", c.Index)
		case math.IsNaN(c.Score) || math.IsInf(c.Score, 0):
			return fmt.Errorf("the server returned a score that is not a number")
		}
		seen[c.Index] = true
	}
	return nil
}
