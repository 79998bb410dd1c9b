package chroma_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/qtype-dev/qtype/index"
	"github.com/qtype-dev/qtype/index/indextest"
	"github.com/qtype-dev/qtype/index/store/opentest"
	"github.com/qtype-dev/qtype/internal/servertest"
)

var server = servertest.Shared{Start: servertest.Chroma}

func TestMain(m *testing.M) { goleak.VerifyTestMain(server.Around(m)) }

func TestIndex(t *testing.T) {
	s := server.Get(t)
	indextest.Run(t, indextest.Store{Vectors: true, Open: func(t *testing.T, name string) index.Index {
		return opentest.Open(t, opentest.Vectors("chroma", name, map[string]any{"host": "127.0.0.1", "port": s.Port}, nil))
	}})
}

func TestLlamaIndex(t *testing.T) {
	s := server.Get(t)
	opentest.SharedWithLlamaIndex(t, opentest.Vectors("chroma", "shared", map[string]any{"host": "127.0.0.1", "port": s.Port}, nil), "http://"+s.Address(), "")
}
