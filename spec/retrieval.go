package spec

import "github.com/qtype-dev/qtype/internal/catalogue"

// DocumentSource reads documents through a reader class.
type DocumentSource struct {
	StepBase `rows:"many" effect:"reads files, servers or databases" out:"doc: RAGDocument; QT351 exactly 1; QT352 RAGDocument"`
	// ReaderModule is the name of the reader, or the Python class that it replaces.
	ReaderModule string `yaml:"reader_module" jsonschema:"required" example:"llama_index.core.SimpleDirectoryReader"`
	// Args are the arguments of the reader. An input of the step with the name of an argument replaces it.
	Args map[string]any `yaml:"args" example:"{input_dir: docs}"`
	// LoaderArgs are the arguments of the reader's load method, for readers that have any.
	LoaderArgs map[string]any `yaml:"loader_args"`
	// Auth is the id of the credentials for the source.
	Auth Ref[Auth] `yaml:"auth" accepts:"api_key bearer_token basic oauth2"`
}

// DocToTextConverter turns a document into text.
type DocToTextConverter struct {
	StepBase `effect:"reads the files of documents" in:"doc: RAGDocument; QT353 exactly 1; QT354 RAGDocument" out:"plain: RAGDocument; QT355 exactly 1; QT356 RAGDocument"`
	Concurrent
	// Password opens the PDF files that need one, mostly ${VAR} or a secret.
	Password Secret `yaml:"password"`
}

// DocumentSplitter splits a document into chunks.
type DocumentSplitter struct {
	StepBase `rows:"many" in:"doc: RAGDocument; QT357 exactly 1; QT358 RAGDocument" out:"chunk: RAGChunk; QT359 exactly 1; QT360 RAGChunk"`
	Concurrent
	// SplitterName is the splitting method.
	SplitterName string `yaml:"splitter_name" default:"SentenceSplitter"`
	// ChunkSize is the maximum number of tokens in a chunk.
	ChunkSize int `yaml:"chunk_size" default:"1024"`
	// ChunkOverlap is how many tokens two consecutive chunks share.
	ChunkOverlap int `yaml:"chunk_overlap" default:"20"`
	// Model is the id of the embedding model of SemanticSplitterNodeParser.
	Model Ref[*EmbeddingModel] `yaml:"model"`
	// Args are further settings of the splitter.
	Args map[string]any `yaml:"args"`
}

// DocumentEmbedder computes the embedding vectors of chunks.
type DocumentEmbedder struct {
	StepBase `rows:"batch" span:"EMBEDDING" in:"chunk: RAGChunk; QT361 exactly 1; QT362 RAGChunk" out:"embedded: RAGChunk; QT363 exactly 1; QT364 RAGChunk"`
	Concurrent
	Batched
	// Model is the id of the embedding model to call.
	Model Ref[*EmbeddingModel] `yaml:"model" jsonschema:"required"`
}

// IndexUpsert inserts or updates chunks or documents in an index.
type IndexUpsert struct {
	StepBase `rows:"batch" in:"VectorIndex: chunk: RAGChunk; QT365 exactly 1; QT366 RAGChunk|RAGDocument; DocumentIndex: title: text; QT367 at least 1"`
	Batched
	// Index is the id of the index.
	Index Ref[Index] `yaml:"index" jsonschema:"required"`
	// Sync removes from the index, at the end of a run, what the run did not contain. Nothing is removed if a row failed, or if the run did not read its whole input.
	Sync bool `yaml:"sync" default:"false"`
	// SyncFilters limit what sync removes to the entries with this metadata, if several flows fill one index.
	SyncFilters map[string]any `yaml:"sync_filters"`
}

// IndexWriter is a step that writes to an index.
type IndexWriter interface {
	Step
	// WrittenIndex is the index; nil if the reference is not linked.
	WrittenIndex() Index
	// Syncs reports whether the step removes from the index what its run did not contain.
	Syncs() bool
}

// WrittenIndex is the index that the step fills.
func (s *IndexUpsert) WrittenIndex() Index { return s.Index.To }

// Syncs reports whether the step has sync.
func (s *IndexUpsert) Syncs() bool { return s.Sync }

// VectorSearch finds the chunks most similar to a text.
type VectorSearch struct {
	StepBase `span:"RETRIEVER" in:"query: text; QT370 exactly 1; QT371 text" out:"found: list[RAGSearchResult]; QT372 exactly 1; QT373 list[RAGSearchResult]"`
	Batched
	// Index is the id of the vector index.
	Index Ref[*VectorIndex] `yaml:"index" jsonschema:"required"`
	// Mode is what is compared: vector (the meaning, by the embedding model of the index), text (the words), or hybrid (both rankings, combined).
	Mode string `yaml:"mode" default:"vector" validate:"oneof=vector text hybrid"`
	// MinScore drops results with a lower score; what scores mean depends on the store and the mode.
	MinScore *float64 `yaml:"min_score"`
	// Highlights adds passages of each chunk to its metadata, as highlights, with the words of the query in **bold**. They need mode text or hybrid.
	Highlights bool `yaml:"highlights" default:"false"`
	// Filters limit the search by metadata.
	Filters map[string]any `yaml:"filters"`
	// DefaultTopK is the maximum number of results; null means 10.
	DefaultTopK *int `yaml:"default_top_k" default:"10" validate:"omitempty,min=1,max=10000"`
}

