package spec

import (
	"fmt"
	"slices"
	"strings"
	"sync"
)

// IndexStore declares one store of indexes: a row of the table that the validator, the
// editor, the manual and the runtime read. What opens the store is the row of the same
// name in index/store.
type IndexStore struct {
	Implementation
	Text           bool       // its vector indexes also have full-text search
	Endpoints      []string   // what selects it as the `endpoint` of a DocumentIndex: a name, or beginnings of URLs such as http://; empty if it has no full-text indexes
	Auths          []string   // types of auth that it accepts; empty for none
	DocumentArgs   func() any // returns a new struct for the keys of `args` of a DocumentIndex; nil if Args is for both
	QueryArguments func() any // returns a new struct for the keys of `query_args`; nil for none
}

// IndexStores lists the stores in the order in which messages and editors propose them.
// The caller must not change the list.
func IndexStores() []IndexStore { return indexStores() }

var indexStores = sync.OnceValue(indexStoreRows)

// StoreOf returns the store of an index.
func StoreOf(x Index) (IndexStore, error) {
	s, row := x.store()
	if !s.Known {
		return row, fmt.Errorf("unknown %s %q: use one of %s", s.Key, s.Name, strings.Join(s.Names(), ", "))
	}
	return row, nil
}

// Selection returns the store with its arguments.
func (x *VectorIndex) Selection() Selection {
	s, _ := x.store()
	return s
}

// Selection returns the store with its arguments.
func (x *DocumentIndex) Selection() Selection {
	s, _ := x.store()
	return s
}

// schemeEnd ends the scheme of a URL, and those of Endpoints.
const schemeEnd = "://"

// storeNoun names what an index selects.
const storeNoun = "index store"

func (x *VectorIndex) store() (Selection, IndexStore) {
	s, row := selection("module", storeNoun, x.Module, IndexStores(), func(r IndexStore) Implementation { return r.Implementation })
	return complete(s, row, row.Args, x.Args), row
}

func (x *DocumentIndex) store() (Selection, IndexStore) {
	s := Selection{Key: "endpoint", Noun: storeNoun, Name: hideCredentials(x.Endpoint)}
	var found IndexStore
	for _, row := range IndexStores() {
		for _, endpoint := range row.Endpoints {
			o := Implementation{Name: endpoint, Doc: row.Doc}
			if strings.HasSuffix(endpoint, schemeEnd) {
				o.Name += "HOST"
			}
			s.Options = append(s.Options, o)
			if isAt(x.Endpoint, endpoint) {
				s.Known, s.Name, found = true, row.Name, row
			}
		}
	}
	return complete(s, found, found.documentArgs(), x.Args), found
}

// isAt reports whether the endpoint of an index is one of Endpoints.
func isAt(written, endpoint string) bool {
	wanted, isScheme := strings.CutSuffix(endpoint, schemeEnd)
	if !isScheme {
		return written == endpoint
	}
	scheme, host, ok := strings.Cut(written, schemeEnd)
	return ok && host != "" && strings.EqualFold(scheme, wanted)
}

// documentArgs returns the function that makes the arguments of a DocumentIndex.
func (r IndexStore) documentArgs() func() any {
	if r.DocumentArgs != nil {
		return r.DocumentArgs
	}
	return r.Args
}

// complete adds the arguments and the accepted credentials to a selection.
func complete(s Selection, r IndexStore, into func() any, args map[string]any) Selection {
	s.Auths = append([]string{}, r.Auths...)
	s.Mappings = []Argument{{Key: "args", Given: args, Into: newArguments(into)}}
	return s
}

// hideCredentials removes the user and the password of a URL.
func hideCredentials(text string) string {
	scheme, rest, ok := strings.Cut(text, schemeEnd)
	if _, host, found := strings.Cut(rest, "@"); ok && found {
		return scheme + schemeEnd + host
	}
	return text
}

