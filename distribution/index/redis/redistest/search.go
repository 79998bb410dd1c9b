package redistest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// request is a parsed FT.SEARCH.
type request struct {
	noContent, withScores bool
	scorer                string
	fields                []string // nil for all
	params                map[string]string
	sortBy                string
	offset, limit         int
	dialect               int
}

// readRequest reads the options of FT.SEARCH.
func (s *Server) readRequest(a *arguments) *request {
	const most = 1_000_000
	r := &request{limit: 10, dialect: 1, scorer: "BM25", params: map[string]string{}}
	for a.err == nil && len(a.left) > 0 {
		switch a.word("NOCONTENT", "WITHSCORES", "SCORER", "RETURN", "PARAMS", "SORTBY", "LIMIT", "TIMEOUT", "DIALECT") {
		case "NOCONTENT":
			r.noContent = true
		case "WITHSCORES":
			r.withScores = true
		case "SCORER":
			if r.scorer = a.text(); r.scorer != "BM25" && (r.scorer != "BM25STD" || s.OldScorers) {
				a.fail("No such scorer %s", r.scorer)
			}
		case "RETURN":
			r.fields = a.list()
		case "PARAMS":
			list := a.list()
			if len(list)%2 != 0 {
				a.fail("Parameters must be specified in PARAM VALUE pairs")
				break
			}
			for i := 0; i < len(list); i += 2 {
				r.params[list[i]] = list[i+1]
			}
		case "SORTBY":
			r.sortBy = a.text()
			a.word("ASC")
		case "LIMIT":
			r.offset, r.limit = a.number(most), a.number(most)
		case "TIMEOUT":
			a.number(math.MaxInt32)
		case "DIALECT":
			r.dialect = a.number(4)
		}
	}
	if r.dialect < 2 {
		a.fail("vectors and parameters need DIALECT 2")
	}
	return r
}

// found is a result.
type found struct {
	*document
	score    float64
	distance string
}

// search executes FT.SEARCH.
func (s *Server) search(x *schema, a *arguments) any {
	text := a.text()
	r := s.readRequest(a)
	if a.err != nil {
		return a.err
	}
	q, err := parse(x, text)
	if err != nil {
		return err
	}
	docs, err := s.documents(x)
	if err != nil {
		return err
	}
	c := newCorpus(docs)
	var results []found
	for _, d := range docs {
		if score, matches := q.filter.match(c, d); matches {
			results = append(results, found{document: d, score: score})
		}
	}
	if q.knn == nil {
		slices.SortStableFunc(results, func(a, b found) int { return compare(b.score, a.score) })
	} else if results, err = q.knn.nearest(x, r, results); err != nil {
		return err
	}
	if r.sortBy != "" && (q.knn == nil || r.sortBy != q.knn.alias) {
		return fmt.Errorf("ERR Property `%s` not loaded nor in schema", r.sortBy)
	}
	return r.reply(q, results)
}

func compare(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// reply makes the answer.
func (r *request) reply(q *query, results []found) any {
	answer := []any{len(results)}
	results = results[min(r.offset, len(results)):]
	for _, f := range results[:min(r.limit, len(results))] {
		answer = append(answer, f.key)
		if r.withScores {
			answer = append(answer, strconv.FormatFloat(f.score, 'g', 17, 64))
		}
		if r.noContent {
			continue
		}
		row := []any{}
		for _, name := range r.fields {
			if v, has := f.fields[name]; has {
				row = append(row, name, v)
			} else if q.knn != nil && name == q.knn.alias {
				row = append(row, name, f.distance)
			}
		}
		answer = append(answer, row)
	}
	return answer
}

// nearest returns the nearest of the results.
func (k *knn) nearest(x *schema, r *request, results []found) ([]found, error) {
	f := x.field(k.field)
	if f == nil || f.kind != "VECTOR" {
		return nil, fmt.Errorf("ERR Unknown field at offset 0 near %s", k.field)
	}
	param, has := r.params[k.param]
	if !has {
		return nil, fmt.Errorf("ERR No such parameter `%s`", k.param)
	}
	if len(param) != 4*f.dimensions {
		return nil, fmt.Errorf("the vector of the query has %d bytes instead of %d", len(param), 4*f.dimensions)
	}
	var near []found
	for _, d := range results {
		if blob, has := d.fields[k.field]; has {
			d.score = distance(f.metric, vector(param), vector(blob))
			d.distance = strconv.FormatFloat(d.score, 'g', 12, 64)
			near = append(near, d)
		}
	}
	slices.SortStableFunc(near, func(a, b found) int { return compare(a.score, b.score) })
	return near[:min(k.count, len(near))], nil
}

func vector(blob string) []float64 {
	v := make([]float64, len(blob)/4)
	for i := range v {
		v[i] = float64(math.Float32frombits(binary.LittleEndian.Uint32([]byte(blob[4*i:]))))
	}
	return v
}

func distance(metric string, a, b []float64) float64 {
	var dot, aa, bb, squares float64
	for i := range a {
		dot, aa, bb = dot+a[i]*b[i], aa+a[i]*a[i], bb+b[i]*b[i]
		squares += (a[i] - b[i]) * (a[i] - b[i])
	}
	switch metric {
	case "L2":
		return squares
	case "IP":
		return 1 - dot
	}
	return 1 - dot/math.Sqrt(aa*bb)
}

// corpus has what the ranking needs of all documents.
type corpus struct {
	size   int
	length float64        // mean number of words
	having map[string]int // documents that have a word
}

func newCorpus(docs []*document) *corpus {
	c := &corpus{size: len(docs), having: map[string]int{}}
	for _, d := range docs {
		c.length += float64(d.length) / float64(len(docs))
		seen := map[string]bool{}
		for _, list := range d.words {
			for _, w := range list {
				if !seen[w] {
					seen[w] = true
					c.having[w]++
				}
			}
		}
	}
	return c
}

// bm25 returns the score of a word in a field of a document.
func (c *corpus) bm25(d *document, field, word string) (float64, bool) {
	const k, b = 1.2, 0.75
	count := 0
	for _, w := range d.words[field] {
		if w == word {
			count++
		}
	}
	if count == 0 {
		return 0, false
	}
	n, tf := float64(c.having[word]), float64(count)
	idf := math.Log(1 + (float64(c.size)-n+0.5)/(n+0.5))
	return idf * tf * (k + 1) / (tf + k*(1-b+b*float64(d.length)/c.length)), true
}

// words splits a text as the server does: at spaces, tabs and the punctuation of ASCII
// except _ and \, which hides the next separator. It removes control characters and ends at
// the first zero byte. It does not reduce words to their stems.
func words(text string) []string {
	text, _, _ = strings.Cut(text, "\x00")
	var list []string
	var word []byte
	end := func() {
		if len(word) > 0 {
			list = append(list, strings.ToLower(string(word)))
		}
		word = nil
	}
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c == '\\' && i+1 < len(text):
			i++
			word = append(word, text[i])
		case c == ' ' || c == '\t' || c > ' ' && c < 0x7f && !isTermByte(c):
			end()
		case c >= ' ' && c != 0x7f:
			word = append(word, c)
		}
	}
	end()
	return list
}

var errSyntax = errors.New("ERR Syntax error")
