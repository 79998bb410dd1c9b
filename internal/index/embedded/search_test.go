package embedded_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/qtype-dev/qtype/index"
	"github.com/qtype-dev/qtype/index/indextest"
	"github.com/qtype-dev/qtype/internal/index/embedded"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/internal/vectors"
)

// open returns an index in a new file.
func open(t testing.TB, opts embedded.Options) *embedded.Index {
	if opts.Path == "" {
		opts.Path = filepath.Join(t.TempDir(), "index.db")
	}
	x := embedded.Open(opts)
	t.Cleanup(func() { testkit.Must(t, x.Close()) })
	return x
}

// library returns an index of texts, whose ids are 0, 1, 2….
func library(t testing.TB, opts embedded.Options, texts ...string) *embedded.Index {
	x := open(t, opts)
	var list []index.Entry
	for i, text := range texts {
		list = append(list, index.Entry{ID: strconv.Itoa(i), Text: text})
	}
	testkit.Must(t, x.Put(t.Context(), list))
	return x
}

// find returns the ids of the entries that a text finds.
func find(t testing.TB, x *embedded.Index, text string, args map[string]any) (ids []string) {
	t.Helper()
	matches, err := x.Search(t.Context(), index.Query{Mode: index.ByText, Text: text, Limit: 20, Args: args})
	testkit.Must(t, err)
	for _, m := range matches {
		ids = append(ids, m.ID)
	}
	slices.Sort(ids)
	return ids
}

func TestSearch_Language(t *testing.T) {
	x := library(t, embedded.Options{},
		"The memory keeps the conversation of a session", // 0
		"A session keeps its memory",                     // 1
		"Conversations are summarized",                   // 2
		"Crème brûlée à la carte",                        // 3
		"東京都に住んでいます",                                     // 4
		"京都は古い町です",                                       // 5
		"rocket 🚀 launch",                                // 6
	)
	for text, want := range map[string]string{
		"memory":                "0 1",
		`"session keeps"`:       "1",
		`"keeps the"`:           "0",
		"conversation*":         "0 2",
		"conv*":                 "0 2",
		`"the convers"*`:        "0",
		"sesion":                "0 1", // an error
		"convresation":          "0 2", // swapped neighbors
		"sumarised":             "2",   // two errors
		"creme BRULEE":          "3",
		"cre\u0301me":           "3",
		"京都":                    "4 5",
		"東京":                    "4",
		"🚀":                     "6",
		"zzzzzz":                "",
		`memory "session keeps`: "0 1",
	} {
		if got := strings.Join(find(t, x, text, nil), " "); got != want {
			t.Errorf("%s: found %q, want %q", text, got, want)
		}
	}
	for want, args := range map[string]map[string]any{
		"":    {"fuzziness": 0},
		"0 1": {"fuzziness": "AUTO"},
	} {
		if got := strings.Join(find(t, x, "sesion", args), " "); got != want {
			t.Errorf("%v: found %q, want %q", args, got, want)
		}
	}
	if got := find(t, x, "memory conversation", map[string]any{"operator": "and"}); !slices.Equal(got, []string{"0"}) {
		t.Errorf("and: found %v", got)
	}
	if got := find(t, x, "keeps its", map[string]any{"type": "phrase"}); !slices.Equal(got, []string{"1"}) {
		t.Errorf("phrase: found %v", got)
	}
	if got := find(t, x, "keeps it", map[string]any{"type": "phrase_prefix"}); !slices.Equal(got, []string{"1"}) {
		t.Errorf("phrase_prefix: found %v", got)
	}
	if got := find(t, x, "conv", map[string]any{"type": "bool_prefix"}); !slices.Equal(got, []string{"0", "2"}) {
		t.Errorf("bool_prefix: found %v", got)
	}
}

