package store_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/qtype-dev/qtype/index"
	"github.com/qtype-dev/qtype/index/store"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/spec"
)

// openStore opens an index below a folder.
func openStore(t *testing.T, x spec.Index, folder string) index.Index {
	t.Helper()
	opened, err := store.Open(t.Context(), x, store.Options{Folder: folder})
	testkit.Must(t, err)
	t.Cleanup(func() { testkit.Must(t, opened.Close()) })
	return opened
}

func TestOpen_Embedded(t *testing.T) {
	folder := t.TempDir()
	model := &spec.EmbeddingModel{Dimensions: 2}
	notes := &spec.VectorIndex{IndexBase: spec.IndexBase{ID: "notes", Name: "a/b notes"}, Module: "embedded", EmbeddingModel: spec.Ref[*spec.EmbeddingModel]{To: model}}
	x := openStore(t, notes, folder)
	testkit.Must(t, x.Put(t.Context(), []index.Entry{{ID: "1", Text: "one", Vector: []float32{1, 0}}, {ID: "2", Text: "two", Vector: []float32{0, 1}}}))
	matches, err := x.Search(t.Context(), index.Query{Mode: index.ByVector, Vector: []float32{0.1, 1}, Limit: 1})
	testkit.Must(t, err)
	if len(matches) != 1 || matches[0].ID != "2" {
		t.Errorf("matches %+v", matches)
	}
	if _, err := os.Stat(filepath.Join(folder, ".qtype", "indexes", "a%2Fb%20notes.db")); err != nil {
		t.Error(err)
	}

	books := &spec.DocumentIndex{IndexBase: spec.IndexBase{ID: "books", Name: "books", Args: map[string]any{"path": "data/books.db", "stemming": "english"}}, Endpoint: "embedded"}
	y := openStore(t, books, folder)
	testkit.Must(t, y.Put(t.Context(), []index.Entry{{ID: "1", Metadata: map[string]any{"title": "Connected systems"}}}))
	if matches, err := y.Search(t.Context(), index.Query{Mode: index.ByText, Text: "connection", Limit: 1}); err != nil || len(matches) != 1 {
		t.Errorf("matches %+v, %v", matches, err)
	}
	if _, err := os.Stat(filepath.Join(folder, "data", "books.db")); err != nil {
		t.Error(err)
	}
}
