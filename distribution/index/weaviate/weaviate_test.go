package weaviate_test

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/qtype-dev/qtype/distribution/index/servers/opentest"
	"github.com/qtype-dev/qtype/distribution/index/weaviate"
	"github.com/qtype-dev/qtype/index"
	"github.com/qtype-dev/qtype/index/indextest"
	"github.com/qtype-dev/qtype/internal/filter"
	"github.com/qtype-dev/qtype/internal/servertest"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/spec"
)

var server = servertest.Shared{Start: servertest.Weaviate}

func TestMain(m *testing.M) { goleak.VerifyTestMain(server.Around(m)) }

// declared returns the declaration of an index in the server.
func declared(t *testing.T, name string, args map[string]any) *spec.VectorIndex {
	all := map[string]any{"url": "http://" + server.Get(t).Address()}
	maps.Copy(all, args)
	return opentest.Vectors("weaviate", name, all, nil)
}

func TestIndex(t *testing.T) {
	server.Get(t)
	indextest.Run(t, indextest.Store{Vectors: true, Text: true, Hybrid: true, Highlights: true, Open: func(t *testing.T, name string) index.Index {
		return opentest.Open(t, declared(t, name, nil))
	}})
}

func TestLlamaIndex(t *testing.T) {
	s := server.Get(t)
	opentest.SharedWithLlamaIndex(t, declared(t, "Shared", nil), fmt.Sprintf("http://%s:%d", s.Address(), s.More[0]), "")
}

// TestPut_MetadataOfAnyType checks values that cannot be properties: of another type than
// before, and with keys that cannot be names.
func TestPut_MetadataOfAnyType(t *testing.T) {
	x := opentest.Open(t, declared(t, "mixed", nil))
	t.Cleanup(func() { _ = x.Close() })
	values := []any{"2024-01-01T00:00:00Z", int64(3), 2.5, true, []any{"a", int64(1)}, map[string]any{"deep": []any{map[string]any{"x": "y"}}}}
	var entries []index.Entry
	for i, v := range values {
		entries = append(entries, index.Entry{ID: string(rune('a' + i)), Text: "text", Vector: vector(i),
			Metadata: map[string]any{"value": v, "Value": v, "odd key.é": v, "id": v, "text": v, "_additional": v, "vector": v}})
	}
	testkit.Must(t, x.Put(t.Context(), entries))
	var read []index.Entry
	for e, err := range x.Entries(t.Context(), index.Page{}) {
		testkit.Must(t, err)
		e.Vector = entries[len(read)].Vector
		read = append(read, e)
	}
	if d := cmp.Diff(entries, read); d != "" {
		t.Error(d)
	}
	matches, err := x.Search(t.Context(), index.Query{Mode: index.ByVector, Vector: vector(0), Limit: 9,
		Filter: filter.Compare{Field: "value", Op: filter.GreaterOrEqual, Value: 2.5}})
	testkit.Must(t, err)
	if len(matches) != 2 {
		t.Errorf("got %v", matches)
	}
}

// TestPut_OtherDimensions checks that the server's error is reported.
func TestPut_OtherDimensions(t *testing.T) {
	x := opentest.Open(t, declared(t, "dimensions", nil))
	t.Cleanup(func() { _ = x.Close() })
	testkit.Must(t, x.Put(t.Context(), []index.Entry{{ID: "a", Text: "text", Vector: vector(1)}}))
	other := declared(t, "dimensions", nil)
	other.EmbeddingModel.To.Dimensions = 3
	y := opentest.Open(t, other)
	t.Cleanup(func() { _ = y.Close() })
	if err := y.Put(t.Context(), []index.Entry{{ID: "b", Text: "text", Vector: []float32{1, 2, 3}}}); err == nil || !strings.Contains(err.Error(), "length") {
		t.Errorf("got %v", err)
	}
}

// TestCalls_BeforeCollectionIsReady checks that calls are repeated while the server lists a
// collection whose storage does not exist yet: a proxy before the real server gives its answers
// of that moment to the first calls.
func TestCalls_BeforeCollectionIsReady(t *testing.T) {
	address, err := url.Parse("http://" + server.Get(t).Address())
	testkit.Must(t, err)
	var queries, batches atomic.Int32
	proxy := httputil.NewSingleHostReverseProxy(address)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/v1/graphql" && queries.Add(1) <= 2:
			_, _ = io.WriteString(w, `{"data":{"Get":{"Early":null}},"errors":[{"message":"explorer: get class: vector search: tried to browse non-existing index for Early"}]}`)
		case r.URL.Path == "/v1/batch/objects" && batches.Add(1) <= 2:
			_, _ = io.WriteString(w, `[{"result":{"status":"FAILED","errors":{"error":[{"message":"could not find index for class Early. It might have been deleted in the meantime"}]}}}]`)
		default:
			proxy.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(front.Close)
	x := opentest.Open(t, declared(t, "early", map[string]any{"url": front.URL}))
	t.Cleanup(func() { _ = x.Close() })
	testkit.Must(t, x.Put(t.Context(), []index.Entry{{ID: "a", Text: "text", Vector: vector(1)}}))
	matches, err := x.Search(t.Context(), index.Query{Mode: index.ByVector, Vector: vector(1), Limit: 1})
	testkit.Must(t, err)
	if len(matches) != 1 || matches[0].ID != "a" {
		t.Errorf("got %v", matches)
	}
	if q, b := queries.Load(), batches.Load(); q != 3 || b != 3 {
		t.Errorf("%d queries and %d batches, want 3 each", q, b)
	}
}

func TestCollectionName(t *testing.T) {
	for name, want := range map[string]string{"notes": "Notes", "My_Notes2": "My_Notes2", "my-notes é": "My_notes__", "": "C", "2024": "C2024", "_x": "C_x"} {
		if got := weaviate.CollectionName(name); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}

func vector(i int) []float32 {
	v := make([]float32, indextest.Dimensions)
	v[0], v[1] = 1, float32(i)
	return v
}
