package embedded

import (
	"cmp"
	"context"
	"math/bits"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

const (
	maxKnownTerms = 1_000_000 // terms in memory, about 40 bytes each
	maxVariants   = 5         // words that replace one with typing errors
	maxNear       = 24        // words that are compared by their frequency
	maxCounts     = 10_000    // expressions whose number of rows is kept
)

// vocabulary is what a process knows of the words of an index.
type vocabulary struct {
	mu         sync.Mutex // guards what follows
	generation int64
	writes     int64               // of the state that counts and lists belong to
	counts     map[string]int64    // rows that match an expression
	lists      map[string]postings // these rows with their scores
	listed     int                 // rows in all lists
	known      map[string]struct{} // terms that the file has
	last       int64               // number of the last term in byLength
	byLength   map[int][]storedTerm
}

// storedTerm is a term with the set of its characters, as bits.
type storedTerm struct {
	text string
	mask uint64
}

func maskOf(term string) (mask uint64) {
	for _, r := range term {
		mask |= 1 << (uint32(r) % 64)
	}
	return mask
}

// follow forgets what belongs to an earlier generation.
func (v *vocabulary) follow(generation int64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.generation != generation {
		v.generation, v.known, v.last, v.byLength, v.writes = generation, nil, 0, nil, 0
	}
}

// has reports whether the file is known to have a term.
func (v *vocabulary) has(term string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	_, known := v.known[term]
	return known
}

// written adds terms that were committed.
func (v *vocabulary) written(terms map[string]struct{}) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.known == nil || len(v.known) > maxKnownTerms {
		v.known = map[string]struct{}{}
	}
	for term := range terms {
		v.known[term] = struct{}{}
	}
}

// count returns the number of rows that match an expression, if it is known.
func (v *vocabulary) count(st state, expression string) (int64, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.writes != st.writes {
		return 0, false
	}
	n, known := v.counts[expression]
	return n, known
}

// setCount stores the number of rows that match an expression.
func (v *vocabulary) setCount(st state, expression string, n int64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.belongTo(st)
	if len(v.counts) >= maxCounts {
		clear(v.counts)
	}
	v.counts[expression] = n
}

// belongTo forgets the counts and lists of another state. The caller holds the lock.
func (v *vocabulary) belongTo(st state) {
	if v.writes != st.writes || v.counts == nil {
		v.writes, v.counts, v.lists, v.listed = st.writes, map[string]int64{}, map[string]postings{}, 0
	}
}

// list returns the rows that match an expression, if they are known.
func (v *vocabulary) list(st state, expression string) (postings, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.writes != st.writes {
		return nil, false
	}
	list, known := v.lists[expression]
	return list, known
}

// setList stores the rows that match an expression.
func (v *vocabulary) setList(st state, expression string, list postings) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.belongTo(st)
	if len(list) > maxPostings {
		return
	}
	if v.listed+len(list) > maxPostings || len(v.lists) >= maxCounts {
		clear(v.lists)
		v.listed = 0
	}
	v.lists[expression] = list
	v.listed += len(list)
}

// load reads the terms that were added. The caller holds the lock.
func (v *vocabulary) load(ctx context.Context, c *conn) error {
	rows, err := c.Read.QueryContext(ctx, "SELECT number, term FROM terms WHERE number > ? ORDER BY number LIMIT ? + 0", v.last, maxKnownTerms)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	if v.byLength == nil {
		v.byLength = map[int][]storedTerm{}
	}
	for rows.Next() {
		var term string
		if err := rows.Scan(&v.last, &term); err != nil {
			return err
		}
		length := utf8.RuneCountInString(term)
		v.byLength[length] = append(v.byLength[length], storedTerm{term, maskOf(term)})
	}
	return rows.Err()
}

// maxErrors returns how many typing errors a word may have: as OpenSearch's AUTO, none up
// to 2 characters, one up to 5, else two. A word with a digit has none.
func maxErrors(word, fuzziness string) int {
	switch length := utf8.RuneCountInString(word); {
	case fuzziness == "0" || strings.ContainsAny(word, "0123456789") || length <= 2 || length > 40:
		return 0
	case fuzziness == "1" || length <= 5 && fuzziness != "2":
		return 1
	}
	return 2
}

// near is a word with its distance from another one.
type near struct {
	term     string
	distance int
	rows     int64
}

// variants returns words of the index that are similar to one that it does not have.
func (s *searcher) variants(st state, t *queryTerm, fuzziness any) ([]string, error) {
	s.c.Statements.vocab.follow(st.generation)
	var found []near
	for _, f := range t.forms {
		limit := maxErrors(f.words[0], fuzzinessText(fuzziness))
		if limit == 0 {
			continue
		}
		some, err := s.c.Statements.vocab.near(s.ctx, s.c, f.words[0], limit)
		if err != nil {
			return nil, err
		}
		found = append(found, some...)
	}
	for i := range found {
		var err error
		if found[i].rows, err = s.countRows(st, `"`+found[i].term+`"`); err != nil {
			return nil, err
		}
	}
	found = slices.DeleteFunc(found, func(n near) bool { return n.rows == 0 })
	slices.SortFunc(found, func(a, b near) int {
		return cmp.Or(cmp.Compare(a.distance, b.distance), cmp.Compare(b.rows, a.rows), strings.Compare(a.term, b.term))
	})
	var variants []string
	for _, n := range found {
		if len(variants) < maxVariants && !slices.Contains(variants, n.term) {
			variants = append(variants, n.term)
		}
	}
	return variants, nil
}

// near returns the terms within a distance.
func (v *vocabulary) near(ctx context.Context, c *conn, word string, limit int) ([]near, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if err := v.load(ctx, c); err != nil {
		return nil, err
	}
	runes, mask := []rune(word), maskOf(word)
	var found []near
	for length := len(runes) - limit; length <= len(runes)+limit; length++ {
		for _, t := range v.byLength[length] {
			if bits.OnesCount64(t.mask^mask) > 2*limit {
				continue
			}
			if d := editDistance(runes, []rune(t.text), limit); d <= limit {
				found = append(found, near{term: t.text, distance: d})
			}
		}
	}
	slices.SortFunc(found, func(a, b near) int {
		return cmp.Or(cmp.Compare(a.distance, b.distance), strings.Compare(a.term, b.term))
	})
	return found[:min(len(found), maxNear)], nil
}

// editDistance counts the insertions, deletions, replacements and swaps of neighbors that
// turn a into b; more than limit if there are more.
func editDistance(a, b []rune, limit int) int {
	before, previous, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range previous {
		previous[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		least := i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(previous[j]+1, row[j-1]+1, previous[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
			least = min(least, row[j])
		}
		if least > limit {
			return limit + 1
		}
		before, previous, row = previous, row, before
	}
	return previous[len(b)]
}

// fuzzinessText returns the value of the argument: AUTO, or a number of errors.
func fuzzinessText(v any) string {
	switch x := v.(type) {
	case int:
		return string(rune('0' + x))
	case int64:
		return string(rune('0' + x))
	case float64:
		return string(rune('0' + int(x)))
	case string:
		return x
	}
	return "AUTO"
}
