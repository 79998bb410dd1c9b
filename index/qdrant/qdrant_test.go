package qdrant_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/qtype-dev/qtype/index"
	"github.com/qtype-dev/qtype/index/indextest"
	"github.com/qtype-dev/qtype/index/store/opentest"
	"github.com/qtype-dev/qtype/internal/servertest"
)

const key = "qdrant-test-key"

var server = servertest.Shared{Start: func() (*servertest.Server, error) { return servertest.Qdrant(key) }}

func TestMain(m *testing.M) { goleak.VerifyTestMain(server.Around(m)) }

func TestIndex(t *testing.T) {
	s := server.Get(t)
	indextest.Run(t, indextest.Store{Vectors: true, Open: func(t *testing.T, name string) index.Index {
		return opentest.Open(t, opentest.Vectors("qdrant", name, map[string]any{"url": "http://" + s.Address(), "api_key": key}, nil))
	}})
}
