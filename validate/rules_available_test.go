package validate_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/qtype-dev/qtype/internal/parts"
	"github.com/qtype-dev/qtype/loader"
	"github.com/qtype-dev/qtype/validate"
)

// needy is a document that needs one part of each kind that a checker knows.
const needy = `id: needy
models:
  - {type: Model, id: chat, provider: openai, model_id: gpt-6-luna}
  - {type: EmbeddingModel, id: vectors, provider: hugot, model_id: models/minilm, dimensions: 384}
stores:
  - {id: shared, type: redis, url: "redis://localhost/0"}
  - {id: own, type: sqlite, url: own.db}
  - {id: misspelled, type: RedisStore, url: "redis://localhost/0"}
memories: [{id: talk, store: shared}]
telemetry: {id: traces, provider: OTLP, endpoint: "http://localhost:4318"}
auths: [{id: account, type: aws, region: eu-west-1}]
indexes:
  - {type: VectorIndex, id: notes, module: qdrant, name: notes, embedding_model: vectors, args: {host: localhost, collection_name: notes}}
flows:
  - id: main
    variables: [{id: name, type: text}, {id: file, type: text}, {id: doc, type: RAGDocument}, {id: found, type: "list[SearchResult]"}, {id: best, type: "list[SearchResult]"}]
    inputs: [file]
    outputs: [name]
    steps:
      - {type: SQLSource, id: ask, query: select name from people, connection: "postgresql://localhost/people", outputs: [name]}
      - {type: SQLSource, id: ask_file, query: select name from people, connection: "sqlite:///people.db", outputs: [name]}
      - {type: FileWriter, id: keep, path: {uri: "s3://bucket/names.csv"}, inputs: [name]}
      - {type: FileWriter, id: keep_below, path: file, base: "gs://bucket/", inputs: [name]}
      - {type: FileWriter, id: keep_here, path: {uri: names.csv}, inputs: [name]}
      - {type: FileWriter, id: keep_columns, path: {uri: names.parquet.gz}, inputs: [name]}
      - {type: DocumentSource, id: read, reader_module: azure_blob, args: {container_name: docs}, outputs: [doc]}
      - {type: VectorSearch, id: search, index: notes, inputs: [file], outputs: [found]}
      - {type: Reranker, id: sort, method: bedrock, args: {model_id: cohere.rerank-v3-5:0}, inputs: [file, found], outputs: [best]}
      - {type: BedrockReranker, id: sort_too, auth: account, model_id: cohere.rerank-v3-5:0, inputs: [file, found], outputs: [best]}
`

// A part that the program does not have is an error at the key that needs it. A program that
// runs nothing reports none.
func TestCheckFor_MissingParts(t *testing.T) {
	have := new(parts.Set).Add(parts.Provider, "openai").Add(parts.Store, "sqlite").Add(parts.Database, "sqlite").Add(parts.Records, "csv")
	loaded, _ := loader.LoadBytes(t.Context(), "app.qtype.yaml", []byte(needy), emptyEnvironment())
	var got []string
	for _, d := range validate.CheckFor(loaded.Document, have) {
		if d.Code == "QT482" {
			place := d.Span.String()
			got = append(got, place[strings.Index(place, ":")+1:]+" "+strings.TrimSuffix(d.Message, "; the distribution has it: "+parts.Get))
		}
	}
	want := []string{
		"4:51 this program has no model provider hugot",
		"6:24 this program has no memory store redis",
		"10:35 this program has no telemetry otlp",
		"11:29 this program has no identity aws",
		"13:44 this program has no index store qdrant",
		"20:80 this program has no SQL database postgresql",
		"22:44 this program has no file system s3",
		"23:62 this program has no file system gs",
		"25:52 this program has no record format parquet",
		"26:57 this program has no file system azure",
		"28:44 this program has no identity aws",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	_, list := checked(t, needy)
	for _, d := range list {
		if d.Code == "QT482" {
			t.Errorf("a program with all parts: %s", d.Message)
		}
	}
}
