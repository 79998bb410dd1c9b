package servers_test

import (
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/distribution/index/servers"
	"github.com/qtype-dev/qtype/index/store"
	"github.com/qtype-dev/qtype/spec"
)

// TestOpen_RedisErrors checks arguments that cannot be used.
func TestOpen_RedisErrors(t *testing.T) {
	model := spec.Ref[*spec.EmbeddingModel]{To: &spec.EmbeddingModel{Dimensions: 2}}
	vectors := func(args map[string]any) spec.Index {
		return &spec.VectorIndex{IndexBase: spec.IndexBase{ID: "x", Name: "x", Args: args}, Module: "redis", EmbeddingModel: model}
	}
	for _, c := range []struct {
		index spec.Index
		want  string
	}{
		{vectors(map[string]any{"redis_url": "http://host"}), "args: redis_url: must be a URL such as redis://HOST:6379/0"},
		{vectors(map[string]any{"redis_url": "redis://me:pass%word@host"}), "args: redis_url: must be a URL such as redis://HOST:6379/0"},
		{vectors(map[string]any{"redis_url": "redis://host/first"}), "invalid database number"},
		{vectors(map[string]any{"ca_certs": "ca.pem"}), "ca_certs has no effect without TLS"},
		{vectors(map[string]any{"redis_url": "rediss://host", "ca_certs": "missing.pem"}), "missing.pem"},
		{vectors(map[string]any{"algorithm": "tree"}), `algorithm: unknown value "tree"`},
		{vectors(map[string]any{"ef_runtime": 10}), "ef_runtime: has no effect without algorithm: hnsw"},
		{&spec.DocumentIndex{IndexBase: spec.IndexBase{ID: "x", Name: "x"}, Endpoint: "redis://host?decode_responses=True"}, "endpoint: unexpected option"},
	} {
		opened, err := store.Open(t.Context(), c.index, store.Options{Stores: servers.Builders()})
		if err == nil {
			_ = opened.Close() // it is not connected
		}
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "pass%word") {
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
}
