package spec_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/spec"
)

func TestStoreOf(t *testing.T) {
	for module, want := range map[string]string{
		"embedded": "embedded",
		"qdrant":   "qdrant",
		"llama_index.vector_stores.qdrant.QdrantVectorStore":      "qdrant",
		"llama_index.vector_stores.qdrant.base.QdrantVectorStore": "qdrant",
		"qdrant.QdrantVectorStore":                                "qdrant",
		"llama_index.vector_stores.postgres.PGVectorStore":        "pgvector",
		"opensearch.OpensearchVectorStore":                        "opensearch",
		"chroma.ChromaVectorStore":                                "chroma",
		"llama_index.vector_stores.weaviate.WeaviateVectorStore":  "weaviate",
		"llama_index.vector_stores.redis.RedisVectorStore":        "redis",
	} {
		got, err := spec.StoreOf(&spec.VectorIndex{Module: module})
		if err != nil || got.Name != want {
			t.Errorf("%s: got %q, %v", module, got.Name, err)
		}
	}
	for endpoint, want := range map[string]string{"embedded": "embedded", "http://localhost:9200": "opensearch", "HTTPS://x.aoss.amazonaws.com": "opensearch", "rediss://cache:6380/0": "redis"} {
		got, err := spec.StoreOf(&spec.DocumentIndex{Endpoint: endpoint})
		if err != nil || got.Name != want {
			t.Errorf("%s: got %q, %v", endpoint, got.Name, err)
		}
	}
	for want, x := range map[string]spec.Index{
		`unknown module "qdrnt": use one of embedded, qdrant, pgvector, opensearch, elasticsearch, chroma, redis, weaviate`: &spec.VectorIndex{Module: "qdrnt"},
		`unknown endpoint "localhost:9200": use one of embedded, https://HOST, http://HOST, redis://HOST, rediss://HOST`:    &spec.DocumentIndex{Endpoint: "localhost:9200"},
		`unknown endpoint "ftp://search": use one of embedded, https://HOST, http://HOST, redis://HOST, rediss://HOST`:      &spec.DocumentIndex{Endpoint: "ftp://me:secret@search"},
	} {
		if _, err := spec.StoreOf(x); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// TestIndexStores checks that each row has a documentation and arguments that
// DecodeArguments can set.
func TestIndexStores(t *testing.T) {
	for _, s := range spec.IndexStores() {
		if s.Doc == "" || strings.HasSuffix(s.Doc, ".") {
			t.Errorf("%s: incomplete: %+v", s.Name, s)
		}
		for _, create := range []func() any{s.Args, s.DocumentArgs, s.QueryArguments} {
			if create == nil {
				continue
			}
			for _, p := range spec.DecodeArguments(sampleArguments(reflect.TypeOf(create()).Elem()), create()) {
				if p.Unknown || p.Missing != nil || strings.Contains(p.Message, "cannot be set") {
					t.Errorf("%s: %v", s.Name, p)
				}
			}
		}
	}
}

// sampleArguments has a value for each field.
func sampleArguments(t reflect.Type) map[string]any {
	args := map[string]any{}
	for _, f := range reflect.VisibleFields(t) {
		if f.Anonymous {
			continue
		}
		typ := f.Type
		if typ.Kind() == reflect.Pointer {
			typ = typ.Elem()
		}
		switch typ.Kind() {
		case reflect.Slice:
			args[f.Tag.Get("yaml")] = []any{"a"}
		case reflect.Map:
			args[f.Tag.Get("yaml")] = map[string]any{"a": "b"}
		case reflect.Interface:
			args[f.Tag.Get("yaml")] = "AUTO"
		default:
			args[f.Tag.Get("yaml")] = reflect.Zero(typ).Interface()
		}
	}
	return args
}
