package steps_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
	"github.com/qtype-dev/qtype/steps"
)

// convertDocument runs DocToTextConverter on one document.
func convertDocument(t *testing.T, doc any) *steps.Row {
	t.Helper()
	l := declare(t, nil, "doc: RAGDocument", "plain: RAGDocument")
	r := build(t, &spec.DocToTextConverter{StepBase: l.base("convert", []string{"doc"}, []string{"plain"})}, &steps.Env{Slots: l})
	return driveRows(t, r, l.row(map[string]any{"doc": doc}))[0]
}

func typedDocument(kind, name string, content any) *value.Record {
	return value.NewRecord("RAGDocument",
		value.Field{Name: "content", Value: content}, value.Field{Name: "file_id", Value: "1"}, value.Field{Name: "file_name", Value: name},
		value.Field{Name: "uri", Value: nil}, value.Field{Name: "metadata", Value: value.NewRecord("", value.Field{Name: "k", Value: "v"})},
		value.Field{Name: "type", Value: kind})
}

func TestDocToTextConverter(t *testing.T) {
	pdf, err := os.ReadFile("../internal/documents/format/testdata/rotated.pdf")
	if err != nil {
		t.Fatal(err)
	}
	unknown := "%PDF-1.4\n1 0 obj <</Type/Catalog/Pages 2 0 R>> endobj\n2 0 obj <</Type/Pages/Kids[3 0 R]/Count 1>> endobj\n" +
		"3 0 obj <</Type/Page/Parent 2 0 R/Contents 4 0 R/Resources<</Font<</F 5 0 R>>>>>> endobj\n" +
		"4 0 obj <</Length 37>>\nstream\nBT /F 10 Tf 50 700 Td (abc~) Tj ET   \nendstream endobj\n" +
		"5 0 obj <</Type/Font/Subtype/Type1/Encoding<</Differences[126/g7]>>>> endobj\ntrailer <</Root 1 0 R>>\n"
	page := testkit.WriteFile(t, "page.html", "<html><nav>x</nav><h1>Title</h1><p>text</p></html>")
	for _, test := range []struct {
		name string
		doc  *value.Record
		want string
	}{
		{"text is unchanged", typedDocument("text", "a.md", "# a\r\n"), `{"content":"# a\r\n","file_id":"1","file_name":"a.md","uri":null,"metadata":{"k":"v"},"type":"text"}`},
		{"HTML typed as text", typedDocument("text", "a.html", "<html><h1>Title</h1>"), `{"content":"# Title","file_id":"1","file_name":"a.html","uri":null,"metadata":{"k":"v"},"type":"text"}`},
		{"HTML without a name of it", typedDocument("text", "a", "<!doctype html><b>x</b>"), `{"content":"**x**","file_id":"1","file_name":"a","uri":null,"metadata":{"k":"v"},"type":"text"}`},
		{"bytes", typedDocument("file", "a.csv", []byte("a,b\n1,2\n")), `{"content":"| a | b |\n| --- | --- |\n| 1 | 2 |","file_id":"1","file_name":"a.csv","uri":null,"metadata":{"k":"v"},"type":"text"}`},
		{"path", typedDocument("file", "other", page), `{"content":"# Title\n\ntext","file_id":"1","file_name":"other","uri":null,"metadata":{"k":"v"},"type":"text"}`},
		{"file URI", typedDocument("file", "other", "file://"+filepath.ToSlash(page)), `{"content":"# Title\n\ntext","file_id":"1","file_name":"other","uri":null,"metadata":{"k":"v"},"type":"text"}`},
		{"pages", typedDocument("file", "a.pdf", pdf), `{"content":"Upright text comes first on this page.\n\nThis sentence is rotated by ninety degrees. It has a second line.\n\nThe second page is a landscape page with rotation. Its second line follows.","file_id":"1","file_name":"a.pdf","uri":null,"metadata":{"k":"v","page_offsets":[0,107]},"type":"text"}`},
		{"unknown characters", typedDocument("file", "a.pdf", []byte(unknown)), `{"content":"abc�","file_id":"1","file_name":"a.pdf","uri":null,"metadata":{"k":"v","page_offsets":[0],"unknown_characters":0.25},"type":"text"}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			row := convertDocument(t, test.doc)
			if row.Err != nil {
				t.Fatal(row.Err)
			}
			if got := string(value.JSON(row.Values[1])); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

func TestDocToTextConverter_Errors(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	for _, test := range []struct {
		name string
		doc  any
		want string
	}{
		{"no document", "text", "expected a RAGDocument, got"},
		{"wrong content", typedDocument("file", "a.pdf", int64(3)), "the content of the document a.pdf is"},
		{"missing file", typedDocument("file", "a.pdf", "/does/not/exist.pdf"), "exist.pdf"},
		{"private address", typedDocument("file", "a.pdf", server.URL+"/a.pdf?sig=secret"), "private address"},
		{"image", typedDocument("image", "a.png", []byte("\x89PNG\r\n\x1a\n")), "a.png: is an image without text: a model step can read it"},
		{"broken", typedDocument("file", "a.docx", []byte("PK\x03\x04")), "a.docx: is damaged or not a complete Word file"},
	} {
		t.Run(test.name, func(t *testing.T) {
			row := convertDocument(t, test.doc)
			if row.Err == nil || !strings.Contains(row.Err.Error(), test.want) || strings.Contains(row.Err.Error(), "secret") {
				t.Errorf("error %v", row.Err)
			}
		})
	}
}

func TestDocToTextConverter_Password(t *testing.T) {
	l := declare(t, nil, "doc: RAGDocument", "plain: RAGDocument")
	s := &spec.DocToTextConverter{StepBase: l.base("convert", []string{"doc"}, []string{"plain"}), Password: spec.NewSecret("rotated")}
	password := "wrong"
	r := build(t, s, &steps.Env{Slots: l, Secret: func(of spec.Secret) (string, error) {
		if of != s.Password {
			t.Errorf("resolved %v", of)
		}
		return password, nil
	}})
	locked := typedDocument("file", "a.pdf", "../internal/documents/format/testdata/user256.pdf")
	if row := driveRows(t, r, l.row(map[string]any{"doc": locked}))[0]; row.Err == nil || !strings.HasSuffix(row.Err.Error(), "is encrypted, and not with this password") {
		t.Errorf("error %v", row.Err)
	}
	password = "secret"
	row := driveRows(t, r, l.row(map[string]any{"doc": locked}))[0]
	if row.Err != nil || !strings.Contains(string(value.JSON(row.Values[1])), "Harbour report") {
		t.Errorf("got %s, %v", value.JSON(row.Values[1]), row.Err)
	}
}