// Filtering is an entity with conditions on metadata.
type Filtering interface {
	Entity
	// MetadataFilters are the key of the conditions on metadata and its value.
	MetadataFilters() (key string, filters map[string]any)
}

// FilteringStep is a step with conditions on metadata.
type FilteringStep interface {
	Step
	// MetadataFilters are the key of the conditions on metadata and its value.
	MetadataFilters() (key string, filters map[string]any)
}

// MetadataFilters are the conditions on the metadata of chunks.
func (s *VectorSearch) MetadataFilters() (key string, filters map[string]any) {
	return "filters", s.Filters
}

// MetadataFilters limit what sync removes.
func (s *IndexUpsert) MetadataFilters() (key string, filters map[string]any) {
	return "sync_filters", s.SyncFilters
}

// MetadataFilters are the conditions on the fields of documents.
func (s *DocumentSearch) MetadataFilters() (key string, filters map[string]any) {
	return "filters", s.Filters
}

// DocumentSearch finds documents by full-text search.
type DocumentSearch struct {
	StepBase `span:"RETRIEVER" in:"query: text; QT374 exactly 1; QT375 text" out:"found: list[SearchResult]; QT376 exactly 1; QT377 list[SearchResult]"`
	Concurrent
	// Index is the id of the document index.
	Index Ref[*DocumentIndex] `yaml:"index" jsonschema:"required"`
	// Filters limit the search by field values.
	Filters map[string]any `yaml:"filters"`
	// DefaultTopK is the maximum number of results; null means 10.
	DefaultTopK *int `yaml:"default_top_k" default:"10" validate:"omitempty,min=1,max=10000"`
	// QueryArgs are further settings of the query.
	QueryArgs map[string]any `yaml:"query_args"`
	// MinScore drops results with a lower score; what scores mean depends on the store.
	MinScore *float64 `yaml:"min_score"`
	// Highlights adds passages of each document to its fields, as highlights, with the words of the query in **bold**.
	Highlights bool `yaml:"highlights" default:"false"`
}

// Selection returns the store of the index with the settings of a query.
func (s *DocumentSearch) Selection() Selection {
	if s.Index.To == nil || !s.Index.To.Selection().Known { // both are reported elsewhere
		return Selection{Key: "index", Noun: storeNoun}
	}
	made, row := s.Index.To.store()
	return Selection{Key: "index", Noun: storeNoun, Name: made.Name, Known: made.Known,
		Mappings: []Argument{{Key: "query_args", Given: s.QueryArgs, Into: newArguments(row.QueryArguments)}}}
}

// BedrockReranker sorts search results by their relevance, with a model of Amazon Bedrock. Reranker has the same as its method bedrock.
type BedrockReranker struct {
	StepBase `span:"RERANKER" in:"query: text, found: list[SearchResult]; QT382 exactly 2; QT383 one text; QT384 one list[SearchResult]" out:"best: list[SearchResult]; QT380 exactly 1; QT381 list[SearchResult]"`
	Concurrent
	// Auth is the id of the AWS identity.
	Auth Ref[*AWSAuth] `yaml:"auth"`
	// ModelID is the reranking model.
	ModelID string `yaml:"model_id" jsonschema:"required" example:"cohere.rerank-v3-5"`
	// NumResults is the maximum number of results; without it all are kept.
	NumResults *int `yaml:"num_results" validate:"omitempty,gt=0"`

	catalogue *catalogue.Catalogue
}

// Reranker sorts search results by their relevance to a question, or combines the results of several searches. A result that is in several of the lists is in the output once.
type Reranker struct {
	StepBase `span:"RERANKER" in:"question: text, found: list[RAGSearchResult]; QT540 at least 1; QT541 text|list[RAGSearchResult]|list[SearchResult]" out:"best: list[RAGSearchResult]; QT542 exactly 1; QT543 list[RAGSearchResult]|list[SearchResult]"`
	Concurrent
	// Method is how the results are sorted.
	Method string `yaml:"method" jsonschema:"required" example:"cohere"`
	// Model is the id of the chat model that scores the results, for the method model.
	Model Ref[ModelEntity] `yaml:"model"`
	// EmbeddingModel is the id of the embedding model that compares the results, for the method mmr.
	EmbeddingModel Ref[*EmbeddingModel] `yaml:"embedding_model"`
	// NumResults is the maximum number of results; without it all are kept.
	NumResults *int `yaml:"num_results" validate:"omitempty,gt=0"`
	// Args are the arguments of the method.
	Args map[string]any `yaml:"args"`
	// Auth is the id of the credentials for the service of the method.
	Auth Ref[Auth] `yaml:"auth" accepts:"api_key bearer_token aws"`

	catalogue *catalogue.Catalogue
}
