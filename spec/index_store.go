package spec

import (
	"fmt"
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
