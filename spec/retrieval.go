package spec

// DocumentSource reads documents through a reader class.
type DocumentSource struct {
	StepBase `rows:"many" out:"doc: RAGDocument; QT351 exactly 1; QT352 RAGDocument"`
	// ReaderModule is the reader's dotted class path.
	ReaderModule string `yaml:"reader_module" jsonschema:"required" example:"llama_index.core.SimpleDirectoryReader"`
	// Args are given to the reader when it is made.
	Args map[string]any `yaml:"args"`
	// LoaderArgs are given to the reader when it loads.
	LoaderArgs map[string]any `yaml:"loader_args"`
	// Auth names the credentials for the source.
	Auth Ref[Auth] `yaml:"auth"`
}

// DocToTextConverter turns a document into text.
type DocToTextConverter struct {
	StepBase `in:"doc: RAGDocument; QT353 exactly 1; QT354 RAGDocument" out:"plain: RAGDocument; QT355 exactly 1; QT356 RAGDocument"`
	Concurrent
}

// DocumentSplitter cuts a document into chunks.
type DocumentSplitter struct {
	StepBase `rows:"many" in:"doc: RAGDocument; QT357 exactly 1; QT358 RAGDocument" out:"chunk: RAGChunk; QT359 exactly 1; QT360 RAGChunk"`
	Concurrent
	// SplitterName is the splitting method.
	SplitterName string `yaml:"splitter_name" default:"SentenceSplitter"`
	// ChunkSize is the most tokens in a chunk.
	ChunkSize int `yaml:"chunk_size" default:"1024"`
	// ChunkOverlap is how many tokens two neighbours share.
	ChunkOverlap int `yaml:"chunk_overlap" default:"20"`
	// Args are further settings of the splitter.
	Args map[string]any `yaml:"args"`
}

// DocumentEmbedder gives chunks their vectors.
type DocumentEmbedder struct {
	StepBase `in:"chunk: RAGChunk; QT361 exactly 1; QT362 RAGChunk" out:"embedded: RAGChunk; QT363 exactly 1; QT364 RAGChunk"`
	Concurrent
	// Model names the embedding model that is asked, by its id.
	Model Ref[*EmbeddingModel] `yaml:"model" jsonschema:"required"`
}

// IndexUpsert puts chunks or documents into an index.
type IndexUpsert struct {
	StepBase `rows:"batch" in:"VectorIndex: chunk: RAGChunk; QT365 exactly 1; QT366 RAGChunk|RAGDocument; DocumentIndex: title: text; QT367 at least 1"`
	Batched
	// Index names the index.
	Index Ref[Index] `yaml:"index" jsonschema:"required"`
}

// VectorSearch finds the chunks most similar to a text.
type VectorSearch struct {
	StepBase `in:"query: text; QT370 exactly 1; QT371 text" out:"found: list[RAGSearchResult]; QT372 exactly 1; QT373 list[RAGSearchResult]"`
	Batched
	// Index names the vector index.
	Index Ref[*VectorIndex] `yaml:"index" jsonschema:"required"`
	// Filters limit the search by metadata.
	Filters map[string]any `yaml:"filters"`
	// DefaultTopK is how many results are wanted.
	DefaultTopK *int `yaml:"default_top_k" default:"10"`
}

// DocumentSearch finds documents by their words.
type DocumentSearch struct {
	StepBase `in:"query: text; QT374 exactly 1; QT375 text" out:"found: list[SearchResult]; QT376 exactly 1; QT377 list[SearchResult]"`
	Concurrent
	// Index names the document index.
	Index Ref[*DocumentIndex] `yaml:"index" jsonschema:"required"`
	// Filters limit the search by field values.
	Filters map[string]any `yaml:"filters"`
	// DefaultTopK is how many results are wanted.
	DefaultTopK *int `yaml:"default_top_k" default:"10"`
	// QueryArgs are further settings of the query.
	QueryArgs map[string]any `yaml:"query_args"`
}

// BedrockReranker puts search results in a better order.
type BedrockReranker struct {
	StepBase `in:"query: text, found: list[SearchResult]; QT382 exactly 2; QT383 one text; QT384 one list[SearchResult]" out:"best: list[SearchResult]; QT380 exactly 1; QT381 list[SearchResult]"`
	Concurrent
	// Auth names the AWS identity.
	Auth Ref[*AWSAuth] `yaml:"auth"`
	// ModelID is the reranking model.
	ModelID string `yaml:"model_id" jsonschema:"required" example:"cohere.rerank-v3-5"`
	// NumResults is how many results are kept; all where it is left out.
	NumResults *int `yaml:"num_results"`
}
