package mcpserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/qtype-dev/qtype/docs"
	"github.com/qtype-dev/qtype/examples"
	"github.com/qtype-dev/qtype/spec/diag"
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

// The kinds of files, as search results name them.
const (
	documentation = "documentation"
	example       = "example"
)

// library is the embedded documentation and the embedded examples.
type library struct {
	folders []folder
	index   func() *index
}

// folder is one embedded folder.
type folder struct {
	kind  string // documentation or example
	name  string // its name in messages
	files fs.FS
}

func newLibrary() *library {
	l := &library{folders: []folder{{documentation, "docs", docs.Files}, {example, "examples", examples.Files}}}
	l.index = sync.OnceValue(func() *index { return newIndex(l.folders) })
	return l
}

// calls returns the functions of the library's tools.
func (l *library) calls() map[string]call {
	docs, samples := l.folders[0], l.folders[1]
	return map[string]call{
		"list_documentation": docs.list, "get_documentation": docs.get,
		"list_examples": samples.list, "get_example": samples.get,
		"search_library": l.search,
	}
}

// paths returns the paths of all files in alphabetical order.
func (s folder) paths() []string {
	var all []string
	_ = fs.WalkDir(s.files, ".", func(path string, d fs.DirEntry, err error) error { // embedded files can be read
		if err == nil && !d.IsDir() {
			all = append(all, path)
		}
		return nil
	})
	return all
}

// list is the tools list_documentation and list_examples.
func (s folder) list(_ context.Context, args arguments) (*answer, error) {
	if err := args.only(); err != nil {
		return nil, err
	}
	return list(s.paths()), nil
}

// get is the tools get_documentation and get_example.
func (s folder) get(_ context.Context, args arguments) (*answer, error) {
	given, err := args.texts("file_path")
	if err != nil {
		return nil, err
	}
	name := path.Clean(given[0])
	if !fs.ValidPath(name) {
		return nil, fmt.Errorf("Invalid path: '%s' is outside %s directory", given[0], s.name) //nolint:staticcheck // clients know this text
	}
	content, err := fs.ReadFile(s.files, name)
	if errors.Is(err, fs.ErrNotExist) || err != nil {
		return nil, fmt.Errorf("there is no %s file '%s'%s", s.kind, given[0], diag.DidYouMean(name, s.paths()))
	}
	return text(string(content)), nil
}

// search is the tool search_library.
func (l *library) search(_ context.Context, args arguments) (*answer, error) {
	if err := args.only("query", "limit"); err != nil {
		return nil, err
	}
	query, err := args.text("query")
	if err != nil {
		return nil, err
	}
	limit, err := args.integer("limit", 10, 1, 50)
	if err != nil {
		return nil, err
	}
	if strings.TrimSpace(query) == "" {
		return nil, errors.New("the argument query is empty")
	}
	found := l.index().search(query, limit)
	a := &answer{structured: map[string]any{"result": found}}
	for _, f := range found {
		a.texts = append(a.texts, indented(f))
	}
	return a, nil
}