func TestSearch_QueryArguments(t *testing.T) {
	x := library(t, embedded.Options{Fields: true}, "text")
	for want, args := range map[string]map[string]any{
		`query_args: type: "cross_fields" is not one of best_fields, most_fields, phrase, phrase_prefix, bool_prefix`: {"type": "cross_fields"},
		"query_args: tie_break: unknown key":                                  {"tie_break": 1},
		`query_args: fields: the boost of "title^x" is not a positive number`: {"fields": []any{"title^x"}},
		"query_args: fuzziness: expected AUTO, 0, 1 or 2":                     {"fuzziness": 3},
	} {
		_, err := x.Search(t.Context(), index.Query{Mode: index.ByText, Text: "text", Limit: 1, Args: args})
		if err == nil || err.Error() != want {
			t.Errorf("%v: %v", args, err)
		}
	}
}

// TestSearch_FrequentWords checks that a word of most entries neither hides the rare ones
// nor is ignored if there are no others.
func TestSearch_FrequentWords(t *testing.T) {
	texts := make([]string, 200)
	for i := range texts {
		texts[i] = "the filler"
	}
	texts[77], texts[150] = "the unicorn", "nothing"
	x := library(t, embedded.Options{}, texts...)
	matches, err := x.Search(t.Context(), index.Query{Mode: index.ByText, Text: "the unicorn", Limit: 5})
	testkit.Must(t, err)
	if len(matches) != 5 || matches[0].ID != "77" {
		t.Errorf("%+v", matches)
	}
	if got := find(t, x, "the", nil); len(got) != 20 {
		t.Errorf("%d matches", len(got))
	}
}

// TestSearch_Limit: any limit is valid, also one whose multiples no number can have.
func TestSearch_Limit(t *testing.T) {
	x := open(t, embedded.Options{Vectors: true, Encoding: vectors.Int8})
	testkit.Must(t, x.Put(t.Context(), batchOf(0)))
	for _, limit := range []int{10, 11, math.MaxInt32, math.MaxInt / 2, math.MaxInt} {
		for _, mode := range []index.Mode{index.ByVector, index.ByText, index.Hybrid} {
			matches, err := x.Search(t.Context(), index.Query{Mode: mode, Text: "batch0", Vector: []float32{1, 2, 3}, Limit: limit})
			if len(matches) != 10 || err != nil {
				t.Errorf("mode %d, limit %d: %d matches, %v", mode, limit, len(matches), err)
			}
		}
	}
}

// TestSearch_Approximate checks the recall of searches in clusters, also of entries that
// were added and deleted after clustering, and after the index was opened again.
func TestSearch_Approximate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "index.db")
	opts := embedded.Options{Path: path, Vectors: true, Encoding: vectors.Int8, Approximate: embedded.Always, Probes: 8}
	exactOpts := opts
	exactOpts.Approximate = embedded.Never
	r := rand.New(rand.NewPCG(1, 1))
	const dimensions = 32
	topics := make([][]float32, 40)
	for i := range topics {
		topics[i] = testkit.RandomVector(r, dimensions)
	}
	vector := func() []float32 {
		v := testkit.RandomVector(r, dimensions)
		for i, x := range topics[r.IntN(len(topics))] {
			v[i] = v[i]*0.6 + x
		}
		return v
	}
	x := open(t, opts)
	next := 0
	add := func(n int) {
		var list []index.Entry
		for range n {
			list = append(list, index.Entry{ID: fmt.Sprintf("%06d", next), Vector: vector()})
			next++
		}
		testkit.Must(t, x.Put(t.Context(), list))
	}
	for _, n := range []int{900, 600, 1_000} {
		add(n)
	}
	testkit.Must(t, x.Delete(t.Context(), []string{"000005", "001400", "002400"}))
	add(100)
	stats, err := x.Stats(t.Context())
	testkit.Must(t, err)
	if stats.Detail != "38 clusters" || stats.Entries != 2_597 {
		t.Errorf("%+v", stats)
	}
	again, exact := open(t, opts), open(t, exactOpts)
	found, total := 0, 0
	for range 100 {
		q := index.Query{Mode: index.ByVector, Vector: vector(), Limit: 10}
		want, err := exact.Search(t.Context(), q)
		testkit.Must(t, err)
		got, err := x.Search(t.Context(), q)
		testkit.Must(t, err)
		opened, err := again.Search(t.Context(), q)
		testkit.Must(t, err)
		if d := cmp.Diff(got, opened); d != "" {
			t.Fatalf("after opening again: %s", d)
		}
		for _, m := range want {
			total++
			if slices.ContainsFunc(got, func(g index.Match) bool { return g.ID == m.ID }) {
				found++
			}
		}
	}
	if recall := float64(found) / float64(total); recall < 0.9 {
		t.Errorf("recall %v", recall)
	}
}

