// Package indextest has the contract of index.Index as tests, which every store runs:
//
//	func TestIndex(t *testing.T) {
//		indextest.Run(t, indextest.Store{Open: open, Vectors: true})
//	}
package indextest

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/qtype-dev/qtype/index"
	"github.com/qtype-dev/qtype/internal/testkit"
)

// Dimensions is the length of the vectors of the suite.
const Dimensions = 8

// Store is what the suite checks.
type Store struct {
	// Open returns the index of a name, which has at most 20 lower-case letters and
	// digits. No index exists at first. A name that was used has the entries of before.
	// The suite closes the index.
	Open func(t *testing.T, name string) index.Index
	// Vectors, Text and Hybrid are the modes that the store supports. Without Vectors, the
	// entries have none.
	Vectors, Text, Hybrid bool
	// Fields reports that full-text search finds words in the fields of the metadata.
	Fields bool
	// Highlights reports that matches have highlights.
	Highlights bool
	// Skip has the checks that the store cannot pass, by name, with the reason.
	Skip map[string]string
}

// suite is a store and the number of indexes that were opened.
type suite struct {
	Store
	opened int
}

// Run checks the store.
func Run(t *testing.T, s Store) {
	r := &suite{Store: s}
	for _, c := range r.checks() {
		t.Run(c.name, func(t *testing.T) {
			if !c.applies {
				t.Skip("the store does not have this mode")
			}
			if reason := s.Skip[c.name]; reason != "" {
				t.Skip("SKIPPED: " + reason)
			}
			c.run(t)
		})
	}
}

// check is one test of the contract.
type check struct {
	name    string
	applies bool
	run     func(*testing.T)
}

func (s *suite) checks() []check {
	return []check{
		{"empty index", true, s.empty},
		{"put and replace", true, s.replace},
		{"delete", true, s.remove},
		{"clear", true, s.clear},
		{"listing", true, s.listing},
		{"metadata", true, s.metadata},
		{"unusual ids and texts", true, s.unusual},
		{"large batch", true, s.largeBatch},
		{"reopen", true, s.reopen},
		{"ended context", true, s.endedContext},
		{"concurrent use", true, s.concurrent},
		{"filters", true, s.filters},
		{"wrong dimensions", s.Vectors, s.wrongDimensions},
		{"nearest vectors", s.Vectors, s.nearest},
		{"equal scores", s.Vectors, s.equalScores},
		{"filtered vectors", s.Vectors, s.filteredVectors},
		{"words", s.Text, s.words},
		{"fields", s.Text && s.Fields, s.fields},
		{"highlights", s.Text && s.Highlights, s.highlights},
		{"any query", s.Text || s.Hybrid, s.anyQuery},
		{"hybrid", s.Hybrid, s.hybrid},
	}
}

// open returns a new index.
func (s *suite) open(t *testing.T) index.Index {
	t.Helper()
	return s.openName(t, s.newName())
}

func (s *suite) newName() string {
	s.opened++
	return "indextest" + strconv.Itoa(s.opened)
}

func (s *suite) openName(t *testing.T, name string) index.Index {
	t.Helper()
	x := s.Open(t, name)
	t.Cleanup(func() {
		if err := x.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return x
}

// entry returns an entry whose vector depends on n.
func (s *suite) entry(n int, text string) index.Entry {
	e := index.Entry{ID: fmt.Sprintf("id-%04d", n), Document: "doc-" + strconv.Itoa(n/10), Text: text,
		Metadata: map[string]any{"n": int64(n)}, Hash: "hash " + strconv.Itoa(n)}
	if s.Vectors {
		e.Vector = vectorOf(n)
	}
	return e
}

func (s *suite) entries(n int) []index.Entry {
	var list []index.Entry
	for i := range n {
		list = append(list, s.entry(i, "common text number"+strconv.Itoa(i)))
	}
	return list
}

// vectorOf returns a vector: the nearer two numbers, the nearer their vectors.
func vectorOf(n int) []float32 {
	v := make([]float32, Dimensions)
	v[0], v[1], v[n%5+2] = 100, float32(n), 1
	return v
}

func put(t *testing.T, x index.Index, entries ...index.Entry) {
	t.Helper()
	testkit.Must(t, x.Put(t.Context(), entries))
}

// all lists an index.
func all(t *testing.T, x index.Index, p index.Page) []index.Entry {
	t.Helper()
	var list []index.Entry
	for e, err := range x.Entries(t.Context(), p) {
		testkit.Must(t, err)
		list = append(list, e)
	}
	return list
}

func search(t *testing.T, x index.Index, q index.Query) []index.Match {
	t.Helper()
	matches, err := x.Search(t.Context(), q)
	if err != nil {
		t.Fatalf("query %.80q: %v", q.Text, err)
	}
	if len(matches) > q.Limit {
		t.Errorf("%d matches, limit %d", len(matches), q.Limit)
	}
	if !slices.IsSortedFunc(matches, func(a, b index.Match) int {
		switch {
		case a.Score > b.Score:
			return -1
		case a.Score < b.Score:
			return 1
		}
		return strings.Compare(a.ID, b.ID)
	}) {
		t.Errorf("matches are not sorted by score and id: %v", scored(matches))
	}
	return matches
}

func scored(matches []index.Match) (list []string) {
	for _, m := range matches {
		list = append(list, fmt.Sprintf("%s (%v)", m.ID, m.Score))
	}
	return list
}

func ids(matches []index.Match) (list []string) {
	for _, m := range matches {
		list = append(list, m.ID)
	}
	return list
}

// wantIDs compares the ids of matches.
func wantIDs(t *testing.T, what string, matches []index.Match, want ...string) {
	t.Helper()
	if d := cmp.Diff(want, ids(matches)); d != "" {
		t.Errorf("%s: %s", what, d)
	}
}

// wantEntries compares a listing, which has no vectors.
func wantEntries(t *testing.T, got, want []index.Entry) {
	t.Helper()
	want = slices.Clone(want)
	for i := range want {
		want[i].Vector = nil
	}
	for i := range got {
		got[i].Vector = nil
	}
	slices.SortFunc(want, func(a, b index.Entry) int { return strings.Compare(a.ID, b.ID) })
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// ended returns a context that has ended.
func ended(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}
