package index_test

import (
	"math"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/index"
)

func TestHash(t *testing.T) {
	base := index.Entry{ID: "a", Document: "d", Text: "text", Metadata: map[string]any{"page": int64(1), "tags": []any{"x"}}, Vector: []float32{1, 0}}
	hash := func(e index.Entry, model string) string {
		t.Helper()
		h, err := index.Hash(e, model)
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	want := hash(base, "m")
	same := base
	same.ID, same.Hash = "b", "old"
	same.Metadata = map[string]any{"tags": []any{"x"}, "page": 1.0} // as a store may return it
	if hash(same, "m") != want {
		t.Error("the hash depends on the id, the old hash or the types of numbers")
	}
	changed := map[string]index.Entry{}
	for name, change := range map[string]func(*index.Entry){
		"text":          func(e *index.Entry) { e.Text = "texts" },
		"document":      func(e *index.Entry) { e.Document = "" },
		"metadata":      func(e *index.Entry) { e.Metadata = map[string]any{"page": int64(1)} },
		"vector":        func(e *index.Entry) { e.Vector = []float32{0, 1} },
		"no vector":     func(e *index.Entry) { e.Vector = nil },
		"moved letters": func(e *index.Entry) { e.Document, e.Text = "dt", "ext" },
	} {
		e := base
		change(&e)
		changed[name] = e
	}
	seen := map[string]string{want: "nothing", hash(base, "n"): "model"}
	for name, e := range changed {
		h := hash(e, "m")
		if other, ok := seen[h]; ok {
			t.Errorf("a change of %s has the hash of a change of %s", name, other)
		}
		seen[h] = name
	}
	if plain, _, _ := strings.Cut(want, "@"); !strings.HasSuffix(want, "@m") || !index.IsUnchanged(want, want) || !index.IsUnchanged(plain, want) || index.IsUnchanged(hash(base, "n"), want) || index.IsUnchanged("", want) {
		t.Errorf("the hash %s is not recognized", want)
	}
	if _, err := index.Hash(index.Entry{Metadata: map[string]any{"x": math.NaN()}}, ""); err == nil {
		t.Error("metadata with NaN has a hash")
	}
}
