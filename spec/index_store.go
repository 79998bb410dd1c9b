package spec

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/qtype-dev/qtype/spec/diag"
)

// IndexStore declares one store of indexes: a row of the table that the validator, the
// editor, the manual and the runtime read. What opens the store is the row of the same
// name in index/store.
type IndexStore struct {
	Name           string     // value of the key `module` of a VectorIndex
	Doc            string     // what it is, as a phrase for the manual and the editor
	Classes        []string   // other values of `module`: dotted class paths of LlamaIndex
	Vectors        bool       // a VectorIndex can use it
	Endpoints      []string   // what selects it as the `endpoint` of a DocumentIndex: its name, or schemes of URLs; empty if it cannot
	Auths          []string   // types of auth that it accepts; empty for none
	Arguments      func() any // returns a pointer to the struct of `args` with its defaults, see DecodeArguments
	QueryArguments func() any // the same for the `query_args` of a DocumentSearch; nil if there are none
}

// IndexStores lists the stores in the order in which messages and editors propose them.
// The caller must not change the list.
func IndexStores() []IndexStore { return indexStores() }

var indexStores = sync.OnceValue(indexStoreRows)

// StoreError reports an index whose store is not known.
type StoreError struct {
	Key   string   // the key that names the store: module or endpoint
	Value string   // what it says
	Valid []string // what it may say
}

// Error names the nearest store, or lists them.
func (e *StoreError) Error() string {
	return fmt.Sprintf("unknown %s %q: %s", e.Key, e.Value, e.Hint())
}

// Hint says what to write instead.
func (e *StoreError) Hint() string {
	if e.Key == "endpoint" {
		return "use one of " + strings.Join(e.Valid, ", ")
	}
	for _, s := range IndexStores() {
		if near := diag.Nearest(e.Value, append(s.modules(), s.Name)); near != "" {
			return fmt.Sprintf("did you mean %q? The stores are %s", near, strings.Join(e.Valid, ", "))
		}
	}
	return "the stores are " + strings.Join(e.Valid, ", ")
}

// StoreOf returns the store of an index. The error is a *StoreError.
func StoreOf(x Index) (IndexStore, error) { return x.store() }

func (x *VectorIndex) store() (IndexStore, error) {
	err := &StoreError{Key: "module", Value: x.Module}
	for _, s := range IndexStores() {
		if !s.Vectors {
			continue
		}
		if s.Name == x.Module || slices.Contains(s.modules(), x.Module) {
			return s, nil
		}
		err.Valid = append(err.Valid, s.Name)
	}
	return IndexStore{}, err
}

func (x *DocumentIndex) store() (IndexStore, error) {
	err := &StoreError{Key: "endpoint", Value: hideCredentials(x.Endpoint)}
	scheme, rest, isURL := strings.Cut(x.Endpoint, "://")
	for _, s := range IndexStores() {
		for _, endpoint := range s.Endpoints {
			if endpoint == s.Name {
				if x.Endpoint == s.Name {
					return s, nil
				}
				err.Valid = append(err.Valid, s.Name)
				continue
			}
			if isURL && rest != "" && strings.EqualFold(scheme, endpoint) {
				return s, nil
			}
			err.Valid = append(err.Valid, endpoint+"://HOST")
		}
	}
	return IndexStore{}, err
}

// hideCredentials removes the user and the password of a URL.
func hideCredentials(text string) string {
	scheme, rest, ok := strings.Cut(text, "://")
	if _, host, found := strings.Cut(rest, "@"); ok && found {
		return scheme + "://" + host
	}
	return text
}

// modules returns the class paths as documents write them: complete, without the package
// that all stores of LlamaIndex are in, and with the submodule that defines the class.
func (s IndexStore) modules() []string {
	const root = "llama_index.vector_stores."
	var all []string
	for _, class := range s.Classes {
		short := strings.TrimPrefix(class, root)
		all = append(all, class, short)
		if i := strings.LastIndexByte(short, '.'); i >= 0 {
			all = append(all, root+short[:i]+".base"+short[i:])
		}
	}
	return all
}

// indexStoreRows is the table.
func indexStoreRows() []IndexStore {
	return []IndexStore{
		{
			Name: "embedded", Doc: "an index in a file, which needs no server", Vectors: true, Endpoints: []string{"embedded"},
			Arguments: func() any { return &EmbeddedIndexArguments{} },
		},
		{
			Name: "qdrant", Doc: "Qdrant", Vectors: true, Auths: []string{"api_key", "bearer_token"},
			Classes:   []string{"llama_index.vector_stores.qdrant.QdrantVectorStore"},
			Arguments: func() any { return &QdrantArguments{BatchSize: 64, TextKey: "text"} },
		},
		{
			Name: "pgvector", Doc: "PostgreSQL with the extension vector", Vectors: true, Auths: []string{"basic"},
			Classes: []string{"llama_index.vector_stores.postgres.PGVectorStore"},
			Arguments: func() any {
				return &PGVectorArguments{SchemaName: "public", TextSearchConfig: "english", PerformSetup: true}
			},
		},
		{
			Name: "opensearch", Doc: "OpenSearch; for full-text search also Elasticsearch", Vectors: true, Endpoints: []string{"https", "http"},
			Auths:          []string{"api_key", "basic", "bearer_token", "aws"},
			Classes:        []string{"llama_index.vector_stores.opensearch.OpensearchVectorStore", "llama_index.vector_stores.opensearch.OpensearchVectorClient"},
			Arguments:      func() any { return &OpenSearchArguments{VerifyCerts: true, SpaceType: "cosinesimil", Exact: false} },
			QueryArguments: func() any { return &MultiMatchArguments{} },
		},
		{
			Name: "elasticsearch", Doc: "Elasticsearch", Vectors: true, Auths: []string{"api_key", "basic", "bearer_token"},
			Classes:   []string{"llama_index.vector_stores.elasticsearch.ElasticsearchStore"},
			Arguments: func() any { return &ElasticsearchArguments{VerifyCerts: true, DistanceStrategy: "COSINE"} },
		},
		{
			Name: "redis", Doc: "Redis with its search module", Vectors: true, Auths: []string{"basic"},
			Classes:   []string{"llama_index.vector_stores.redis.RedisVectorStore"},
			Arguments: func() any { return &RedisIndexArguments{RedisURL: "redis://127.0.0.1:6379"} },
		},
		{
			Name: "chroma", Doc: "a Chroma server", Vectors: true, Auths: []string{"api_key", "bearer_token", "basic"},
			Classes: []string{"llama_index.vector_stores.chroma.ChromaVectorStore"},
			Arguments: func() any {
				return &ChromaArguments{Tenant: "default_tenant", Database: "default_database"}
			},
		},
		{
			Name: "weaviate", Doc: "Weaviate", Vectors: true, Auths: []string{"api_key", "bearer_token"},
			Classes:   []string{"llama_index.vector_stores.weaviate.WeaviateVectorStore"},
			Arguments: func() any { return &WeaviateArguments{TextKey: "text"} },
		},
	}
}
