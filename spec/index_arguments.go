package spec

import (
	"errors"
	"fmt"
	"math"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// QdrantArguments are the `args` of an index in Qdrant.
type QdrantArguments struct {
	// CollectionName is the collection; by default the name of the index.
	CollectionName string `yaml:"collection_name"`
	// URL is the address of the server, such as http://localhost:6333.
	URL string `yaml:"url"`
	// Host is the host of the server, instead of url; localhost by default.
	Host string `yaml:"host"`
	// Port is the port of the server's HTTP API, together with host; 6333 by default.
	Port int `yaml:"port"`
	// HTTPS selects https with host; by default it is used with an API key.
	HTTPS *bool `yaml:"https"`
	// Prefix is the path before the API, such as service/v1.
	Prefix string `yaml:"prefix"`
	// APIKey is the key of the server, mostly ${VAR}; an auth is better, because it may name a secret.
	APIKey string `yaml:"api_key"`
	// Timeout is the maximum number of seconds of one request; 60 by default.
	Timeout float64 `yaml:"timeout"`
	// MaxRetries is how often a failed request is repeated; 3 by default.
	MaxRetries *int `yaml:"max_retries"`
	// BatchSize is the number of points in one request.
	BatchSize int `yaml:"batch_size" default:"64"`
	// TextKey is the key of the payload with the text of points that LlamaIndex did not write.
	TextKey string `yaml:"text_key" default:"text"`
	// DenseVectorName is the name of the vector in a collection with named vectors.
	DenseVectorName string `yaml:"dense_vector_name"`
}

// CheckArguments reports contradictory and unusable addresses.
func (a *QdrantArguments) CheckArguments() []*ArgumentError {
	var problems []*ArgumentError
	if a.URL != "" && a.Host != "" {
		problems = append(problems, &ArgumentError{Key: "host", Message: "has no effect with url", Hint: "keep one of them"})
	}
	if a.URL != "" {
		problems = append(problems, serverAddress("url", a.URL)...)
	}
	return problems
}

// PGVectorArguments are the `args` of an index in PostgreSQL.
type PGVectorArguments struct {
	// ConnectionString is the URL of the database, instead of host, port, database, user and password.
	ConnectionString string `yaml:"connection_string"`
	// Host is the host of the server.
	Host string `yaml:"host"`
	// Port is the port of the server; 5432 by default.
	Port int `yaml:"port"`
	// Database is the name of the database.
	Database string `yaml:"database"`
	// User is the user of the database.
	User string `yaml:"user"`
	// Password is the user's password, mostly ${VAR}; an auth of type basic is better, because it may name a secret.
	Password string `yaml:"password"`
	// SchemaName is the schema of the table.
	SchemaName string `yaml:"schema_name" default:"public"`
	// TableName is the table without its prefix data_; by default the name of the index.
	TableName string `yaml:"table_name"`
	// HybridSearch creates the column and the index of full-text search.
	HybridSearch bool `yaml:"hybrid_search"`
	// TextSearchConfig is the text search configuration of PostgreSQL, which determines the language.
	TextSearchConfig string `yaml:"text_search_config" default:"english"`
	// EmbedDim is the length of the vectors; it must be that of the embedding model.
	EmbedDim int `yaml:"embed_dim"`
	// PerformSetup creates the extension, the schema, the table and its indexes if they are missing.
	PerformSetup bool `yaml:"perform_setup" default:"true"`
	// UseJSONB selects the type jsonb for the metadata of a new table; otherwise json.
	UseJSONB bool `yaml:"use_jsonb"`
	// UseHalfvec stores vectors as 16-bit floats.
	UseHalfvec bool `yaml:"use_halfvec"`
	// HNSWKwargs creates an approximate index: hnsw_m, hnsw_ef_construction, hnsw_ef_search and hnsw_dist_method.
	HNSWKwargs map[string]any `yaml:"hnsw_kwargs"`
}

// CheckArguments reports contradictory addresses and wrong settings of hnsw_kwargs.
func (a *PGVectorArguments) CheckArguments() []*ArgumentError {
	var problems []*ArgumentError
	if a.ConnectionString != "" && (a.Host != "" || a.Port != 0 || a.Database != "" || a.User != "" || a.Password != "") {
		problems = append(problems, &ArgumentError{Key: "connection_string", Message: "excludes host, port, database, user and password", Hint: "keep one form of the address"})
	}
	if a.Port < 0 || a.Port > math.MaxUint16 {
		problems = append(problems, &ArgumentError{Key: "port", Message: "expected a number up to 65535"})
	}
	for _, p := range DecodeArguments(a.HNSWKwargs, &HNSWArguments{}) {
		problems = append(problems, &ArgumentError{Key: "hnsw_kwargs", Message: p.Error(), Hint: p.Hint})
	}
	return problems
}

// HNSWArguments are the settings of an approximate index in PostgreSQL.
type HNSWArguments struct {
	// M is the number of connections of each entry.
	M int `yaml:"hnsw_m" default:"16"`
	// EFConstruction is the number of candidates while the index is built.
	EFConstruction int `yaml:"hnsw_ef_construction" default:"64"`
	// EFSearch is the number of candidates of a search.
	EFSearch int `yaml:"hnsw_ef_search" default:"40"`
	// DistMethod is vector_cosine_ops: searches compare vectors by their cosine.
	DistMethod string `yaml:"hnsw_dist_method" default:"vector_cosine_ops"`
}

// ConnectionArguments are the `args` of an index that concern the requests to its server.
type ConnectionArguments struct {
	// VerifyCerts checks the certificate of the server.
	VerifyCerts bool `yaml:"verify_certs" default:"true"`
	// CACerts is the file of the certificates that are trusted in addition to those of the system.
	CACerts string `yaml:"ca_certs"`
	// Timeout is the maximum number of seconds of one request; 60 by default.
	Timeout float64 `yaml:"timeout"`
	// MaxRetries is how often a failed request is repeated; 3 by default.
	MaxRetries *int `yaml:"max_retries"`
}

// DocumentServerArguments are the `args` of a DocumentIndex in OpenSearch or Elasticsearch.
type DocumentServerArguments struct {
	// Index is the name of the index in the server; by default the name of the index.
	Index string `yaml:"index"`
	// Service is the AWS service that requests are signed for with an auth of type aws: aoss or es; by default by the host, and aoss for others.
	Service string `yaml:"service"`
	ConnectionArguments
}

// CheckArguments reports an unknown service.
func (a *DocumentServerArguments) CheckArguments() []*ArgumentError {
	return checkValue(nil, "service", a.Service, "", "aoss", "es")
}

// checkValue adds the error of a value that is not allowed.
func checkValue(problems []*ArgumentError, key, value string, allowed ...string) []*ArgumentError {
	if slices.Contains(allowed, value) {
		return problems
	}
	return append(problems, &ArgumentError{Key: key, Message: fmt.Sprintf("unknown value %q", value), Hint: "use " + strings.Trim(strings.Join(allowed, ", "), ", ")})
}

// OpenSearchArguments are the `args` of a VectorIndex in OpenSearch.
type OpenSearchArguments struct {
	// Endpoint is the address of the server.
	Endpoint string `yaml:"endpoint" jsonschema:"required"`
	// Dim is the length of the vectors; it must be that of the embedding model.
	Dim int `yaml:"dim"`
	// EmbeddingField is the field of the vector.
	EmbeddingField string `yaml:"embedding_field" default:"embedding"`
	// TextField is the field of the text.
	TextField string `yaml:"text_field" default:"content"`
	// Engine is the library of approximate search: lucene or faiss; by default that of the server.
	Engine string `yaml:"engine"`
	// SpaceType is the distance of vectors of approximate search: cosinesimil, l2 or innerproduct.
	SpaceType string `yaml:"space_type" default:"cosinesimil"`
	// Exact compares all vectors by their cosine, which needs no k-NN plugin.
	Exact bool `yaml:"exact"`
	DocumentServerArguments
}

// CheckArguments reports an unusable address and unknown values.
func (a *OpenSearchArguments) CheckArguments() []*ArgumentError {
	problems := checkValue(append(a.DocumentServerArguments.CheckArguments(), serverAddress("endpoint", a.Endpoint)...), "space_type", a.SpaceType, "cosinesimil", "l2", "innerproduct")
	return checkValue(problems, "engine", a.Engine, "", "lucene", "faiss", "nmslib")
}

// ElasticsearchArguments are the `args` of an index in Elasticsearch.
type ElasticsearchArguments struct {
	// IndexName is the name of the index in the server; by default the name of the index.
	IndexName string `yaml:"index_name"`
	// ESURL is the address of the server.
	ESURL string `yaml:"es_url" jsonschema:"required"`
	// ESUser is the user, instead of an auth.
	ESUser string `yaml:"es_user"`
	// ESPassword is the user's password, mostly ${VAR}; an auth is better, because it may name a secret.
	ESPassword string `yaml:"es_password"`
	// ESAPIKey is the encoded API key, mostly ${VAR}; an auth is better, because it may name a secret.
	ESAPIKey string `yaml:"es_api_key"`
	// TextField is the field of the text.
	TextField string `yaml:"text_field" default:"content"`
	// VectorField is the field of the vector.
	VectorField string `yaml:"vector_field" default:"embedding"`
	// DistanceStrategy is the similarity of vectors: COSINE, DOT_PRODUCT or EUCLIDEAN_DISTANCE.
	DistanceStrategy string `yaml:"distance_strategy" default:"COSINE"`
	// Exact compares all vectors.
	Exact bool `yaml:"exact"`
	ConnectionArguments
}

// CheckArguments reports an unusable address and an unknown distance_strategy.
func (a *ElasticsearchArguments) CheckArguments() []*ArgumentError {
	return checkValue(serverAddress("es_url", a.ESURL), "distance_strategy", a.DistanceStrategy, "COSINE", "DOT_PRODUCT", "EUCLIDEAN_DISTANCE")
}

// ChromaArguments are the `args` of an index in Chroma.
type ChromaArguments struct {
	// CollectionName is the collection; by default the name of the index.
	CollectionName string `yaml:"collection_name"`
	// Host is the host of the server.
	Host string `yaml:"host" default:"localhost"`
	// Port is the port of the server.
	Port int `yaml:"port" default:"8000"`
	// SSL selects https.
	SSL bool `yaml:"ssl"`
	// Headers are sent with each request.
	Headers map[string]string `yaml:"headers"`
	// Tenant is the tenant of the database.
	Tenant string `yaml:"tenant" default:"default_tenant"`
	// Database is the database of the collection.
	Database string `yaml:"database" default:"default_database"`
	// Space is the distance of a new collection: cosine, l2 or ip.
	Space string `yaml:"space" default:"cosine"`
}

// CheckArguments reports an unknown distance.
func (a *ChromaArguments) CheckArguments() []*ArgumentError {
	return checkValue(checkHeaders(a.Headers), "space", a.Space, "cosine", "l2", "ip")
}

// WeaviateArguments are the `args` of an index in Weaviate.
type WeaviateArguments struct {
	// URL is the address of the server.
	URL string `yaml:"url" default:"http://localhost:8080"`
	// IndexName is the collection, which begins with a capital letter; by default it is made of the name of the index.
	IndexName string `yaml:"index_name"`
	// TextKey is the property with the text.
	TextKey string `yaml:"text_key" default:"text"`
	// Distance is the distance of a new collection: cosine, dot or l2-squared.
	Distance string `yaml:"distance" default:"cosine"`
	// Headers are sent with each request.
	Headers map[string]string `yaml:"headers"`
	// Timeout is the maximum number of seconds of one request; 60 by default.
	Timeout float64 `yaml:"timeout"`
	// MaxRetries is how often a failed request is repeated; 3 by default.
	MaxRetries *int `yaml:"max_retries"`
}

// Names that Weaviate accepts.
var (
	weaviateCollection = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Z][_0-9A-Za-z]{0,255}$`) })
	weaviateProperty   = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z][_0-9A-Za-z]{0,229}$`) })
)

