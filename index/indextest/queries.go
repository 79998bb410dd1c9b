package indextest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/qtype-dev/qtype/index"
	"github.com/qtype-dev/qtype/internal/filter"
)

// randomMetadata returns values that the conditions of randomFilter may match.
func randomMetadata(r *rand.Rand) map[string]any {
	m := map[string]any{}
	add := func(key string, values ...any) {
		if i := r.IntN(len(values) + 1); i < len(values) {
			m[key] = values[i]
		}
	}
	add("lang", "de", "en", "fr")
	add("year", int64(2019), int64(2020), int64(2021), 2020.5)
	add("draft", true, false)
	add("tag", "a", []any{"a", "b"}, []any{"c"}, []any{})
	add("author", map[string]any{"name": "Ada", "age": int64(36)}, map[string]any{"name": "Bob"})
	return m
}

// randomFilter returns a condition on random metadata.
func randomFilter(r *rand.Rand, depth int) filter.Filter {
	pick := func(values ...any) any { return values[r.IntN(len(values))] }
	number := func() any { return pick(int64(2019), int64(2020), int64(2021), 2020.5) }
	compare := []filter.Op{filter.Less, filter.LessOrEqual, filter.Greater, filter.GreaterOrEqual, filter.Equal}[r.IntN(5)]
	simple := []filter.Filter{
		filter.Compare{Field: "lang", Op: filter.Equal, Value: pick("de", "en", "es")},
		filter.Compare{Field: "lang", Op: compare, Value: "en"},
		filter.Compare{Field: "year", Op: compare, Value: number()},
		filter.Compare{Field: "draft", Op: filter.Equal, Value: pick(true, false)},
		filter.Compare{Field: "tag", Op: filter.Equal, Value: pick("a", "b", "z")},
		filter.Compare{Field: "author.name", Op: filter.Equal, Value: pick("Ada", "Bob")},
		filter.Compare{Field: "author.age", Op: compare, Value: int64(36)},
		filter.In{Field: "lang", Values: []any{"de", "fr"}},
		filter.In{Field: "tag", Values: []any{"b", "c"}},
		filter.In{Field: "year", Values: []any{int64(2019), int64(2021)}},
		filter.Exists{Field: pick("lang", "year", "draft", "tag", "author.age", "missing").(string)},
	}
	if depth == 0 {
		return simple[r.IntN(len(simple))]
	}
	switch r.IntN(6) {
	case 0:
		return filter.Not{Of: randomFilter(r, depth-1)}
	case 1:
		return filter.Or{Of: []filter.Filter{randomFilter(r, depth-1), randomFilter(r, depth-1)}}
	case 2:
		return filter.And{Of: []filter.Filter{randomFilter(r, depth-1), randomFilter(r, depth-1)}}
	}
	return simple[r.IntN(len(simple))]
}

func (s *suite) randomEntries(r *rand.Rand, n int) []index.Entry {
	list := s.entries(n)
	for i := range list {
		list[i].Metadata = randomMetadata(r)
	}
	return list
}

// filters compares listings with the reference implementation.
func (s *suite) filters(t *testing.T) {
	x := s.open(t)
	r := rand.New(rand.NewPCG(3, 4))
	list := s.randomEntries(r, 80)
	put(t, x, list...)
	for range 150 {
		f := randomFilter(r, 2)
		var want, got []string
		for _, e := range list {
			if f.Match(e.Metadata) {
				want = append(want, e.ID)
			}
		}
		for _, e := range all(t, x, index.Page{Filter: f}) {
			got = append(got, e.ID)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatalf("%#v: %s", f, d)
		}
	}
}

// filteredVectors checks that a search finds the nearest entries that match a filter.
func (s *suite) filteredVectors(t *testing.T) {
	x := s.open(t)
	r := rand.New(rand.NewPCG(5, 6))
	list := s.randomEntries(r, 80)
	for i := range list {
		list[i].Vector = randomVector(r)
	}
	put(t, x, list...)
	for i := range 60 {
		f, query := randomFilter(r, 2), randomVector(r)
		var matching []index.Entry
		for _, e := range list {
			if f.Match(e.Metadata) {
				matching = append(matching, e)
			}
		}
		got := search(t, x, index.Query{Mode: index.ByVector, Vector: query, Limit: 5, Filter: f})
		if d := cmp.Diff(nearestOf(matching, query, 5), ids(got)); d != "" {
			t.Fatalf("query %d, %#v: %s", i, f, d)
		}
	}
}

