package qdrant_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/qtype-dev/qtype/index"
	"github.com/qtype-dev/qtype/index/internal/smoketest"
	"github.com/qtype-dev/qtype/index/store"
	"github.com/qtype-dev/qtype/internal/servertest"
	"github.com/qtype-dev/qtype/spec"
)

const key = "qdrant-test-key"

var server = servertest.Shared{Start: func() (*servertest.Server, error) { return servertest.Qdrant(key) }}

func TestMain(m *testing.M) { goleak.VerifyTestMain(server.Around(m)) }

// declared returns an index of the document.
func declared(name string, args map[string]any) *spec.VectorIndex {
	model := &spec.EmbeddingModel{Model: spec.Model{ID: "vectors"}, Dimensions: 2}
	return &spec.VectorIndex{IndexBase: spec.IndexBase{ID: name, Name: name, Args: args}, Module: "qdrant", EmbeddingModel: spec.Ref[*spec.EmbeddingModel]{ID: "vectors", To: model}}
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
	smoketest.Run(t, open(t, declared("shop", map[string]any{"url": "http://" + s.Address(), "api_key": key})))
}
