package chroma_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/qtype-dev/qtype/distribution/index/servers/opentest"
	"github.com/qtype-dev/qtype/index"
	"github.com/qtype-dev/qtype/index/indextest"
	"github.com/qtype-dev/qtype/internal/servertest"
	"github.com/qtype-dev/qtype/internal/testkit"
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

// TestSearch_WhileSegmentIsWritten checks that a search is repeated which Chroma cannot
// answer yet, and that other failures are not.
func TestSearch_WhileSegmentIsWritten(t *testing.T) {
	for message, want := range map[string]int{"Error creating hnsw segment reader: Nothing found on disk": 2, "Internal error": 1} {
		calls := 0
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !strings.HasSuffix(r.URL.Path, "/query") {
				_, _ = w.Write([]byte(`{"id": "c", "configuration_json": {"hnsw": {"space": "cosine"}}}`))
				return
			}
			if calls++; calls == 1 {
				w.WriteHeader(http.StatusInternalServerError)
				_, _ = w.Write([]byte(`{"error": "InternalError", "message": "` + message + `"}`))
				return
			}
			_, _ = w.Write([]byte(`{"ids": [["a"]], "distances": [[0.5]]}`))
		}))
		t.Cleanup(s.Close)
		host, port, err := net.SplitHostPort(s.Listener.Addr().String())
		testkit.Must(t, err)
		number, err := strconv.Atoi(port)
		testkit.Must(t, err)
		x := opentest.Open(t, opentest.Vectors("chroma", "notes", map[string]any{"host": host, "port": number}, nil))
		found, err := x.Search(t.Context(), index.Query{Mode: index.ByVector, Vector: make([]float32, 8), Limit: 3})
		if (err == nil) != (want == 2) || calls != want || len(found) != want-1 {
			t.Errorf("%s: %d calls, %v, %v", message, calls, found, err)
		}
	}
}
