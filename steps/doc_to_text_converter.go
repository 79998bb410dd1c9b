package steps

import (
	"context"
	"fmt"
	"io"
	"path"
	"strings"
	"time"

	fileformat "github.com/qtype-dev/qtype/internal/documents/format"
	"github.com/qtype-dev/qtype/internal/mediafile"
	"github.com/qtype-dev/qtype/internal/remotefs"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
	"github.com/qtype-dev/qtype/tool"
)

// downloadTimeout is the time for reading a document from a server.
const downloadTimeout = 2 * time.Minute

// docToTextConverter converts documents to Markdown.
type docToTextConverter struct {
	in, out  slot
	password func() (string, error) // of PDF files; a secret may be rotated
}

func buildDocToTextConverter(s *spec.DocToTextConverter, env *Env) (Runner, error) {
	d := &docToTextConverter{password: func() (string, error) { return "", nil }}
	if s.Password != (spec.Secret{}) {
		d.password = func() (string, error) { return env.Secret(s.Password) }
	}
	var err error
	d.in, d.out, err = env.inOut(&s.StepBase)
	return d, err
}

// Process writes the document with its text. Text is unchanged, unless it is HTML. Bytes
// and the content of the file that a text names are converted by their format.
func (d *docToTextConverter) Process(ctx context.Context, row *Row, emit Emit) error {
	v, err := d.in.read(row)
	if err != nil {
		return err
	}
	doc, ok := v.(*value.Record)
	if !ok || doc.Type() != "RAGDocument" {
		return fmt.Errorf("variable %s: expected a RAGDocument, got %s", d.in.of.ID, value.Describe(v))
	}
	password, err := d.password()
	if err != nil {
		return err
	}
	converted, err := convertDocument(ctx, doc, password)
	if err != nil {
		return err
	}
	d.out.write(row, converted)
	return emit(row)
}

// convertDocument returns a document whose content is text. password opens PDF files.
func convertDocument(ctx context.Context, doc *value.Record, password string) (*value.Record, error) {
	content, _ := doc.Get("content")
	kind := textField(doc, "type")
	file := fileformat.File{Name: textField(doc, "file_name")}
	switch content := content.(type) {
	case []byte:
		file.Data = content
	case string:
		if kind == "text" {
			if !isHTMLText(file.Name, content) {
				return doc, nil
			}
			file.Data, file.Charset, file.MediaType = []byte(content), "utf-8", "text/html"
			if path.Ext(file.Name) != ".html" && path.Ext(file.Name) != ".htm" {
				file.Name += ".html"
			}
			break
		}
		var err error
		if file, err = readFile(ctx, content); err != nil {
			return nil, err
		}
	default:
		return nil, fmt.Errorf("the content of the document %s is %s: expected text, bytes, or the path or address of a file", file.Name, value.Describe(content))
	}
	if uri := textField(doc, "uri"); strings.HasPrefix(uri, "http://") || strings.HasPrefix(uri, "https://") {
		file.Base = uri
	}
	file.Password = password
	result, err := fileformat.Convert(ctx, file, fileformat.Limits{})
	if err != nil {
		return nil, err
	}
	return withText(doc, result), nil
}

// textField returns a field of a document that is text; empty for other values.
func textField(doc *value.Record, name string) string {
	v, _ := doc.Get(name)
	s, _ := v.(string)
	return s
}

// isHTMLText reports whether text is an HTML page.
func isHTMLText(name, content string) bool {
	if fileformat.IsHTML([]byte(content)) {
		return true
	}
	extension := strings.ToLower(path.Ext(name))
	return (extension == ".html" || extension == ".htm" || extension == ".xhtml") && strings.Contains(content, "</")
}

// withText returns a document with the text of a conversion and what is known of its pages.
func withText(doc *value.Record, result *fileformat.Result) *value.Record {
	doc = doc.With("content", result.Text).With("type", "text")
	if offsets := result.PageOffsets(); offsets != nil {
		v, _ := doc.Get("metadata")
		metadata, ok := v.(*value.Record)
		if !ok {
			metadata = &value.Record{}
		}
		metadata = metadata.With("page_offsets", offsets)
		if share := result.UnknownCharacters(); share > 0 {
			metadata = metadata.With(fileformat.UnknownCharacters, share)
		}
		doc = doc.With("metadata", metadata)
	}
	return doc
}

// readFile reads the file at a path or an address. Addresses of the web must be public.
func readFile(ctx context.Context, address string) (fileformat.File, error) {
	address, err := location(strings.TrimSpace(address))
	if err != nil {
		return fileformat.File{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, downloadTimeout)
	defer cancel()
	file := fileformat.File{Name: address}
	var in io.ReadCloser
	if scheme, _ := remotefs.Remote(address); scheme == "http" || scheme == "https" {
		client := tool.PublicClient(nil)
		defer client.CloseIdleConnections()
		in, file.MediaType, err = mediafile.Download(ctx, client, address)
	} else {
		in, err = remotefs.Open(ctx, address)
	}
	if err != nil {
		return file, wrapLocationError(address, err)
	}
	defer in.Close()
	most := fileformat.Limits{}.MaxInput()
	file.Data, err = io.ReadAll(io.LimitReader(in, most+1)) // one more, so that the conversion reports the size
	if err != nil {
		return file, wrapLocationError(address, err)
	}
	return file, nil
}
