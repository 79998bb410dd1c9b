package redis

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/qtype-dev/qtype/distribution/index/remote"
	"github.com/qtype-dev/qtype/index"
)

// The names of the ranking by BM25: the formula of other programs, and that of servers
// without it.
const (
	scorer    = "BM25STD"
	oldScorer = "BM25"
)

// Search returns the best matches.
func (x *Index) Search(ctx context.Context, q index.Query) ([]index.Match, error) {
	if x.isText() && q.Mode != index.ByText {
		return nil, errors.New("a full-text index has no vectors")
	}
	return remote.Searches[state]{Dimensions: x.Dimensions, Find: x.find, ByVector: x.byVector, ByText: x.byText}.Run(ctx, q)
}

// searchCommand returns a search for the best n hashes.
func (x *Index) searchCommand(query string, n int, more ...any) []any {
	args := append([]any{"FT.SEARCH", x.Name, query}, more...)
	// Without the limit in time, a server returns what it found in its own limit.
	return append(args, "LIMIT", 0, n, "TIMEOUT", x.Connection.Timeout.Milliseconds(), "DIALECT", dialectVersion)
}

// returned lists the fields of the answer.
func returned(fields ...string) []any {
	args := []any{"RETURN", len(fields)}
	for _, field := range fields {
		args = append(args, field)
	}
	return args
}

// byVector returns the nearest entries.
func (x *Index) byVector(ctx context.Context, s *state, q index.Query) ([]index.Match, error) {
	condition := s.condition(q.Filter)
	before := "*"
	if condition.Found {
		before = condition.Query
	}
	return remote.Search(q.Limit, q.Filter, condition.Exact, func(n int) ([]index.Match, error) {
		query := fmt.Sprintf("%s=>[KNN %d @%s $vector AS %s]", before, n, vectorField, scoreField)
		more := append([]any{"PARAMS", 2, "vector", vectorBytes(q.Vector), "SORTBY", scoreField, "ASC"}, returned(append(readFields(), scoreField)...)...)
		return x.matches(ctx, x.searchCommand(query, n, more...), false, func(fields map[string]any, _ any) float64 {
			return score(s.metric, fields[scoreField])
		})
	})
}

// score converts a distance. The greater score is the better one. The cosine with a vector
// of zeros is not a number; it counts as 0.
func score(metric string, distance any) float64 {
	text, _ := distance.(string)
	d, err := strconv.ParseFloat(text, 64)
	switch {
	case err != nil || math.IsNaN(d):
		return 0
	case metric == "L2":
		return -d
	}
	return 1 - d
}

// byText returns the best entries that contain any word of the text.
func (x *Index) byText(ctx context.Context, s *state, q index.Query) ([]index.Match, error) {
	words := remote.QueryWords(q.Text)
	if len(words) == 0 {
		return nil, nil
	}
	condition := s.condition(q.Filter)
	query := s.textQuery(words, condition)
	ranking := scorer
	return remote.Search(q.Limit, q.Filter, condition.Exact, func(n int) ([]index.Match, error) {
		fetch := func() ([]index.Match, error) {
			more := append([]any{"WITHSCORES", "SCORER", ranking}, returned(readFields()...)...)
			return x.matches(ctx, x.searchCommand(query, n, more...), true, func(_ map[string]any, score any) float64 {
				text, _ := score.(string)
				f, _ := strconv.ParseFloat(text, 64)
				return f
			})
		}
		found, err := fetch()
		if isUnknownScorer(err) && ranking == scorer {
			ranking = oldScorer
			found, err = fetch()
		}
		if q.Highlight {
			for i := range found {
				found[i].Highlights = remote.Highlights(x.searchedText(found[i].Entry), words)
			}
		}
		return found, err
	})
}

// isUnknownScorer reports whether the server does not have the ranking.
func isUnknownScorer(err error) bool {
	return err != nil && strings.Contains(strings.ToLower(err.Error()), "scorer")
}

// textQuery returns the query for any of the words. Entries that other programs wrote are
// searched by their text. The condition does not count in the score.
func (s *state) textQuery(words []string, condition remote.Translated[string]) string {
	anyWord := ":(" + strings.Join(words, "|") + ")"
	query := "@" + textField + anyWord
	if s.own {
		query = "((@" + wordsField + anyWord + ")|((-" + tagQuery(remote.OwnTag) + ") (" + query + ")))"
	}
	if condition.Found {
		query = condition.Query + "=>{$weight: 0} " + query
	}
	return query
}

// matches reads the answer of a search: the number of results, and for each its key, the
// score if withScore, and its fields.
func (x *Index) matches(ctx context.Context, command []any, withScore bool, score func(map[string]any, any) float64) ([]index.Match, error) {
	reply, err := x.client.Do(ctx, command...).Slice()
	if isMissing(err) && ctx.Err() == nil {
		return nil, nil
	}
	if err != nil {
		return nil, x.failure(ctx, err)
	}
	size := 2
	if withScore {
		size = 3
	}
	if len(reply)%size != 1 {
		return nil, x.failure(ctx, errors.New("the answer of FT.SEARCH is not the one that was expected"))
	}
	var matches []index.Match
	for at := 1; at < len(reply); at += size {
		key, _ := reply[at].(string)
		fields := pairs(reply[at+size-1])
		if len(fields) == 0 {
			continue // it was deleted since
		}
		matches = append(matches, index.Match{Entry: x.entry(strings.TrimPrefix(key, x.KeyPrefix), fields), Score: score(fields, reply[at+1])})
	}
	return matches, nil
}

// pairs returns a list of names and values as a map.
func pairs(v any) map[string]any {
	list, _ := v.([]any)
	fields := make(map[string]any, len(list)/2)
	for i := 0; i+1 < len(list); i += 2 {
		if name, ok := list[i].(string); ok {
			fields[name] = list[i+1]
		}
	}
	return fields
}

// number returns a whole number of an answer, which may be a text.
func number(v any) int64 {
	switch v := v.(type) {
	case int64:
		return v
	case string:
		f, _ := strconv.ParseFloat(v, 64)
		return int64(f)
	}
	return 0
}
