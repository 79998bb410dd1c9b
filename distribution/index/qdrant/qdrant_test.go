package qdrant_test

import (
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/qtype-dev/qtype/distribution/index/servers/opentest"
	"github.com/qtype-dev/qtype/index"
	"github.com/qtype-dev/qtype/index/indextest"
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

func TestLlamaIndex(t *testing.T) {
	url := "http://" + server.Get(t).Address()
	opentest.SharedWithLlamaIndex(t, opentest.Vectors("qdrant", "shared", map[string]any{"url": url, "api_key": key}, nil), url, key)
}

// TestErrors checks that errors have one line and no key.
func TestErrors(t *testing.T) {
	s := server.Get(t)
	const wrong = "wrong-qdrant-key"
	x := opentest.Open(t, opentest.Vectors("qdrant", "secret", map[string]any{"url": "http://" + s.Address(), "api_key": wrong}, nil))
	defer func() { _ = x.Close() }()
	_, err := x.Stats(t.Context())
	if err == nil || err.Error() != "Qdrant at http://"+s.Address()+": status 401: Must provide an API key or an Authorization bearer token" {
		t.Errorf("got %v", err)
	}
	absent := opentest.Open(t, opentest.Vectors("qdrant", "absent", map[string]any{"url": "http://user:hidden-word@" + servertest.Refused(t), "max_retries": 0}, nil))
	defer func() { _ = absent.Close() }()
	_, err = absent.Stats(t.Context())
	if err == nil || strings.Contains(err.Error(), "hidden-word") || !strings.HasSuffix(err.Error(), ": connection refused") {
		t.Errorf("got %v", err)
	}
}
