package indextest

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/qtype-dev/qtype/index"
	"github.com/qtype-dev/qtype/internal/filter"
	"github.com/qtype-dev/qtype/internal/testkit"
)

// empty checks an index that does not exist.
func (s *suite) empty(t *testing.T) {
	x := s.open(t)
	if got := all(t, x, index.Page{}); len(got) != 0 {
		t.Errorf("entries %v", got)
	}
	for _, q := range s.queries("anything", vectorOf(1)) {
		if got := search(t, x, q); len(got) != 0 {
			t.Errorf("matches %v", got)
		}
	}
	hashes, err := x.Hashes(t.Context(), []string{"a"})
	testkit.Must(t, err)
	stats, err := x.Stats(t.Context())
	testkit.Must(t, err)
	if len(hashes) != 0 || stats.Entries != 0 || stats.Documents > 0 {
		t.Errorf("hashes %v, stats %+v", hashes, stats)
	}
	testkit.Must(t, x.Delete(t.Context(), []string{"a"}))
	testkit.Must(t, x.Put(t.Context(), nil))
	testkit.Must(t, x.Clear(t.Context()))
}

// queries returns a query of every mode of the store.
func (s *suite) queries(text string, vector []float32) (list []index.Query) {
	for mode, has := range map[index.Mode]bool{index.ByVector: s.Vectors, index.ByText: s.Text, index.Hybrid: s.Hybrid} {
		if has {
			list = append(list, index.Query{Mode: mode, Text: text, Vector: vector, Limit: 10})
		}
	}
	return list
}

// replace checks that an entry with a known id replaces the old one.
func (s *suite) replace(t *testing.T) {
	x := s.open(t)
	list := s.entries(20)
	list[3].Text = "zeppelin"
	put(t, x, list...)
	list[3].Text, list[3].Hash, list[3].Document = "entirely different", "other", "doc-new"
	list[3].Metadata = map[string]any{"new": "value"}
	put(t, x, list[3], s.entry(20, "common text"))
	list = append(list, s.entry(20, "common text"))
	wantEntries(t, all(t, x, index.Page{}), list)
	hashes, err := x.Hashes(t.Context(), []string{"id-0003", "id-0004", "missing"})
	testkit.Must(t, err)
	if d := cmp.Diff(map[string]string{"id-0003": "other", "id-0004": "hash 4"}, hashes); d != "" {
		t.Error(d)
	}
	if s.Text {
		wantIDs(t, "old text", search(t, x, index.Query{Mode: index.ByText, Text: "zeppelin", Limit: 5}))
		wantIDs(t, "new text", search(t, x, index.Query{Mode: index.ByText, Text: "entirely", Limit: 5}), "id-0003")
	}
	stats, err := x.Stats(t.Context())
	testkit.Must(t, err)
	if stats.Entries != 21 || stats.Documents != -1 && stats.Documents != 4 || s.Vectors && stats.Dimensions != Dimensions {
		t.Errorf("stats %+v", stats)
	}
}

// remove checks that deleted entries are not found.
func (s *suite) remove(t *testing.T) {
	x := s.open(t)
	list := s.entries(10)
	put(t, x, list...)
	testkit.Must(t, x.Delete(t.Context(), []string{"id-0002", "missing", "id-0002"}))
	list = slices.Delete(list, 2, 3)
	wantEntries(t, all(t, x, index.Page{}), list)
	for _, q := range s.queries("common number2", vectorOf(2)) {
		if matches := search(t, x, q); len(matches) != 9 || slices.Contains(ids(matches), "id-0002") {
			t.Errorf("mode %d: %v", q.Mode, ids(matches))
		}
	}
}

// clear checks that a cleared index is empty and usable.
func (s *suite) clear(t *testing.T) {
	x := s.open(t)
	put(t, x, s.entries(10)...)
	testkit.Must(t, x.Clear(t.Context()))
	if got := all(t, x, index.Page{}); len(got) != 0 {
		t.Errorf("entries %v", got)
	}
	for _, q := range s.queries("common", vectorOf(2)) {
		if got := search(t, x, q); len(got) != 0 {
			t.Errorf("matches %v", ids(got))
		}
	}
	put(t, x, s.entry(1, "again"))
	wantEntries(t, all(t, x, index.Page{}), []index.Entry{s.entry(1, "again")})
}

