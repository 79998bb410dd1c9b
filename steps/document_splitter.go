package steps

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"

	fileformat "github.com/qtype-dev/qtype/internal/documents/format"
	"github.com/qtype-dev/qtype/internal/splitter"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
)

// documentSplitter divides documents into chunks, one row for each chunk.
type documentSplitter struct {
	in, out  slot
	splitter splitter.Splitter
	markdown bool // the text is Markdown, regardless of the name of its file
}

func buildDocumentSplitter(s *spec.DocumentSplitter, env *Env) (Runner, error) {
	in, out, err := env.inOut(&s.StepBase)
	if err != nil {
		return nil, err
	}
	row, known := spec.LookupSplitter(s.SplitterName)
	if !known {
		return nil, fmt.Errorf("unknown splitter %q", s.SplitterName)
	}
	args, problems := s.Arguments()
	if len(problems) > 0 {
		return nil, fmt.Errorf("args: %w", problems[0])
	}
	if sized, ok := args.(spec.Sized); ok {
		if _, message := sized.Size().Check(); message != "" {
			return nil, errors.New(message)
		}
	}
	settings := splitter.Settings{Name: row.Name, Args: args}
	if row.Semantic {
		if s.Model.To == nil || env.Embedder == nil {
			return nil, errors.New("the embedding model is not linked")
		}
		if settings.Embedder, err = env.Embedder(s.Model.To); err != nil {
			return nil, err
		}
	}
	made, err := splitter.New(settings)
	return &documentSplitter{in: in, out: out, splitter: made, markdown: row.Markdown}, err
}

// Process emits one row for each chunk that is not blank. Blank ones count for the ids.
func (s *documentSplitter) Process(ctx context.Context, row *Row, emit Emit) error {
	v, err := s.in.read(row)
	if err != nil {
		return err
	}
	d, err := readDocument(v)
	if err != nil {
		return fmt.Errorf("variable %s: %w", s.in.of.ID, err)
	}
	places := splitter.NewPlaces(d.text, d.pages, s.markdown || d.hasHeadings())
	index := 0
	for chunk, err := range s.splitter.Split(ctx, splitter.Document{Text: d.text}) {
		if err != nil {
			return fmt.Errorf("document %s: %w", d.id, err)
		}
		number := index
		index++
		if chunk.IsBlank() {
			continue
		}
		c := row.Clone()
		s.out.write(c, d.chunk(chunk, places.Of(chunk), number))
		if err := emit(c); err != nil {
			return err
		}
	}
	return nil
}

// ragDocument is a document that is divided.
type ragDocument struct {
	id, fileName string
	text         string
	metadata     []value.Field // without the pages
	pages        []int         // the characters at which pages begin
}

// pageOffsets is the key of the metadata of documents with the characters at which their
// pages begin. Chunks have the number of their page instead.
const pageOffsets = "page_offsets"

// readDocument returns the document of a variable.
func readDocument(v any) (ragDocument, error) {
	record, ok := v.(*value.Record)
	if !ok {
		return ragDocument{}, fmt.Errorf("expected a RAGDocument, got %s", value.Describe(v))
	}
	var d ragDocument
	d.id, _ = fieldOf(record, "file_id").(string)
	d.fileName, _ = fieldOf(record, "file_name").(string)
	switch content := fieldOf(record, "content").(type) {
	case string:
		d.text = strings.ToValidUTF8(content, "\uFFFD")
	case []byte:
		if d.text = string(content); !utf8.ValidString(d.text) {
			return d, fmt.Errorf("the content of document %s is not UTF-8 text; convert it with a DocToTextConverter step", d.id)
		}
	default:
		return d, fmt.Errorf("the content of document %s is %s, not text; convert it with a DocToTextConverter step", d.id, value.Describe(content))
	}
	if metadata, ok := fieldOf(record, "metadata").(*value.Record); ok {
		for name, v := range metadata.All() {
			if name == pageOffsets {
				d.pages = integers(v)
				continue
			}
			d.metadata = append(d.metadata, value.Field{Name: name, Value: v})
		}
	}
	return d, nil
}

// hasHeadings reports whether the text may have headings in Markdown. One that is not of a file with a
// known format, such as a page with an address only, may; a local file may not.
func (d ragDocument) hasHeadings() bool {
	headings, known := fileformat.HasHeadings(d.fileName, d.metadataText("file_type"))
	if known || path.Ext(d.fileName) != "" {
		return headings
	}
	return d.fileName == "" || d.metadataText("file_path") == ""
}

// metadataText returns a text of the metadata, empty for none.
func (d ragDocument) metadataText(name string) string {
	for _, f := range d.metadata {
		if text, ok := f.Value.(string); ok && f.Name == name {
			return text
		}
	}
	return ""
}

// fieldOf returns a field of a record, nil for none.
func fieldOf(r *value.Record, name string) any {
	v, _ := r.Get(name)
	return v
}

// integers returns the integers of a list.
func integers(v any) []int {
	items, _ := v.([]any)
	var numbers []int
	for _, item := range items {
		if n, ok := item.(int64); ok {
			numbers = append(numbers, int(n))
		}
	}
	return numbers
}

// chunkNamespace is the namespace of the ids of chunks: that of QType (Python), so that an
// index that one of them has filled can be updated by the other.
var chunkNamespace = uuid.MustParse("12345678-1234-5678-1234-567812345678")

// chunk returns the record of a chunk. Its id depends on the id of the document and the
// number of the chunk only.
func (d ragDocument) chunk(c splitter.Chunk, place splitter.Place, number int) *value.Record {
	id := uuid.NewSHA1(chunkNamespace, fmt.Appendf(nil, "%s_%d", d.id, number))
	return value.NewRecord("RAGChunk", value.Field{Name: "vector"}, value.Field{Name: "content", Value: c.Text},
		value.Field{Name: "metadata", Value: d.chunkMetadata(c, place)},
		value.Field{Name: "chunk_id", Value: id.String()}, value.Field{Name: "document_id", Value: d.id})
}

// chunkMetadata returns the metadata of the document, of the splitter and of the place.
func (d ragDocument) chunkMetadata(c splitter.Chunk, place splitter.Place) *value.Record {
	fields := slices.Clone(d.metadata)
	set := func(name string, v any) {
		if i := slices.IndexFunc(fields, func(f value.Field) bool { return f.Name == name }); i >= 0 {
			fields[i].Value = v
			return
		}
		fields = append(fields, value.Field{Name: name, Value: v})
	}
	for _, f := range c.Metadata {
		set(f.Key, f.Value)
	}
	if place.Page > 0 {
		set("page", int64(place.Page))
	}
	if len(place.Headings) > 0 {
		set("heading_path", strings.Join(place.Headings, " > "))
	}
	set("char_start", int64(place.CharStart))
	set("char_end", int64(place.CharEnd))
	set("line_start", int64(place.LineStart))
	set("line_end", int64(place.LineEnd))
	return value.NewRecord("", fields...)
}
