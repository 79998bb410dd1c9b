package embedded

import (
	"cmp"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/qtype-dev/qtype/internal/words/stem"
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
		hits, err := s.match(rare, false, args, fields, limit)
		if err != nil || len(hits) >= limit {
			return hits, err
		}
	}
	return s.match(terms, all, args, fields, limit)
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
	if err := s.readLanguages(st); err != nil {
		return nil, err
	}
	for i := range terms {
		t := &terms[i]
		t.setForms(s.languages)
		if t.rows, err = s.countRows(st, t.expression()); err != nil {
			return nil, err
		}
		if t.rows == 0 && len(t.words) == 1 && !t.prefix {
			if t.variants, err = s.variants(st, t, args.Fuzziness); err != nil {
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

// readLanguages reads the languages by whose stems words are found; none if words are stored as they are.
func (s *searcher) readLanguages(st state) error {
	if s.languages = nil; s.x.stemming(st) == "" {
		return nil
	}
	rows, err := s.c.Statements.languages.QueryContext(s.ctx)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var name stem.Language
		if err := rows.Scan(&name); err != nil {
			return err
		}
		s.languages = append(s.languages, name)
	}
	return rows.Err()
}

// countRows returns the number of rows that match an expression.
func (s *searcher) countRows(st state, expression string) (int64, error) {
	if n, known := s.c.Statements.vocab.count(st, expression); known {
		return n, nil
	}
	var n int64
	err := s.c.Read.QueryRowContext(s.ctx, "SELECT count(*) FROM words WHERE words MATCH ?", expression).Scan(&n)
	if err == nil {
		s.c.Statements.vocab.setCount(st, expression, n)
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
	total, known := s.c.Statements.vocab.count(st, "")
	if !known {
		if err := s.c.Read.QueryRowContext(s.ctx, "SELECT count(*) FROM words_docsize").Scan(&total); err != nil {
			return nil, err
		}
		s.c.Statements.vocab.setCount(st, "", total)
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

// match finds the entries that have any of the terms, or all of them.
func (s *searcher) match(terms []queryTerm, all bool, args *spec.EmbeddedQueryArguments, fields *fieldBoosts, limit int) ([]hit, error) {
	rows, err := s.rows(terms, all)
	if err != nil {
		return nil, err
	}
	score, best := scoreOf(args), topHits{limit: limit}
	var entry int64
	var one textHit
	for row, err := range rows {
		if err != nil {
			return nil, err
		}
		boost := fields.of(row.number)
		if boost <= 0 || !s.allow.has(row.number>>fieldBits) {
			continue
		}
		if row.number>>fieldBits != entry {
			best.add(entry, score(one))
			entry, one = row.number>>fieldBits, textHit{}
		}
		one.add(row.score * boost)
	}
	best.add(entry, score(one))
	hits, err := s.identify(keepBest(best.hits, limit))
	return hits[:min(limit, len(hits))], err
}

// textHit is the score of an entry in its fields.
type textHit struct{ best, sum float64 }

func (h *textHit) add(score float64) { h.best, h.sum = max(h.best, score), h.sum+score }

// scoreOf returns the function that combines the scores of fields.
func scoreOf(args *spec.EmbeddedQueryArguments) func(textHit) float64 {
	if args.Type == "most_fields" {
		return func(h textHit) float64 { return h.sum }
	}
	return func(h textHit) float64 { return h.best + args.TieBreaker*(h.sum-h.best) }
}

// topHits keeps the hits with the best scores: limit, and those with the score of the last one.
type topHits struct {
	limit  int
	scores []float64 // the best ones, ascending
	hits   []hit     // also some that are not among the best any more
}

// add adds an entry with a score greater than 0.
func (t *topHits) add(entry int64, score float64) {
	full := len(t.scores) == t.limit
	if score <= 0 || full && score < t.scores[0] {
		return
	}
	t.hits = append(t.hits, hit{entry: entry, score: score})
	at, _ := slices.BinarySearch(t.scores, score)
	if !full {
		t.scores = slices.Insert(t.scores, at, score)
	} else if at > 0 {
		copy(t.scores, t.scores[1:at])
		t.scores[at-1] = score
	}
}
