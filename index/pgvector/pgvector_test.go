package pgvector_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/qtype-dev/qtype/index"
	"github.com/qtype-dev/qtype/index/internal/smoketest"
	"github.com/qtype-dev/qtype/index/store"
	"github.com/qtype-dev/qtype/internal/servertest"
	"github.com/qtype-dev/qtype/spec"
)

var server = servertest.Shared{Start: servertest.PGVector}

func TestMain(m *testing.M) { goleak.VerifyTestMain(server.Around(m)) }

func declared(name string, args map[string]any) *spec.VectorIndex {
	model := &spec.EmbeddingModel{Model: spec.Model{ID: "vectors"}, Dimensions: 2}
	return &spec.VectorIndex{IndexBase: spec.IndexBase{ID: name, Name: name, Args: args}, Module: "pgvector", EmbeddingModel: spec.Ref[*spec.EmbeddingModel]{ID: "vectors", To: model}}
}

func open(t *testing.T, x *spec.VectorIndex) index.Index {
	t.Helper()
	opened, err := store.Open(t.Context(), x, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = opened.Close() })
	return opened
}

func TestIndex(t *testing.T) {
	s := server.Get(t)
	url := "postgresql+psycopg2://postgres:secret@" + s.Address() + "/postgres?sslmode=disable&default_query_exec_mode=exec"
	for name, args := range map[string]map[string]any{
		"plain":       {"connection_string": url},
		"hybrid":      {"connection_string": url, "hybrid_search": true, "use_jsonb": true, "schema_name": "my schema"},
		"approximate": {"connection_string": url, "use_halfvec": true, "hnsw_kwargs": map[string]any{"hnsw_m": 8}},
	} {
		t.Run(name, func(t *testing.T) {
			x := open(t, declared(name, args))
			smoketest.Run(t, x)
			smoketest.Text(t, x, []float32{0, 1})
		})
	}
}
