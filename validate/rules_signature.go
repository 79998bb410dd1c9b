package validate

import "github.com/qtype-dev/qtype/spec"

// signatureRules are the rules QT320 to QT384 about the number and the types
// of a step's variables (semantics.md 4).
func signatureRules() []rule {
	var all []rule
	for _, s := range append(textSignatures(), retrievalSignatures()...) {
		all = append(all, s.rules()...)
	}
	return all
}

// textSignatures are the steps that work on texts and values.
func textSignatures() []signature {
	text, spoken := either("text"), either("text", "ChatMessage")
	return []signature{
		{step: (*spec.PromptTemplate)(nil), keys: `template: "Answer briefly: {question}"`, in: "question: text", out: "prompt: text",
			rows: []portRule{exactly(1, outputs, "QT320"), ofType(text, outputs, "QT321")}},
		{step: (*spec.LLMInference)(nil), head: sampleModel, keys: "model: writer", in: "question: text", out: "answer: text",
			rows: []portRule{exactly(1, outputs, "QT322"), ofType(spoken, outputs, "QT323")}},
		{step: (*spec.Agent)(nil), head: sampleModel, keys: "model: writer", in: "question: text", out: "answer: text",
			rows: []portRule{exactly(1, inputs, "QT324"), exactly(1, outputs, "QT325"), ofType(spoken, inputs, "QT326")}},
		{step: (*spec.Decoder)(nil), in: "json: text", out: "label: text",
			rows: []portRule{exactly(1, inputs, "QT330"), ofType(text, inputs, "QT331"), atLeast(1, outputs, "QT332")}},
		{step: (*spec.Explode)(nil), in: "names: list[text]", out: "name: text",
			rows: []portRule{exactly(1, inputs, "QT333"), exactly(1, outputs, "QT334"), ofType(anyList(), inputs, "QT335")}},
		{step: (*spec.Collect)(nil), in: "name: text", out: "names: list[text]",
			rows: []portRule{exactly(1, inputs, "QT337"), exactly(1, outputs, "QT338"), ofType(anyList(), outputs, "QT339")}},
		{step: (*spec.FieldExtractor)(nil), keys: "json_path: $.content", in: "found: SearchResult", out: "words: text",
			rows: []portRule{exactly(1, inputs, "QT345"), exactly(1, outputs, "QT346")}},
		{step: (*spec.SQLSource)(nil), keys: `query: select name from people, connection: "sqlite:///people.db"`, out: "name: text",
			rows: []portRule{atLeast(1, outputs, "QT350")}},
	}
}

// retrievalSignatures are the steps that work on documents and indexes. Only
// an upsert into a vector index has a fixed shape: a document index takes any
// variables as fields.
func retrievalSignatures() []signature {
	document, chunk := either("RAGDocument"), either("RAGChunk")
	const (
		vectors  = sampleVectors + "\nindexes:\n  - {type: VectorIndex, id: shelf, name: shelf, module: llama_index.core.VectorStoreIndex, embedding_model: vectors}"
		fullText = "indexes:\n  - {type: DocumentIndex, id: shelf, name: shelf, endpoint: \"http://localhost:9200\"}"
	)
	return []signature{
		{step: (*spec.DocumentSource)(nil), keys: "reader_module: llama_index.core.SimpleDirectoryReader", out: "doc: RAGDocument",
			rows: []portRule{exactly(1, outputs, "QT351"), ofType(document, outputs, "QT352")}},
		{step: (*spec.DocToTextConverter)(nil), in: "doc: RAGDocument", out: "plain: RAGDocument",
			rows: []portRule{exactly(1, inputs, "QT353"), ofType(document, inputs, "QT354"), exactly(1, outputs, "QT355"), ofType(document, outputs, "QT356")}},
		{step: (*spec.DocumentSplitter)(nil), in: "doc: RAGDocument", out: "chunk: RAGChunk",
			rows: []portRule{exactly(1, inputs, "QT357"), ofType(document, inputs, "QT358"), exactly(1, outputs, "QT359"), ofType(chunk, outputs, "QT360")}},
		{step: (*spec.DocumentEmbedder)(nil), head: sampleVectors, keys: "model: vectors", in: "chunk: RAGChunk", out: "embedded: RAGChunk",
			rows: []portRule{exactly(1, inputs, "QT361"), ofType(chunk, inputs, "QT362"), exactly(1, outputs, "QT363"), ofType(chunk, outputs, "QT364")}},
		{step: (*spec.IndexUpsert)(nil), when: indexIs[*spec.VectorIndex], head: vectors, keys: "index: shelf", in: "chunk: RAGChunk",
			rows: []portRule{exactly(1, inputs, "QT365"), ofType(either("RAGChunk", "RAGDocument"), inputs, "QT366")}},
		{step: (*spec.IndexUpsert)(nil), when: indexIs[*spec.DocumentIndex], head: fullText, keys: "index: shelf", in: "title: text",
			rows: []portRule{atLeast(1, inputs, "QT367")}},
		{step: (*spec.VectorSearch)(nil), head: vectors, keys: "index: shelf", in: "query: text", out: "found: list[RAGSearchResult]",
			rows: []portRule{exactly(1, inputs, "QT370"), ofType(either("text"), inputs, "QT371"), exactly(1, outputs, "QT372"), ofType(listOf("RAGSearchResult"), outputs, "QT373")}},
		{step: (*spec.DocumentSearch)(nil), head: fullText, keys: "index: shelf", in: "query: text", out: "found: list[SearchResult]",
			rows: []portRule{exactly(1, inputs, "QT374"), ofType(either("text"), inputs, "QT375"), exactly(1, outputs, "QT376"), ofType(listOf("SearchResult"), outputs, "QT377")}},
		{step: (*spec.BedrockReranker)(nil), keys: "model_id: cohere.rerank-v3-5", in: "query: text, found: list[SearchResult]", out: "best: list[SearchResult]",
			rows: []portRule{exactly(1, outputs, "QT380"), ofType(listOf("SearchResult"), outputs, "QT381"), exactly(2, inputs, "QT382"),
				oneOf(either("text"), inputs, "QT383"), oneOf(listOf("SearchResult"), inputs, "QT384")}},
	}
}

// indexIs tells whether a step's index is of one kind.
func indexIs[T spec.Index](s spec.Step) bool {
	_, ok := s.(*spec.IndexUpsert).Index.To.(T)
	return ok
}