// nearestOf returns the ids of the entries with the greatest cosines.
func nearestOf(list []index.Entry, query []float32, k int) []string {
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b index.Entry) int {
		switch x, y := cosine(a.Vector, query), cosine(b.Vector, query); {
		case x > y:
			return -1
		case x < y:
			return 1
		}
		return strings.Compare(a.ID, b.ID)
	})
	var want []string
	for _, e := range list[:min(k, len(list))] {
		want = append(want, e.ID)
	}
	return want
}

func cosine(a, b []float32) float64 {
	var dot, aa, bb float64
	for i := range a {
		dot += float64(a[i]) * float64(b[i])
		aa += float64(a[i]) * float64(a[i])
		bb += float64(b[i]) * float64(b[i])
	}
	return dot / math.Sqrt(aa*bb)
}

func randomVector(r *rand.Rand) []float32 {
	v := make([]float32, Dimensions)
	for i := range v {
		v[i] = float32(r.NormFloat64()) * 3
	}
	return v
}

// nearest compares with a complete comparison.
func (s *suite) nearest(t *testing.T) {
	x := s.open(t)
	r := rand.New(rand.NewPCG(7, 8))
	list := s.entries(200)
	for i := range list {
		list[i].Vector = randomVector(r)
	}
	put(t, x, list...)
	for range 20 {
		query := randomVector(r)
		got := search(t, x, index.Query{Mode: index.ByVector, Vector: query, Limit: 10})
		if d := cmp.Diff(nearestOf(list, query, 10), ids(got)); d != "" {
			t.Fatal(d)
		}
	}
	zero := make([]float32, Dimensions)
	if _, err := x.Search(t.Context(), index.Query{Mode: index.ByVector, Vector: zero, Limit: 3}); err != nil && strings.Contains(err.Error(), "\n") {
		t.Errorf("a vector of zeros: %v", err)
	}
	if got := search(t, x, index.Query{Mode: index.ByVector, Vector: randomVector(r), Limit: 500}); len(got) != 200 {
		t.Errorf("%d of all entries", len(got))
	}
}

// equalScores checks that entries with equal scores are ordered by id.
func (s *suite) equalScores(t *testing.T) {
	x := s.open(t)
	var want []string
	list := s.entries(40)
	for i := range list {
		list[i].Vector = vectorOf(1)
		want = append(want, list[i].ID)
	}
	slices.Reverse(list)
	put(t, x, list...)
	for _, limit := range []int{1, 7, 40} {
		got := search(t, x, index.Query{Mode: index.ByVector, Vector: vectorOf(3), Limit: limit})
		wantIDs(t, fmt.Sprint("limit ", limit), got, want[:limit]...)
	}
}

// words checks the ranking of full-text search.
func (s *suite) words(t *testing.T) {
	x := s.open(t)
	texts := []string{
		"The quick brown fox jumps over the lazy dog",
		"A slow brown bear sleeps in the forest all winter",
		"Foxglove is a plant of the garden",
		"quick quick quick", //nolint:dupword // a query
		"Über Straßen und Plätze von 東京都",
		"nothing that is searched",
	}
	for i, text := range texts {
		put(t, x, s.entry(i, text))
	}
	byText := func(text string) []index.Match {
		return search(t, x, index.Query{Mode: index.ByText, Text: text, Limit: 10})
	}
	wantIDs(t, "one word", byText("BEAR"), "id-0001")
	wantIDs(t, "no word", byText("zeppelin"))
	if got := byText("brown fox"); len(got) < 2 || got[0].ID != "id-0000" || got[1].ID != "id-0001" {
		t.Errorf("brown fox: %v", scored(got))
	}
	if got := byText("quick"); len(got) != 2 || got[0].ID != "id-0003" {
		t.Errorf("quick: %v", scored(got))
	}
	n := filter.Compare{Field: "n", Op: filter.Less, Value: int64(3)}
	wantIDs(t, "filtered", search(t, x, index.Query{Mode: index.ByText, Text: "quick", Limit: 10, Filter: n}), "id-0000")
	for _, m := range byText("quick") {
		if m.Score <= 0 || m.Text == "" {
			t.Errorf("match %+v", m)
		}
	}
}