// llamaIndex lists the names of classes of LlamaIndex as documents write them: complete,
// without the package that all stores are in, and with the submodule that defines them.
func llamaIndex(classes ...string) []string {
	const root = "llama_index.vector_stores."
	var all []string
	for _, class := range classes {
		module, name, _ := strings.Cut(class, ".")
		all = append(all, root+class, class, root+module+".base."+name)
	}
	return all
}

// indexStoreRows is the table.
func indexStoreRows() []IndexStore {
	return []IndexStore{
		{
			Text:           true,
			Implementation: Implementation{Name: "embedded", Doc: "an index in a file, which needs no server", Args: newOf[EmbeddedIndexArguments]},
			Endpoints:      []string{"embedded"},
			QueryArguments: newOf[EmbeddedQueryArguments],
		},
		{
			Implementation: Implementation{Name: "qdrant", Doc: "Qdrant", Aliases: llamaIndex("qdrant.QdrantVectorStore"), Args: newOf[QdrantArguments]},
			Auths:          []string{"api_key", "bearer_token"},
		},
		{
			Text:           true,
			Implementation: Implementation{Name: "pgvector", Doc: "PostgreSQL with the extension vector", Aliases: llamaIndex("postgres.PGVectorStore"), Args: newOf[PGVectorArguments]},
			Auths:          []string{"basic"},
		},
		{
			Text: true,
			Implementation: Implementation{Name: "opensearch", Doc: "OpenSearch; for full-text search also Elasticsearch",
				Aliases: llamaIndex("opensearch.OpensearchVectorStore", "opensearch.OpensearchVectorClient"), Args: newOf[OpenSearchArguments]},
			Endpoints: []string{"https://", "http://"}, Auths: []string{"api_key", "basic", "bearer_token", "aws"},
			DocumentArgs: newOf[DocumentServerArguments], QueryArguments: newOf[MultiMatchArguments],
		},
		{
			Text:           true,
			Implementation: Implementation{Name: "elasticsearch", Doc: "Elasticsearch", Aliases: llamaIndex("elasticsearch.ElasticsearchStore"), Args: newOf[ElasticsearchArguments]},
			Auths:          []string{"api_key", "basic", "bearer_token"},
		},
		{
			Implementation: Implementation{Name: "chroma", Doc: "a Chroma server", Aliases: llamaIndex("chroma.ChromaVectorStore"), Args: newOf[ChromaArguments]},
			Auths:          []string{"api_key", "bearer_token", "basic"},
		},
		{
			Text:           true,
			Implementation: Implementation{Name: "redis", Doc: "Redis with its query engine: Redis 8 or Redis Stack", Aliases: llamaIndex("redis.RedisVectorStore"), Args: newOf[RedisArguments]},
			Endpoints:      []string{"redis://", "rediss://"}, Auths: []string{"basic"},
			DocumentArgs: newOf[RedisDocumentArguments],
		},
		{
			Text:           true,
			Implementation: Implementation{Name: "weaviate", Doc: "Weaviate", Aliases: llamaIndex("weaviate.WeaviateVectorStore"), Args: newOf[WeaviateArguments]},
			Auths:          []string{"api_key", "bearer_token"},
		},
	}
}

// newOf returns a new struct of arguments.
func newOf[A any]() any { return new(A) }

// RedisDocumentArguments are the `args` of a DocumentIndex in Redis.
type RedisDocumentArguments struct {
	// IndexName is the name of the index in the server; by default the name of the index.
	IndexName string `yaml:"index_name"`
	// Prefix is the beginning of the keys of entries; by default the name of the index and /vector, or /document in a DocumentIndex. The prefix of an index must not begin with that of another one.
	Prefix string `yaml:"prefix"`
	// KeySeparator is between the prefix and the id of an entry.
	KeySeparator string `yaml:"key_separator" default:"_"`
	ConnectionArguments
}