// CheckArguments reports an unusable address, an unknown distance, and names that Weaviate
// does not accept.
func (a *WeaviateArguments) CheckArguments() []*ArgumentError {
	problems := checkValue(append(serverAddress("url", a.URL), checkHeaders(a.Headers)...), "distance", a.Distance, "cosine", "dot", "l2-squared")
	if a.IndexName != "" && !weaviateCollection().MatchString(a.IndexName) {
		problems = append(problems, &ArgumentError{Key: "index_name", Message: "is not the name of a collection of Weaviate",
			Hint: "use letters, digits and _ after a capital letter"})
	}
	if !weaviateProperty().MatchString(a.TextKey) {
		problems = append(problems, &ArgumentError{Key: "text_key", Message: "is not the name of a property of Weaviate",
			Hint: "use letters, digits and _ after a small letter"})
	}
	return problems
}

// MultiMatchArguments are the `query_args` of a search in OpenSearch and Elasticsearch:
// those of the query multi_match.
type MultiMatchArguments struct {
	// Type is how the fields are combined: best_fields, most_fields, cross_fields, phrase, phrase_prefix or bool_prefix.
	Type string `yaml:"type"`
	// Fields are the fields to search, with * and boosts such as title^3.
	Fields []string `yaml:"fields"`
	// Operator is or, or and if all words are required.
	Operator string `yaml:"operator"`
	// MinimumShouldMatch is how many words are required: a number or a percentage.
	MinimumShouldMatch any `yaml:"minimum_should_match"`
	// Fuzziness is the number of typing errors that are accepted, or AUTO.
	Fuzziness any `yaml:"fuzziness"`
	// PrefixLength is how many characters at the beginning of a word must match exactly.
	PrefixLength *int `yaml:"prefix_length"`
	// MaxExpansions limits the words that a fuzzy word or a prefix is expanded to.
	MaxExpansions *int `yaml:"max_expansions"`
	// Analyzer splits the text of the query into words.
	Analyzer string `yaml:"analyzer"`
	// TieBreaker is the weight of fields other than the best one.
	TieBreaker *float64 `yaml:"tie_breaker"`
	// Slop is how many words may be between the words of a phrase.
	Slop *int `yaml:"slop"`
	// Lenient ignores errors such as text in a numeric field.
	Lenient *bool `yaml:"lenient"`
	// Boost multiplies the score.
	Boost *float64 `yaml:"boost"`
	// ZeroTermsQuery is none or all: what a query without words finds.
	ZeroTermsQuery string `yaml:"zero_terms_query"`
}

