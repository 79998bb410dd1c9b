package mcpserver

import (
	"cmp"
	"io/fs"
	"math"
	"path"
	"slices"
	"strings"
	"unicode"
)

// found is a result of a search.
type found struct {
	Title string  `json:"title"`
	Path  string  `json:"path"`
	Type  string  `json:"type"`
	Score float64 `json:"score"`
}

// index is a full-text index with the ranking Okapi BM25.
type index struct {
	files    []found
	lengths  []float64
	average  float64
	postings map[string][]posting
}

// posting is the number of times that a file has a term.
type posting struct {
	file  int
	count float64
}

// The parameters of the ranking: the usual values of BM25, and the weight of a term in
// a title or path.
const (
	saturation  = 1.2
	lengthShare = 0.75
	titleWeight = 8
)

// newIndex reads and indexes all files.
func newIndex(folders []folder) *index {
	x := &index{postings: map[string][]posting{}}
	for _, s := range folders {
		for _, name := range s.paths() {
			content, err := fs.ReadFile(s.files, name)
			if err != nil { // embedded files can be read
				continue
			}
			x.add(found{Title: title(name, string(content)), Path: name, Type: s.kind}, string(content))
		}
	}
	for _, n := range x.lengths {
		x.average += n / float64(len(x.lengths))
	}
	return x
}

// title returns the first heading of a page; for other files the name of the folder.
func title(name, content string) string {
	if path.Ext(name) == ".md" {
		for line := range strings.Lines(content) {
			if heading, ok := strings.CutPrefix(line, "# "); ok {
				return strings.TrimSpace(heading)
			}
		}
	}
	title := strings.TrimSuffix(strings.TrimSuffix(path.Base(name), path.Ext(name)), ".qtype")
	if folder := path.Dir(name); folder != "." {
		title = folder + " " + title
	}
	return title
}

func (x *index) add(f found, content string) {
	counts := map[string]float64{}
	words := terms(content)
	for _, w := range words {
		counts[w]++
	}
	for _, w := range terms(f.Title + " " + f.Path) {
		counts[w] += titleWeight
	}
	for w, n := range counts {
		x.postings[w] = append(x.postings[w], posting{len(x.files), n})
	}
	x.files, x.lengths = append(x.files, f), append(x.lengths, float64(len(words)))
}

// search returns the best files for any of the terms of a query.
func (x *index) search(query string, limit int) []found {
	scores := map[int]float64{}
	for _, w := range slices.Compact(slices.Sorted(slices.Values(terms(query)))) {
		in := x.postings[w]
		rarity := math.Log(1 + (float64(len(x.files)-len(in))+0.5)/(float64(len(in))+0.5))
		for _, p := range in {
			norm := 1 - lengthShare + lengthShare*x.lengths[p.file]/x.average
			scores[p.file] += rarity * p.count * (saturation + 1) / (p.count + saturation*norm)
		}
	}
	results := []found{}
	for file, score := range scores {
		f := x.files[file]
		f.Score = math.Round(score*1000) / 1000
		results = append(results, f)
	}
	slices.SortFunc(results, func(a, b found) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Path, b.Path))
	})
	return results[:min(limit, len(results))]
}

// terms splits a text into lower-case terms: each word, and the parts of words in
// camelCase and snake_case.
func terms(text string) []string {
	var all []string
	word := func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' }
	for _, w := range strings.FieldsFunc(text, word) {
		all = append(all, strings.ToLower(w))
		if parts := splitWord(w); len(parts) > 1 {
			all = append(all, parts...)
		}
	}
	return all
}

// splitWord returns the parts of a word in camelCase or snake_case, in lower case.
func splitWord(word string) []string {
	var parts []string
	var part []rune
	end := func() {
		if len(part) > 0 {
			parts = append(parts, strings.ToLower(string(part)))
		}
		part = nil
	}
	lower := false
	for _, r := range word {
		if r == '_' || unicode.IsUpper(r) && lower {
			end()
		}
		if r != '_' {
			part = append(part, r)
		}
		lower = unicode.IsLower(r)
	}
	end()
	return parts
}
