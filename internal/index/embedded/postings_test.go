package embedded

import (
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/index"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/spec"
)

// randomText returns words of a vocabulary whose first words are frequent.
func randomText(r *rand.Rand, n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprint("word", int(30*r.Float64()*r.Float64()*r.Float64()))
	}
	return strings.Join(list, " ")
}

// TestRows checks that the merged rows and scores of terms are those that SQLite computes
// for the whole query, also after a write.
func TestRows(t *testing.T) {
	testkit.SkipWithRace(t)
	for _, fields := range []bool{false, true} {
		r := rand.New(rand.NewPCG(1, 7))
		x := Open(Options{Path: filepath.Join(t.TempDir(), "words.db"), Fields: fields})
		for round := range 3 {
			var entries []index.Entry
			for i := range 150 {
				e := index.Entry{ID: fmt.Sprint(100*round + i), Text: randomText(r, 1+r.IntN(40))}
				if fields {
					e.Metadata = map[string]any{"title": randomText(r, 3), "note": randomText(r, 20)}
				}
				entries = append(entries, e)
			}
			testkit.Must(t, x.Put(t.Context(), entries))
			for range 2 { // computed, and from memory
				compareRows(t, x, r)
			}
		}
		testkit.Must(t, x.Close())
	}
}

func compareRows(t *testing.T, x *Index, r *rand.Rand) {
	t.Helper()
	c, err := x.conn(t.Context(), false)
	testkit.Must(t, err)
	matched := 0
	for range 40 {
		text := randomText(r, 1+r.IntN(5))
		switch r.IntN(4) {
		case 0:
			text += ` "` + randomText(r, 2) + `"`
		case 1:
			text += " word1*"
		case 2:
			text += " wrod5 absent"
		}
		s := &searcher{x: x, ctx: t.Context(), c: c, q: index.Query{Mode: index.ByText, Text: text}}
		terms, err := s.prepareTerms(&spec.EmbeddedQueryArguments{})
		testkit.Must(t, err)
		for _, all := range []bool{false, true} {
			merged, err := s.rows(terms, all)
			testkit.Must(t, err)
			want := readRows(t, s.scored(combine(terms, all)))
			got := readRows(t, merged)
			if len(got) != len(want) {
				t.Fatalf("%s: %d rows, want %d", text, len(got), len(want))
			}
			for i := range got {
				if got[i].number != want[i].number || math.Abs(got[i].score-want[i].score) > 1e-9*want[i].score {
					t.Fatalf("%s: row %d is %v, want %v", text, i, got[i], want[i])
				}
			}
			matched += len(got)
		}
	}
	if matched == 0 {
		t.Error("no query matched")
	}
}

func readRows(t *testing.T, rows iter.Seq2[scoredRow, error]) (list []scoredRow) {
	t.Helper()
	for row, err := range rows {
		testkit.Must(t, err)
		list = append(list, row)
	}
	return list
}

// TestTopHits checks that the best entries are kept, with all that have the last score.
func TestTopHits(t *testing.T) {
	best := topHits{limit: 3}
	for i, score := range []float64{2, 1, 0, 5, 2, 1, 7, 2, 3} {
		best.add(int64(i), score)
	}
	var got []int64
	for _, h := range keepBest(best.hits, 3) {
		got = append(got, h.entry)
	}
	if fmt.Sprint(got) != "[6 3 8]" {
		t.Errorf("entries %v", got)
	}
	best = topHits{limit: 2}
	for i, score := range []float64{2, 2, 1, 2, 3} {
		best.add(int64(i), score)
	}
	if hits := keepBest(best.hits, 2); len(hits) != 4 || hits[0].entry != 4 {
		t.Errorf("with equal scores: %v", hits)
	}
}