// listing checks pages.
func (s *suite) listing(t *testing.T) {
	x := s.open(t)
	list := s.entries(25)
	shuffled := slices.Clone(list)
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	put(t, x, shuffled...)
	var got []index.Entry
	for after := ""; ; after = got[len(got)-1].ID {
		page := all(t, x, index.Page{After: after, Limit: 10})
		got = append(got, page...)
		if len(page) < 10 {
			break
		}
	}
	wantEntries(t, got, list)
	odd := filter.In{Field: "n", Values: []any{int64(3), int64(7), int64(21)}}
	wantEntries(t, all(t, x, index.Page{Filter: odd, Limit: 2}), []index.Entry{list[3], list[7]})
	wantEntries(t, all(t, x, index.Page{Filter: odd, After: "id-0007"}), []index.Entry{list[21]})
	for _, err := range x.Entries(t.Context(), index.Page{}) {
		testkit.Must(t, err)
		break // the caller may stop
	}
}

// metadata checks that values of all types are returned as they were stored.
func (s *suite) metadata(t *testing.T) {
	x := s.open(t)
	e := s.entry(1, "text")
	e.Metadata = map[string]any{
		"text": "Grüße, 世界 🙂 \"quoted\" \\ \n\t", "empty": "", "whole": int64(-7), "large": int64(1) << 52, "float": 0.25, "yes": true, "no": false,
		"list": []any{"a", int64(1), 2.5, true}, "none": []any{}, "map": map[string]any{"inner": map[string]any{"deep": "x"}},
		"maps": []any{map[string]any{"a": int64(1)}, map[string]any{"a": int64(2)}}, "key with spaces": "v", "ключ": "v",
	}
	bare := s.entry(2, "")
	bare.Metadata, bare.Document, bare.Hash = nil, "", ""
	put(t, x, e, bare)
	got := all(t, x, index.Page{})
	if len(got) == 2 && len(got[1].Metadata) == 0 {
		got[1].Metadata = nil
	}
	wantEntries(t, got, []index.Entry{e, bare})
	for _, q := range s.queries("text", e.Vector) {
		matches := search(t, x, q)
		if len(matches) == 0 {
			t.Fatalf("mode %d: no match", q.Mode)
		}
		wantEntries(t, []index.Entry{matches[0].Entry}, []index.Entry{e})
	}
}

// unusual checks ids and texts with characters that query languages interpret.
func (s *suite) unusual(t *testing.T) {
	x := s.open(t)
	var list []index.Entry
	for i, id := range []string{"ünï cödé/世界", "a'b\"c", "%_*?", "{}[]()", "x\\y", "a:b|c,d;e", "🙂", "-1", strings.Repeat("long", 50)} {
		e := s.entry(i, "text of "+id+" with a \x00 and \u2028")
		e.ID = id
		list = append(list, e)
	}
	put(t, x, list...)
	put(t, x, list...)
	var wanted []string
	want := map[string]string{}
	for i := range list {
		want[list[i].ID], wanted = list[i].Hash, append(wanted, list[i].ID)
	}
	hashes, err := x.Hashes(t.Context(), wanted)
	testkit.Must(t, err)
	if d := cmp.Diff(want, hashes); d != "" {
		t.Error(d)
	}
	got := all(t, x, index.Page{})
	for i := range got {
		got[i].Text = strings.ReplaceAll(got[i].Text, "\x00", "")
	}
	for i := range list {
		list[i].Text = strings.ReplaceAll(list[i].Text, "\x00", "")
	}
	wantEntries(t, got, list)
	testkit.Must(t, x.Delete(t.Context(), wanted))
	if rest := all(t, x, index.Page{}); len(rest) != 0 {
		t.Errorf("%d entries are left", len(rest))
	}
}

