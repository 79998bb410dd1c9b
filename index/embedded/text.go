package embedded

import (
	"cmp"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/qtype-dev/qtype/spec"
)

// fieldBoosts are the fields to search.
type fieldBoosts struct {
	all     bool              // all fields with boost 1
	boosts  map[int64]float64 // by number
	highest float64
}

// of returns the boost of a row of the full-text table; 0 for a field that is not searched.
func (f *fieldBoosts) of(row int64) float64 {
	if f.all {
		return 1
	}
	return f.boosts[row&lastField]
}

// byText finds entries by their words.
func (s *searcher) byText(limit int) ([]hit, error) {
	args := &spec.EmbeddedQueryArguments{}
	for _, problem := range spec.DecodeArguments(s.q.Args, args) {
		return nil, userErrorf("query_args: %v", problem)
	}
	fields, err := s.fields(args.Fields)
	if err != nil {
		return nil, err
	}
	terms, err := s.prepareTerms(args)
	if err != nil || len(terms) == 0 {
		return nil, err
	}
	s.terms = terms
	all := strings.EqualFold(args.Operator, "and")
	if rare, err := s.withoutFrequent(terms); err != nil {
		return nil, err
	} else if !all && len(rare) < len(terms) && len(rare) > 0 {
		hits, err := s.match(combine(rare, false), args, fields, limit)
		if err != nil || len(hits) >= limit {
			return hits, err
		}
	}
	return s.match(combine(terms, all), args, fields, limit)
}

// prepareTerms returns the terms of the query with the number of rows that have them, and
// with variants of words that no text has; of too many, the rarest.
func (s *searcher) prepareTerms(args *spec.EmbeddedQueryArguments) ([]queryTerm, error) {
	terms := parseQuery(s.q.Text)
	switch args.Type {
	case "phrase", "phrase_prefix":
		phrase := phraseOf(s.q.Text)
		phrase.prefix = phrase.prefix || args.Type == "phrase_prefix"
		if terms = nil; len(phrase.words) > 0 {
			terms = []queryTerm{phrase}
		}
	case "bool_prefix":
		if len(terms) > 0 {
			terms[len(terms)-1].prefix = true
		}
	}
	st, err := readState(s.ctx, s.c.Statements.state)
	if err != nil {
		return nil, err
	}
	if err := s.x.check(st); err != nil {
		return nil, err
	}
	for i := range terms {
		t := &terms[i]
		if t.rows, err = s.countRows(st, t.expression()); err != nil {
			return nil, err
		}
		if t.rows == 0 && len(t.words) == 1 && !t.prefix {
			if t.variants, err = s.variants(st, t.words[0], args.Fuzziness); err != nil {
				return nil, err
			}
		}
	}
	if len(terms) > maxQueryTerms {
		slices.SortStableFunc(terms, func(a, b queryTerm) int { return cmp.Compare(max(a.rows, 1), max(b.rows, 1)) })
		terms = terms[:maxQueryTerms]
	}
	return terms, nil
}

// countRows returns the number of rows that match an expression.
func (s *searcher) countRows(st state, expression string) (int64, error) {
	if n, known := s.x.vocab.count(st, expression); known {
		return n, nil
	}
	var n int64
	err := s.c.Read.QueryRowContext(s.ctx, "SELECT count(*) FROM "+s.x.table()+" WHERE "+s.x.table()+" MATCH ?", expression).Scan(&n)
	if err == nil {
		s.x.vocab.setCount(st, expression, n)
	}
	return n, err
}

// withoutFrequent returns the terms that at most half of the rows have. BM25 gives the
// others a weight of almost zero, but they take most of the time.
func (s *searcher) withoutFrequent(terms []queryTerm) ([]queryTerm, error) {
	st, err := readState(s.ctx, s.c.Statements.state)
	if err != nil {
		return nil, err
	}
	total, known := s.x.vocab.count(st, "")
	if !known {
		if err := s.c.Read.QueryRowContext(s.ctx, "SELECT count(*) FROM "+s.x.table()+"_docsize").Scan(&total); err != nil {
			return nil, err
		}
		s.x.vocab.setCount(st, "", total)
	}
	var rare []queryTerm
	for _, t := range terms {
		if 2*t.rows <= total {
			rare = append(rare, t)
		}
	}
	return rare, nil
}