// IsServerAddress reports whether a text is the http or https address of the server of an index.
func IsServerAddress(text string) bool {
	u, err := url.Parse(strings.TrimRight(text, "/"))
	return err == nil && u.Host != "" && (u.Scheme == "http" || u.Scheme == "https")
}

// serverAddress reports a text that is not the address of the server of an index.
func serverAddress(key, text string) []*ArgumentError {
	if IsServerAddress(text) {
		return nil
	}
	return []*ArgumentError{{Key: key, Message: "expected an address that begins with http:// or https:// and has a host"}}
}

// ParseRedisAddress parses the address of a Redis server. Its error does not contain the
// address, which may have a password.
func ParseRedisAddress(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || !strings.EqualFold(u.Scheme, "redis") && !strings.EqualFold(u.Scheme, "rediss") {
		return nil, errors.New("must be a URL such as redis://HOST:6379/0, or rediss:// for TLS")
	}
	return u, nil
}

// redisAddress reports a text that is not the address of a Redis server.
func redisAddress(key, text string) []*ArgumentError {
	if _, err := ParseRedisAddress(text); err != nil {
		return []*ArgumentError{{Key: key, Message: err.Error()}}
	}
	return nil
}

// dimensioned is implemented by arguments with the length of the vectors.
type dimensioned interface {
	dimensions() (key string, n int) // n is 0 if it is not set
}

func (a *PGVectorArguments) dimensions() (key string, n int)   { return "embed_dim", a.EmbedDim }
func (a *OpenSearchArguments) dimensions() (key string, n int) { return "dim", a.Dim }

// CheckDimensions reports decoded arguments whose vectors have another length than the
// vectors of the embedding model; nil if they match.
func (x *VectorIndex) CheckDimensions(args any) *ArgumentError {
	set, ok := args.(dimensioned)
	model := x.EmbeddingModel.To
	if !ok || model == nil {
		return nil
	}
	key, n := set.dimensions()
	if n == 0 || n == model.Dimensions {
		return nil
	}
	return &ArgumentError{Key: key, Message: fmt.Sprintf("expected %d, the dimensions of the embedding model %s, not %d", model.Dimensions, model.ID, n)}
}
