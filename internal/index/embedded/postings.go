package embedded

import (
	"iter"
	"math"
	"slices"
)

// maxPostings is the number of rows of terms that are kept in memory, with 16 bytes each.
const maxPostings = 4_000_000

// scoredRow is a row of the full-text table with its score.
type scoredRow struct {
	number int64
	score  float64
}

// postings are the rows that match an expression, ascending.
type postings []scoredRow

// rows returns the rows that have any of the terms, or all of them, ascending. The scores of
// terms add up, so the scores of a term are computed once for all queries. More of them than
// memory may hold are computed for the query.
func (s *searcher) rows(terms []queryTerm, all bool) (iter.Seq2[scoredRow, error], error) {
	var total int64
	for i := range terms {
		total += terms[i].rows
	}
	if total > maxPostings {
		return s.scored(combine(terms, all)), nil
	}
	st, err := readState(s.ctx, s.c.Statements.state)
	if err != nil {
		return nil, err
	}
	lists := make([]postings, len(terms))
	for i := range terms {
		expression := terms[i].expression()
		list, known := s.c.Statements.vocab.list(st, expression)
		if !known {
			for row, err := range s.scored(expression) {
				if err != nil {
					return nil, err
				}
				list = append(list, row)
			}
			s.c.Statements.vocab.setList(st, expression, list)
		}
		lists[i] = list
	}
	need := 1
	if all {
		need = len(lists)
	}
	return merge(lists, need), nil
}

// scored returns the rows that match an expression with their scores, in the order of their
// numbers.
func (s *searcher) scored(expression string) iter.Seq2[scoredRow, error] {
	return func(yield func(scoredRow, error) bool) {
		rows, err := s.c.Read.QueryContext(s.ctx, "SELECT rowid, -rank FROM words WHERE words MATCH ? ORDER BY rowid", expression)
		if err != nil {
			yield(scoredRow{}, err)
			return
		}
		defer func() { _ = rows.Close() }()
		for rows.Next() {
			var row scoredRow
			if err := rows.Scan(&row.number, &row.score); err != nil {
				yield(scoredRow{}, err)
				return
			}
			if !yield(row, nil) {
				return
			}
		}
		if err := rows.Err(); err != nil {
			yield(scoredRow{}, err)
		}
	}
}

// merge returns the rows that are in at least need of the lists, with the sums of their scores.
func merge(lists []postings, need int) iter.Seq2[scoredRow, error] {
	lists = slices.DeleteFunc(lists, func(p postings) bool { return len(p) == 0 })
	return func(yield func(scoredRow, error) bool) {
		for len(lists) >= need {
			next := scoredRow{number: math.MaxInt64}
			for _, list := range lists {
				next.number = min(next.number, list[0].number)
			}
			found, ended := 0, false
			for i, list := range lists {
				if list[0].number != next.number {
					continue
				}
				next.score += list[0].score
				lists[i] = list[1:]
				found, ended = found+1, ended || len(list) == 1
			}
			if found >= need && !yield(next, nil) {
				return
			}
			if ended {
				lists = slices.DeleteFunc(lists, func(p postings) bool { return len(p) == 0 })
			}
		}
	}
}