// RedisArguments are the `args` of a VectorIndex in Redis.
type RedisArguments struct {
	// RedisURL is the address of the server, such as redis://localhost:6379/0, or rediss:// for TLS.
	RedisURL string `yaml:"redis_url" default:"redis://localhost:6379"`
	// Algorithm is flat, which compares all vectors, or hnsw, which is approximate; of a new index.
	Algorithm string `yaml:"algorithm" default:"flat"`
	// DistanceMetric is the distance of a new index: cosine, l2 or ip.
	DistanceMetric string `yaml:"distance_metric" default:"cosine"`
	// M is the number of connections of each entry with hnsw; by default that of the server.
	M int `yaml:"m"`
	// EFConstruction is the number of candidates while an index with hnsw is built; by default that of the server.
	EFConstruction int `yaml:"ef_construction"`
	// EFRuntime is the number of candidates of a search with hnsw; by default that of the server.
	EFRuntime int `yaml:"ef_runtime"`
	RedisDocumentArguments
}

// CheckArguments reports an unusable address, unknown values and settings without effect.
func (a *RedisArguments) CheckArguments() []*ArgumentError {
	problems := checkValue(redisAddress("redis_url", a.RedisURL), "algorithm", a.Algorithm, "flat", "hnsw")
	problems = checkValue(problems, "distance_metric", a.DistanceMetric, "cosine", "l2", "ip")
	for _, setting := range []struct {
		key   string
		value int
	}{{"m", a.M}, {"ef_construction", a.EFConstruction}, {"ef_runtime", a.EFRuntime}} {
		switch {
		case setting.value < 0:
			problems = append(problems, &ArgumentError{Key: setting.key, Message: "expected 0, for the default of the server, or more"})
		case setting.value > 0 && a.Algorithm != "hnsw":
			problems = append(problems, &ArgumentError{Key: setting.key, Message: "has no effect without algorithm: hnsw"})
		}
	}
	return problems
}

// IndexTool lets a model search an index. The result of a call is a list of passages with numbers, which an answer cites as in [1]; the cited ones are the sources of the answer.
type IndexTool struct {
	ToolBase `without:"outputs"`
	// Index is the id of the index.
	Index Ref[Index] `yaml:"index" jsonschema:"required"`
	// Mode is what is compared in a VectorIndex: vector (the meaning, by the embedding model of the index), text (the words), or hybrid (both rankings, combined). A DocumentIndex compares words.
	Mode string `yaml:"mode" default:"vector" validate:"oneof=vector text hybrid"`
	// Filters limit the search by metadata.
	Filters map[string]any `yaml:"filters"`
	// TopK is the maximum number of passages, if the call does not have an argument top_k.
	TopK int `yaml:"top_k" default:"5" validate:"min=1,max=50"`
}

// The arguments of an IndexTool with a fixed meaning. Others are conditions on the
// metadata field of the same name.
const (
	IndexToolQuery = "query" // the text to search for, required
	IndexToolTopK  = "top_k" // the maximum number of passages
)

// Arguments returns the inputs; without any, the query alone.
func (t *IndexTool) Arguments() []*Variable {
	if len(t.Inputs) > 0 {
		return t.Inputs
	}
	return []*Variable{{ID: IndexToolQuery, Type: Type{Name: "text"}}}
}

// Results returns nothing: the result is a list of passages.
func (t *IndexTool) Results() (vars []*Variable, declared bool) { return nil, false }

// MetadataFilters are the conditions on the metadata of passages.
func (t *IndexTool) MetadataFilters() (key string, filters map[string]any) {
	return "filters", t.Filters
}

// FilterInputs lists the arguments that are conditions on metadata.
func (t *IndexTool) FilterInputs() []*Variable {
	return slices.DeleteFunc(slices.Clone(t.Inputs), func(v *Variable) bool {
		return v == nil || v.ID == IndexToolQuery || v.ID == IndexToolTopK
	})
}