// fields returns the fields that the query names, with their boosts: title^2, meta.*.
func (s *searcher) fields(names []string) (*fieldBoosts, error) {
	f := &fieldBoosts{highest: 1, all: len(names) == 0, boosts: map[int64]float64{}}
	if f.all || !s.x.opts.Fields {
		f.all = true
		return f, nil
	}
	known, err := readFields(s.ctx, s.c.Read)
	if err != nil {
		return nil, err
	}
	f.highest = 0
	for _, name := range names {
		pattern, boostText, boosted := strings.Cut(name, "^")
		boost := 1.0
		if boosted {
			if boost, err = strconv.ParseFloat(boostText, 64); err != nil || !(boost > 0) {
				return nil, userErrorf("query_args: fields: the boost of %q is not a positive number", name)
			}
		}
		for field, number := range known {
			if match, err := path.Match(pattern, field); match && err == nil || pattern == field {
				f.boosts[number] = max(f.boosts[number], boost)
				f.highest = max(f.highest, boost)
			}
		}
	}
	return f, nil
}

// textHit is the score of an entry in its fields.
type textHit struct{ best, sum float64 }

// match finds the entries that match an expression. Rows come in the order of their
// scores, so that most searches read only the first ones.
func (s *searcher) match(expression string, args *spec.EmbeddedQueryArguments, fields *fieldBoosts, limit int) ([]hit, error) {
	most := args.Type == "most_fields"
	single := !s.x.opts.Fields
	if single && s.allow == nil {
		rows := 2*limit + 50
		hits, last, err := s.matchRows(expression, rows, fields, func(map[int64]*textHit, float64) bool { return false })
		if err != nil || len(hits) < rows || last < kth(hits, limit) {
			return s.best(hits, limit, most, args.TieBreaker, err)
		}
	}
	hits, _, err := s.matchRows(expression, -1, fields, func(hits map[int64]*textHit, score float64) bool {
		return (single || !most && args.TieBreaker == 0) && kth(hits, limit) > score*fields.highest
	})
	return s.best(hits, limit, most, args.TieBreaker, err)
}

// matchRows adds up the scores of rows until done returns true, which is asked from time
// to time with the score of a row. It returns the score of the last row.
func (s *searcher) matchRows(expression string, rows int, fields *fieldBoosts, done func(map[int64]*textHit, float64) bool) (map[int64]*textHit, float64, error) {
	table := s.x.table()
	found, err := s.c.Read.QueryContext(s.ctx, "SELECT rowid, rank FROM "+table+" WHERE "+table+" MATCH ? ORDER BY rank LIMIT ? + 0", expression, rows) //nolint:gosec // the tables are constants
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = found.Close() }()
	hits := map[int64]*textHit{}
	score, next := 0.0, 256
	for n := 1; found.Next(); n++ {
		var row int64
		if err := found.Scan(&row, &score); err != nil {
			return nil, 0, err
		}
		score = -score
		entry, boost := row>>fieldBits, fields.of(row)
		if boost > 0 && s.allow.has(entry) {
			one := hits[entry]
			if one == nil {
				one = &textHit{}
				hits[entry] = one
			}
			one.best, one.sum = max(one.best, score*boost), one.sum+score*boost
		}
		if n == next {
			if next *= 2; done(hits, score) {
				break
			}
		}
	}
	return hits, score, found.Err()
}

// kth returns the score of the entry at a rank; 0 if there are fewer.
func kth(hits map[int64]*textHit, rank int) float64 {
	if len(hits) < rank {
		return 0
	}
	scores := make([]float64, 0, len(hits))
	for _, h := range hits {
		scores = append(scores, h.best)
	}
	slices.Sort(scores)
	return scores[len(scores)-rank]
}

// best returns the best entries with their ids.
func (s *searcher) best(found map[int64]*textHit, limit int, most bool, tieBreaker float64, err error) ([]hit, error) {
	if err != nil {
		return nil, err
	}
	hits := make([]hit, 0, len(found))
	for entry, h := range found {
		score := h.best + tieBreaker*(h.sum-h.best)
		if most {
			score = h.sum
		}
		hits = append(hits, hit{entry: entry, score: score})
	}
	hits, err = s.identify(keepBest(hits, limit))
	return hits[:min(limit, len(hits))], err
}