// largeBatch checks a Put that is larger than one request of most protocols.
func (s *suite) largeBatch(t *testing.T) {
	x := s.open(t)
	const n = 1_200
	var list []index.Entry
	var wanted []string
	for i := range n {
		e := s.entry(i, strings.Repeat("word ", 100)+strconv.Itoa(i))
		list, wanted = append(list, e), append(wanted, e.ID)
	}
	put(t, x, list...)
	stats, err := x.Stats(t.Context())
	testkit.Must(t, err)
	hashes, err := x.Hashes(t.Context(), wanted)
	testkit.Must(t, err)
	if stats.Entries != n || len(hashes) != n {
		t.Errorf("%d entries, %d hashes", stats.Entries, len(hashes))
	}
	testkit.Must(t, x.Delete(t.Context(), wanted[10:]))
	wantEntries(t, all(t, x, index.Page{}), list[:10])
}

// reopen checks that entries are durable when Put returns.
func (s *suite) reopen(t *testing.T) {
	name := s.newName()
	list := s.entries(30)
	first := s.Open(t, name)
	put(t, first, list...)
	second := s.openName(t, name) // while the first one is open
	wantEntries(t, all(t, second, index.Page{}), list)
	testkit.Must(t, first.Delete(t.Context(), []string{"id-0005"}))
	put(t, first, s.entry(40, "late"))
	testkit.Must(t, first.Close())
	list = append(slices.Delete(list, 5, 6), s.entry(40, "late"))
	wantEntries(t, all(t, second, index.Page{}), list)
	for _, q := range s.queries("late", vectorOf(40)) {
		if matches := search(t, second, q); len(matches) == 0 || matches[0].ID != "id-0040" {
			t.Errorf("mode %d: %v", q.Mode, scored(matches))
		}
	}
	put(t, second, s.entry(5, "back"))
	third := s.openName(t, name)
	wantEntries(t, all(t, third, index.Page{}), append(list, s.entry(5, "back")))
}

// endedContext checks that nothing happens after a context has ended.
func (s *suite) endedContext(t *testing.T) {
	x := s.open(t)
	put(t, x, s.entry(1, "text"))
	ctx := ended(t)
	errs := []error{x.Put(ctx, s.entries(3)), x.Delete(ctx, []string{"id-0001"}), x.Clear(ctx)}
	for _, q := range s.queries("text", vectorOf(1)) {
		_, err := x.Search(ctx, q)
		errs = append(errs, err)
	}
	for _, err := range x.Entries(ctx, index.Page{}) {
		errs = append(errs, err)
	}
	for i, err := range errs {
		if err == nil {
			t.Errorf("call %d succeeded", i+1)
		}
	}
	wantEntries(t, all(t, x, index.Page{}), []index.Entry{s.entry(1, "text")})
}

// concurrent checks concurrent writers and readers.
func (s *suite) concurrent(t *testing.T) {
	x := s.open(t)
	const writers, each = 4, 8
	var wg sync.WaitGroup
	errs := make(chan error, 4*writers*each)
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				errs <- x.Put(t.Context(), []index.Entry{s.entry(w*each+i, "common text"), s.entry(900+i%2, "shared")})
			}
		})
		wg.Go(func() {
			for range each {
				for _, q := range s.queries("common", vectorOf(w)) {
					_, err := x.Search(t.Context(), q)
					errs <- err
				}
			}
		})
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		testkit.Must(t, err)
	}
	stats, err := x.Stats(t.Context())
	testkit.Must(t, err)
	if stats.Entries != writers*each+2 {
		t.Errorf("%d entries", stats.Entries)
	}
}

// wrongDimensions checks that vectors of another length are rejected, and only those.
func (s *suite) wrongDimensions(t *testing.T) {
	x := s.open(t)
	put(t, x, s.entry(1, "text"))
	bad := s.entry(2, "text")
	bad.Vector = []float32{1, 2, 3}
	err := x.Put(t.Context(), []index.Entry{bad})
	if err == nil || strings.ContainsAny(err.Error(), "\n") {
		t.Errorf("a vector of another length: %v", err)
	}
	var rejected *index.PutError
	if errors.As(err, &rejected) && rejected.Rejected[bad.ID] == nil {
		t.Errorf("the error does not name the entry: %v", err)
	}
	if _, err := x.Search(t.Context(), index.Query{Mode: index.ByVector, Vector: bad.Vector, Limit: 1}); err == nil {
		t.Error("a query of another length succeeded")
	}
	if got := all(t, x, index.Page{}); len(got) != 1 {
		t.Errorf("%d entries", len(got))
	}
}
