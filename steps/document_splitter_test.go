package steps_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
	"github.com/qtype-dev/qtype/steps"
)

// ragDocument returns a document with metadata.
func ragDocument(name string, content any, metadata ...value.Field) *value.Record {
	return value.NewRecord("RAGDocument", value.Field{Name: "content", Value: content}, value.Field{Name: "file_id", Value: "doc-1"},
		value.Field{Name: "file_name", Value: name}, value.Field{Name: "uri"}, value.Field{Name: "metadata", Value: value.NewRecord("", metadata...)},
		value.Field{Name: "type", Value: "text"})
}

// splitDocument runs a DocumentSplitter on a document.
func splitDocument(t *testing.T, s *spec.DocumentSplitter, doc any) []string {
	t.Helper()
	l := declare(t, nil, "doc: RAGDocument", "chunk: RAGChunk", "n: int")
	s.StepBase = l.base("split", []string{"doc"}, []string{"chunk"})
	runner := build(t, s, &steps.Env{Slots: l})
	var out []string
	for _, row := range driveRows(t, runner, l.row(map[string]any{"doc": doc, "n": int64(7)})) {
		if row.Err != nil {
			out = append(out, "error: "+row.Err.Err.Error())
			continue
		}
		if row.Values[2] != int64(7) {
			t.Errorf("the variable n is %v; other variables must keep their values", row.Values[2])
		}
		out = append(out, string(value.JSON(row.Values[1])))
	}
	return out
}

