// Package smoketest checks the basics of an index.
package smoketest

import (
	"context"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/qtype-dev/qtype/index"
	"github.com/qtype-dev/qtype/internal/filter"
)

func ids[T any](all []T, id func(T) string) []string {
	var out []string
	for _, x := range all {
		out = append(out, id(x))
	}
	return out
}

// Run checks an index of vectors with 2 numbers.
func Run(t *testing.T, x index.Index) {
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(x.Clear(ctx))
	if m, err := x.Search(ctx, index.Query{Vector: []float32{1, 0}, Limit: 3}); err != nil || len(m) != 0 {
		t.Fatalf("empty: %v %v", m, err)
	}
	list := func(p index.Page) []index.Entry {
		t.Helper()
		var all []index.Entry
		for e, err := range x.Entries(ctx, p) {
			must(err)
			all = append(all, e)
		}
		return all
	}
	if got := list(index.Page{}); len(got) != 0 {
		t.Fatal(got)
	}
	must(x.Delete(ctx, []string{"none"}))
	if h, err := x.Hashes(ctx, []string{"none"}); err != nil || len(h) != 0 {
		t.Fatal(h, err)
	}
	if s, err := x.Stats(ctx); err != nil || s.Entries != 0 {
		t.Fatal(s, err)
	}
	a := index.Entry{ID: "72fd9f54-e518-54d8-98a6-c2caa3dc3830", Document: "d1", Text: "Ünï \"quotes\" <b>", Vector: []float32{1, 0}, Hash: "h1",
		Metadata: map[string]any{"lang": "en", "page": int64(3), "score": 1.5, "ok": true, "tags": []any{"x", "y"}, "nested": map[string]any{"a b": "c"}}}
	b := index.Entry{ID: "other id/1", Text: "second", Vector: []float32{0, 1}, Metadata: map[string]any{"lang": "de", "page": int64(4), "none": nil, "doc_id": "mine"}}
	c := index.Entry{ID: "third", Document: "d1", Text: "third", Vector: []float32{0.8, 0.6}}
	must(x.Put(ctx, []index.Entry{a, b, c}))
	noVector := func(e index.Entry) index.Entry { e.Vector = nil; return e }
	want := []index.Entry{noVector(a), noVector(b), noVector(c)}
	if d := cmp.Diff(want, list(index.Page{})); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]index.Entry{noVector(b)}, list(index.Page{After: a.ID, Limit: 1})); d != "" {
		t.Error(d)
	}
	h, err := x.Hashes(ctx, []string{a.ID, "third", "no"})
	must(err)
	if d := cmp.Diff(map[string]string{a.ID: "h1", "third": ""}, h); d != "" {
		t.Error(d)
	}
	found, err := x.Search(ctx, index.Query{Vector: []float32{1, 0}, Limit: 2})
	must(err)
	if len(found) != 2 || found[0].ID != a.ID || found[1].ID != "third" || found[0].Score <= found[1].Score {
		t.Errorf("found %+v", found)
	} else if found[0].Vector = nil; cmp.Diff(noVector(a), found[0].Entry) != "" {
		t.Error(cmp.Diff(noVector(a), found[0].Entry))
	}
	for _, tt := range []struct {
		filters map[string]any
		want    []string
	}{
		{map[string]any{"lang": "en"}, []string{a.ID}},
		{map[string]any{"lang": map[string]any{"ne": "en"}}, []string{"other id/1", "third"}},
		{map[string]any{"page": map[string]any{"gte": int64(4)}}, []string{"other id/1"}},
		{map[string]any{"page": 3.0}, []string{a.ID}},
		{map[string]any{"page": "3"}, nil},
		{map[string]any{"lang": map[string]any{"lt": "e"}}, []string{"other id/1"}},
		{map[string]any{"lang": []any{"en", "de"}}, []string{a.ID, "other id/1"}},
		{map[string]any{"tags": "y"}, []string{a.ID}},
		{map[string]any{"ok": true}, []string{a.ID}},
		{map[string]any{"nested.a b": "c"}, []string{a.ID}},
		{map[string]any{"none": map[string]any{"exists": true}}, nil},
		{map[string]any{"lang": map[string]any{"exists": false}}, []string{"third"}},
		{map[string]any{"or": []any{map[string]any{"lang": "de"}, map[string]any{"not": map[string]any{"page": map[string]any{"exists": true}}}}}, []string{"other id/1", "third"}},
	} {
		f, err := filter.Parse(tt.filters)
		must(err)
		found, err := x.Search(ctx, index.Query{Vector: []float32{1, 0}, Limit: 10, Filter: f})
		must(err)
		got := ids(found, func(m index.Match) string { return m.ID })
		slices.Sort(got)
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("%v: %s", tt.filters, d)
		}
		if d := cmp.Diff(tt.want, ids(list(index.Page{Filter: f}), func(e index.Entry) string { return e.ID })); d != "" {
			t.Errorf("list %v: %s", tt.filters, d)
		}
	}
	b.Text = "changed"
	must(x.Put(ctx, []index.Entry{b}))
	if s, err := x.Stats(ctx); err != nil || s.Entries != 3 || s.Dimensions != 2 || s.Documents != 1 && s.Documents != -1 {
		t.Error(s, err)
	}
	err = x.Put(ctx, []index.Entry{{ID: "long", Vector: []float32{1, 2, 3}}, {ID: "good", Text: "g", Vector: []float32{1, 1}}})
	if e, ok := err.(*index.PutError); !ok || len(e.Rejected) != 1 || e.Rejected["long"] == nil {
		t.Errorf("got %v", err)
	}
	must(x.Delete(ctx, []string{"good", "third", "unknown"}))
	if got := list(index.Page{}); len(got) != 2 || got[1].Text != "changed" {
		t.Error(got)
	}
	must(x.Clear(ctx))
	must(x.Clear(ctx))
	if got := list(index.Page{}); len(got) != 0 {
		t.Error(got)
	}
	canceled, cancel := context.WithCancel(ctx)
	cancel()
	if err := x.Put(canceled, []index.Entry{a}); err == nil {
		t.Error("a canceled Put succeeded")
	}
}