func TestIndex_OtherSettings(t *testing.T) {
	path := filepath.Join(t.TempDir(), "index.db")
	x := open(t, embedded.Options{Path: path, Vectors: true})
	testkit.Must(t, x.Put(t.Context(), []index.Entry{{ID: "1", Vector: []float32{1, 2}}}))
	y := open(t, embedded.Options{Path: path, Vectors: true, Encoding: vectors.Int8})
	const want = " was created with other settings (vectors as float32, not vectors as int8): restore them, or clear the index"
	_, err := y.Search(t.Context(), index.Query{Mode: index.ByVector, Vector: []float32{1, 2}, Limit: 1})
	if err == nil || err.Error() != "index file "+path+want {
		t.Errorf("%v", err)
	}
	testkit.Must(t, y.Clear(t.Context()))
	testkit.Must(t, y.Put(t.Context(), []index.Entry{{ID: "1", Vector: []float32{1, 2, 3}}}))
	model := open(t, embedded.Options{Path: path, Vectors: true, Encoding: vectors.Int8, Dimensions: 4})
	if err := model.Put(t.Context(), []index.Entry{{ID: "1", Vector: []float32{1, 2, 3, 4}}}); err == nil || !strings.HasSuffix(err.Error(), "has vectors of length 3, the model returns 4: use the same model, or clear the index") {
		t.Errorf("%v", err)
	}
	if _, err := open(t, embedded.Options{Path: testkit.WriteFile(t, "text.db", "not a database, but a text that is longer than its header of 100 bytes, which begins with the name of the format")}).Stats(t.Context()); err == nil || !strings.HasSuffix(err.Error(), "not a SQLite database, or damaged") {
		t.Errorf("%v", err)
	}
}

// FuzzSearch_Text checks that no text is an error.
func FuzzSearch_Text(f *testing.F) {
	for _, text := range indextest.OddQueries() {
		if len(text) < 1_000 {
			f.Add(text)
		}
	}
	x := library(f, embedded.Options{}, "the quick brown fox", "京都 🙂", "a b c")
	f.Fuzz(func(t *testing.T, text string) {
		for _, args := range []map[string]any{nil, {"type": "phrase_prefix"}, {"operator": "and", "fuzziness": 2}} {
			if _, err := x.Search(t.Context(), index.Query{Mode: index.ByText, Text: text, Limit: 3, Args: args, Highlight: true}); err != nil {
				t.Errorf("%q: %v", text, err)
			}
		}
	})
}

func BenchmarkSearch(b *testing.B) {
	const n, dimensions = 20_000, 384
	for name, opts := range map[string]embedded.Options{
		"float32":     {Vectors: true, Approximate: embedded.Never},
		"int8":        {Vectors: true, Approximate: embedded.Never, Encoding: vectors.Int8},
		"approximate": {Vectors: true, Approximate: embedded.Always, Encoding: vectors.Int8},
	} {
		b.Run(name, func(b *testing.B) {
			r := rand.New(rand.NewPCG(1, 1))
			x := open(b, opts)
			list := make([]index.Entry, n)
			for i := range list {
				list[i] = index.Entry{ID: strconv.Itoa(i), Vector: testkit.RandomVector(r, dimensions)}
			}
			testkit.Must(b, x.Put(b.Context(), list))
			for b.Loop() {
				_, err := x.Search(b.Context(), index.Query{Mode: index.ByVector, Vector: testkit.RandomVector(r, dimensions), Limit: 10})
				testkit.Must(b, err)
			}
		})
	}
}
