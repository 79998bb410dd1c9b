package citation_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/qtype-dev/qtype/internal/citation"
	"github.com/qtype-dev/qtype/spec/value"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// record makes a record of JSON.
func record(t *testing.T, typ, text string) *value.Record {
	t.Helper()
	v, err := value.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	var fields []value.Field
	for name, x := range v.(*value.Record).All() {
		fields = append(fields, value.Field{Name: name, Value: x})
	}
	return value.NewRecord(typ, fields...)
}

func TestNew(t *testing.T) {
	folder, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	below := filepath.Join(folder, "docs", "memory.md")
	for name, c := range map[string]struct{ metadata, title, file, url string }{
		"lines":          {`{"file_path": "docs/memory.md", "file_name": "memory.md", "line_start": 10, "line_end": 20}`, "docs/memory.md:10-20", "docs/memory.md", ""},
		"one line":       {`{"file_name": "memory.md", "line_start": 3, "line_end": 3}`, "memory.md:3", "memory.md", ""},
		"below":          {fmt.Sprintf(`{"file_path": %q, "file_name": "memory.md"}`, below), "docs/memory.md", "docs/memory.md", ""},
		"another folder": {`{"file_path": "/home/ada/private/memory.md", "file_name": "memory.md"}`, "memory.md", "memory.md", ""},
		"parent folder":  {`{"file_path": "../private/memory.md", "file_name": "memory.md"}`, "memory.md", "memory.md", ""},
		"page":           {`{"file_name": "report.pdf", "page": 4, "line_start": 1}`, "report.pdf, page 4", "report.pdf", ""},
		"page label":     {`{"file_name": "report.pdf", "page_label": "7"}`, "report.pdf, page 7", "report.pdf", ""},
		"address":        {`{"url": "https://shop.example/a", "title": "Returns"}`, "Returns", "", "https://shop.example/a"},
		"no title":       {`{"uri": "https://shop.example/a"}`, "https://shop.example/a", "", "https://shop.example/a"},
		"other scheme":   {`{"url": "javascript:alert(1)"}`, "doc", "", ""},
		"nothing":        {`{}`, "doc", "", ""},
	} {
		s := citation.New("c1", "doc", "text", record(t, "", c.metadata))
		if s.Title != c.title || s.Filename != c.file || s.URL != c.url {
			t.Errorf("%s: got %+v", name, s)
		}
	}
}

func TestFromResult(t *testing.T) {
	chunk := record(t, "RAGChunk", `{"vector": null, "content": "Windows are cut.", "metadata": {"file_name": "memory.md", "heading_path": "Memory > Windows"}, "chunk_id": "c1", "document_id": "d1"}`)
	for name, c := range map[string]struct {
		result *value.Record
		want   citation.Source
	}{
		"chunk":    {value.NewRecord("RAGSearchResult", value.Field{Name: "content", Value: chunk}, value.Field{Name: "doc_id", Value: "d1"}), citation.Source{ID: "c1", Title: "memory.md", Filename: "memory.md", Heading: "Memory > Windows", Text: "Windows are cut."}},
		"a chunk":  {chunk, citation.Source{ID: "c1", Title: "memory.md", Filename: "memory.md", Heading: "Memory > Windows", Text: "Windows are cut."}},
		"text":     {record(t, "SearchResult", `{"content": "Go", "doc_id": "d7", "score": 1.0}`), citation.Source{ID: "d7", Title: "d7", Text: "Go"}},
		"fields":   {record(t, "SearchResult", `{"content": {"title": "Go in Action", "isbn": 1}, "doc_id": "d7", "score": 1.0}`), citation.Source{ID: "d7", Title: "Go in Action", Text: `{"title":"Go in Action","isbn":1}`}},
		"of chunk": {record(t, "SearchResult", `{"content": {"content": "cut", "chunk_id": "c2", "document_id": "d1", "metadata": {"file_name": "a.md"}}, "doc_id": "c2", "score": 1.0}`), citation.Source{ID: "c2", Title: "a.md", Filename: "a.md", Text: "cut"}},
	} {
		if got := citation.FromResult(c.result); got != c.want {
			t.Errorf("%s: got %+v\nwant %+v", name, got, c.want)
		}
	}
}

func TestCited(t *testing.T) {
	var set citation.Set
	if got := set.Cited("see [1]"); got != nil {
		t.Errorf("no passages: %v", got)
	}
	for i := range 5 {
		if s := set.Add(citation.Source{ID: fmt.Sprint("c", i)}); s.Number != i+1 {
			t.Errorf("number %d", s.Number)
		}
	}
	if s := set.Add(citation.Source{ID: "c2"}); s.Number != 3 || set.Len() != 5 {
		t.Errorf("a passage that was added before has the number %d", s.Number)
	}
	for text, want := range map[string]string{
		"It is cut [2].":                         "2",
		"Both [3][1], and [3] again.":            "3 1",
		"A list [4, 2] and a range [1-3].":       "4 2 1 3",
		"【2】 and 【3†source】":                     "2 3",
		"no passage [6], [0], [99999] or [a]":    "",
		"code `list[1]`, then [2]":               "2",
		"```go\nx := list[1]\n```\nThe rest [5]": "5",
		"[1–2] with a dash":                      "1 2",
		"[5-1] is no range":                      "",
		"":                                       "",
	} {
		var got []string
		for _, s := range set.Cited(text) {
			got = append(got, fmt.Sprint(s.Number))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q cites %v, want %s", text, got, want)
		}
	}
}

func TestPrompt(t *testing.T) {
	var set citation.Set
	if set.Prompt() != "" {
		t.Error("a prompt without passages")
	}
	set.Add(citation.Source{ID: "a", Title: "memory.md:3", Heading: "Memory", Text: " cut \n"})
	set.Add(citation.Source{ID: "b", Title: "b.md", Text: "kept"})
	want := "Passages:\n\n[1] memory.md:3 (Memory)\ncut\n\n[2] b.md\nkept\n\n" + citation.Instruction
	if got := set.Prompt(); got != want {
		t.Errorf("got %q", got)
	}
}

func TestBlock(t *testing.T) {
	long := citation.Source{Number: 2, ID: "c", Title: "t", URL: "https://h/a", Text: strings.Repeat("ä ", 900)}.Excerpt()
	b := long.Block()
	var back citation.Source
	if err := json.Unmarshal([]byte(b.Text), &back); err != nil || back != long || b.Type != "citation_url" || len([]rune(back.Text)) != 400 {
		t.Errorf("%+v, %v", b, err)
	}
	if b := (citation.Source{Filename: "a.md"}).Block(); b.Type != "citation_document" {
		t.Error(b.Type)
	}
}

func FuzzCited(f *testing.F) {
	f.Add("[1] and [2-3], `[1]`, 【1】 ``` [2]")
	f.Fuzz(func(t *testing.T, text string) {
		var set citation.Set
		for i := range 3 {
			set.Add(citation.Source{ID: fmt.Sprint(i)})
		}
		seen := map[int]bool{}
		for _, s := range set.Cited(text) {
			if seen[s.Number] || s.Number < 1 || s.Number > 3 {
				t.Errorf("source %d of %q", s.Number, text)
			}
			seen[s.Number] = true
		}
	})
}