// Text checks full-text search of an index of vectors with 2 numbers.
func Text(t *testing.T, x index.Index, vector []float32) {
	ctx := t.Context()
	if err := x.Clear(ctx); err != nil {
		t.Fatal(err)
	}
	entries := []index.Entry{{ID: "a", Text: "The quick brown fox"}, {ID: "b", Text: "A lazy dog sleeps"}, {ID: "c", Text: "Nothing here"}}
	if vector != nil {
		for i := range entries {
			entries[i].Vector = []float32{1, float32(i)}
		}
	}
	if err := x.Put(ctx, entries); err != nil {
		t.Fatal(err)
	}
	found, err := x.Search(ctx, index.Query{Mode: index.ByText, Text: "dog", Limit: 5, Highlight: true})
	if err != nil || len(found) != 1 || found[0].ID != "b" || found[0].Score <= 0 || len(found[0].Highlights) != 1 || found[0].Highlights[0] != "A lazy **dog** sleeps" {
		t.Errorf("%+v %v", found, err)
	}
	if vector != nil {
		found, err := x.Search(ctx, index.Query{Mode: index.Hybrid, Text: "dog", Vector: vector, Limit: 2})
		if err != nil || len(found) != 2 {
			t.Errorf("%+v %v", found, err)
		}
	}
	for _, q := range []string{"", "\"", "AND", "NEAR(", "*", "(((", "🦊", "a:b", "-x", "x'y", "@text:{a}", "\\", "%", "dog OR", "$$", "\x00"} {
		if _, err := x.Search(ctx, index.Query{Mode: index.ByText, Text: q, Limit: 5}); err != nil {
			t.Errorf("%q: %v", q, err)
		}
	}
	if err := x.Clear(ctx); err != nil {
		t.Fatal(err)
	}
}