// fields checks the search in fields, with boosts.
func (s *suite) fields(t *testing.T) {
	x := s.open(t)
	title := func(n int, title, body string) index.Entry {
		e := s.entry(n, "")
		e.Metadata = map[string]any{"title": title, "body": body}
		return e
	}
	put(t, x, title(0, "apples and pears", "about fruit of the garden"), title(1, "about something", "apples apples apples"), title(2, "about", "nothing")) //nolint:dupword // a frequent word
	byText := func(args map[string]any) []index.Match {
		return search(t, x, index.Query{Mode: index.ByText, Text: "apples", Limit: 10, Args: args})
	}
	if got := byText(nil); len(got) != 2 {
		t.Errorf("all fields: %v", scored(got))
	}
	wantIDs(t, "body", byText(map[string]any{"fields": []any{"body"}}), "id-0001")
	wantIDs(t, "title", byText(map[string]any{"type": "best_fields", "fields": []any{"title^20", "body"}}), "id-0000", "id-0001")
	wantIDs(t, "boosted body", byText(map[string]any{"fields": []any{"title", "body^20"}}), "id-0001", "id-0000")
}

// highlights checks the marks around words.
func (s *suite) highlights(t *testing.T) {
	x := s.open(t)
	put(t, x, s.entry(1, strings.Repeat("Filler words go here. ", 50)+"The brown fox jumps. "+strings.Repeat("More filler follows. ", 50)))
	got := search(t, x, index.Query{Mode: index.ByText, Text: "fox", Limit: 1, Highlight: true})
	if len(got) != 1 || len(got[0].Highlights) == 0 || !strings.Contains(got[0].Highlights[0], "**fox**") || len(got[0].Highlights[0]) > 500 {
		t.Errorf("%+v", got)
	}
}

// OddQueries returns texts with the signs of query languages and other traps.
func OddQueries() []string {
	return []string{
		"", " ", "\t\n", `"`, `""`, `"unclosed`, `'`, "AND", "OR", "NOT", "fox AND", "NEAR(", "NEAR(a b, 5)", "a NEAR/3 b", "*", "fox*", "*fox", "(", ")", "((fox", "fox)",
		"-", "-fox", "+fox", "^fox", "title:fox", "{title}: fox", "fox^2", "fox~1", "[a TO b]", "/re.*x/", "a\\", "\\", "fox\\*", "🙂", "🙂 fox", "e\u0301", "\x00", "fo\x00x", "\xff\xfe",
		"%", "_", ";", "--", "/* x", "fox'; DROP TABLE entries; --", "@n:[1 2]", "@text:{a}", "|", "fox|bear", "~fox", "!", "&&", "||", "a&b", "$x", "{", "}", "{}", "<a>", "\u200b", "\u2028",
		"where is the fox?", "C++ & C#", "東京", strings.Repeat("(", 2_000), strings.Repeat(`"a `, 2_000), strings.Repeat("fox ", 25_000), strings.Repeat("x", 100_000), strings.Repeat("é", 50_000),
	}
}

// anyQuery checks that no text is a syntax error.
func (s *suite) anyQuery(t *testing.T) {
	x := s.open(t)
	put(t, x, s.entries(5)...)
	put(t, x, s.entry(7, "the fox and the bear 🙂"))
	for _, text := range OddQueries() {
		for _, q := range s.queries(text, vectorOf(1)) {
			q.Highlight = true
			search(t, x, q)
		}
	}
	if s.Text {
		wantIDs(t, "signs around a word", search(t, x, index.Query{Mode: index.ByText, Text: `("bear`, Limit: 3}), "id-0007")
	}
}

// hybrid checks that entries that both searches find come first.
func (s *suite) hybrid(t *testing.T) {
	x := s.open(t)
	list := s.entries(30)
	for i := range list {
		list[i].Text = "filler"
	}
	list[3].Text, list[20].Text = "the fox", "the fox"
	put(t, x, list...)
	got := search(t, x, index.Query{Mode: index.Hybrid, Text: "fox", Vector: vectorOf(3), Limit: 5})
	if len(got) != 5 || got[0].ID != "id-0003" || !slices.Contains(ids(got), "id-0020") {
		t.Errorf("%v", scored(got))
	}
}