func TestDocumentSplitter(t *testing.T) {
	text := "# Guide\n\nFirst pagé.\n\n## Part\n\nSecond page."
	pages := value.Field{Name: "page_offsets", Value: []any{int64(0), int64(22)}}
	got := splitDocument(t, &spec.DocumentSplitter{SplitterName: "MarkdownNodeParser"}, ragDocument("guide.md", text, value.Field{Name: "lang", Value: "en"}, pages))
	want := []string{
		`{"vector":null,"content":"# Guide\n\nFirst pagé.","metadata":{"lang":"en","header_path":"/","page":1,"heading_path":"Guide","char_start":0,"char_end":20,"line_start":1,"line_end":3},"chunk_id":"` + chunkIDs[0] + `","document_id":"doc-1"}`,
		`{"vector":null,"content":"## Part\n\nSecond page.","metadata":{"lang":"en","header_path":"/Guide/","page":2,"heading_path":"Guide > Part","char_start":22,"char_end":43,"line_start":5,"line_end":7},"chunk_id":"` + chunkIDs[1] + `","document_id":"doc-1"}`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// chunkIDs are the ids of the first chunks of doc-1, computed with Python:
// uuid.uuid5(uuid.UUID("12345678-1234-5678-1234-567812345678"), "doc-1_0").
var chunkIDs = []string{"3663af42-285d-5a05-9ab9-707a30505547", "3dfc9b9f-7981-53cd-bde5-7f4173ca3155", "0ffad7be-ab15-59c5-925a-bfd7bf4732da"}

// TestDocumentSplitter_Headings: only a text that is Markdown, or was converted to it, has headings.
func TestDocumentSplitter_Headings(t *testing.T) {
	local, page := value.Field{Name: "file_path", Value: "/docs/file"}, value.Field{Name: "url", Value: "https://a.example/file"}
	kind := func(text string) value.Field { return value.Field{Name: "file_type", Value: text} }
	for _, c := range []struct {
		name     string
		metadata []value.Field
		want     bool
	}{
		{"a.md", nil, true}, {"a.MKD", nil, true}, {"a.docm", nil, true}, {"a.odt", nil, true}, {"a.rtf", nil, true}, {"a.odp", nil, true}, {"a.xlsm", nil, true}, {"a.xht", nil, true},
		{"a.txt", nil, false}, {"a.py", nil, false}, {"a.csv", nil, false}, {"a.json", nil, false}, {"Makefile", []value.Field{local}, false},
		{"a.php", []value.Field{local, kind("application/x-php")}, false}, {"a.php", []value.Field{page, kind("text/html")}, true},
		{"guide", []value.Field{page, kind("text/html")}, true}, {"guide", []value.Field{page, kind("text/plain")}, false}, {"guide", []value.Field{page}, true}, {"", nil, true},
	} {
		got := splitDocument(t, &spec.DocumentSplitter{SplitterName: "SentenceSplitter", ChunkSize: 50}, ragDocument(c.name, "# Guide\n\ntext", c.metadata...))
		if len(got) != 1 || strings.Contains(got[0], `"heading_path":"Guide"`) != c.want {
			t.Errorf("%q %v: got %q", c.name, c.metadata, got)
		}
	}
}

func TestDocumentSplitter_Bytes(t *testing.T) {
	got := splitDocument(t, &spec.DocumentSplitter{SplitterName: "SentenceSplitter", ChunkSize: 50}, ragDocument("a.txt", []byte("# not a heading")))
	if len(got) != 1 || !strings.Contains(got[0], `"content":"# not a heading","metadata":{"char_start":0,`) {
		t.Errorf("chunks %q", got)
	}
}

// Blank chunks are left out, but count for the ids, as in QType (Python).
func TestDocumentSplitter_BlankChunks(t *testing.T) {
	got := splitDocument(t, &spec.DocumentSplitter{SplitterName: "JSONNodeParser"}, ragDocument("a.json", `["a", "", "b"]`))
	if len(got) != 2 || !strings.Contains(got[1], chunkIDs[2]) {
		t.Errorf("chunks %q; want two, the second with the id %s", got, chunkIDs[2])
	}
}

func TestDocumentSplitter_RowErrors(t *testing.T) {
	for _, test := range []struct {
		doc  any
		want string
	}{
		{ragDocument("a.pdf", []byte{0xff, 0xfe}), "variable doc: the content of document doc-1 is not UTF-8 text; convert it with a DocToTextConverter step"},
		{ragDocument("a.pdf", nil), "variable doc: the content of document doc-1 is null, not text; convert it with a DocToTextConverter step"},
		{"text", "variable doc: expected a RAGDocument, got \"text\""},
	} {
		got := splitDocument(t, &spec.DocumentSplitter{SplitterName: "SentenceSplitter", ChunkSize: 50}, test.doc)
		if len(got) != 1 || got[0] != "error: "+test.want {
			t.Errorf("got %q, want the error %q", got, test.want)
		}
	}
}

// The metadata takes no room from the text of chunks, as in QType (Python).
func TestDocumentSplitter_Metadata(t *testing.T) {
	step := &spec.DocumentSplitter{SplitterName: "SentenceSplitter", ChunkSize: 50, ChunkOverlap: 0}
	text := strings.Repeat("One two three four five. ", 12)
	bare := splitDocument(t, step, ragDocument("a.txt", text))
	long := splitDocument(t, step, ragDocument("a.txt", text, value.Field{Name: "long", Value: strings.Repeat("word ", 100)}))
	if len(bare) < 2 || len(long) != len(bare) {
		t.Errorf("%d chunks with metadata, %d without; want the same number, at least 2", len(long), len(bare))
	}
}

func TestDocumentSplitter_Arguments(t *testing.T) {
	got := splitDocument(t, &spec.DocumentSplitter{SplitterName: "llama_index.core.node_parser.SentenceSplitter", ChunkSize: 1000, ChunkOverlap: 20,
		Args: map[string]any{"chunk_size": 8, "chunk_overlap": 0}}, ragDocument("a.txt", "The red fox ran off. A dog barked at it."))
	if len(got) != 2 {
		t.Errorf("chunks %q; want two, because args replace chunk_size", got)
	}
}

// topics embeds a text as how often it names two things.
type topics struct{ model.Embedder }

// Embed implements model.Embedder.
func (topics) Embed(_ context.Context, texts []string) ([][]float32, model.Usage, error) {
	var vectors [][]float32
	for _, text := range texts {
		vectors = append(vectors, []float32{float32(strings.Count(text, "cat")), float32(strings.Count(text, "stock"))})
	}
	return vectors, model.Usage{}, nil
}

func TestDocumentSplitter_Semantic(t *testing.T) {
	l := declare(t, nil, "doc: RAGDocument", "chunk: RAGChunk")
	embedding := &spec.EmbeddingModel{}
	s := &spec.DocumentSplitter{StepBase: l.base("split", []string{"doc"}, []string{"chunk"}), SplitterName: "SemanticSplitter",
		Model: spec.Ref[*spec.EmbeddingModel]{ID: "vectors", To: embedding}, Args: map[string]any{"breakpoint_percentile_threshold": 80}}
	env := &steps.Env{Slots: l, Embedder: func(m *spec.EmbeddingModel) (model.Embedder, error) {
		if m != embedding {
			t.Error("another model was asked for")
		}
		return topics{}, nil
	}}
	text := "My cat is small. The cat sleeps. A cat eats. The stock fell. A stock rose. No stock moved."
	rows := driveRows(t, build(t, s, env), l.row(map[string]any{"doc": ragDocument("a.txt", text)}))
	if len(rows) != 2 {
		t.Fatalf("%d chunks, want one about cats and one about stocks", len(rows))
	}
	if got := string(value.JSON(rows[1].Values[1])); !strings.Contains(got, `"content":"The stock fell. A stock rose. No stock moved."`) {
		t.Errorf("second chunk %s", got)
	}
}
