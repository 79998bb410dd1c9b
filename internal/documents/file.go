package documents

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"mime"
	"path"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/qtype-dev/qtype/internal/documents/format"
	"github.com/qtype-dev/qtype/spec"
)

// convertedExtensions are the extensions of files whose text is not their content. Other
// files are text: what SimpleDirectoryReader does, so that splitters for HTML and JSON get
// what they expect. DocToTextConverter converts the rest.
const convertedExtensions = " .pdf .docx .pptx .ppt .pptm .doc .xls .xlsx .xlsm .odt .ods .odp .rtf .epub .mbox .eml .msg .csv .tsv .hwp " +
	".gif .jpg .jpeg .png .webp .bmp .tif .tiff .svgz .mp3 .mp4 .wav .zip .gz .7z .tar "

// file is a file of a folder, a bucket or a server.
type file struct {
	name      string // for messages and formats: a path or an address
	id        string // what its id follows from
	uri       string // its address; empty for a local file
	mediaType string // as a server declared it; empty if unknown
	metadata  map[string]any
	data      []byte
}

// isConverted reports whether the text of a file with this extension is not its content.
func isConverted(name string) bool {
	ext := strings.ToLower(path.Ext(name))
	return ext != "" && strings.Contains(convertedExtensions, " "+ext+" ")
}

// documents returns the documents of a file: one, or one for each page or message of a
// file that has them.
func (f *file) documents(ctx context.Context, args *spec.FileArgs, limits format.Limits) ([]*Document, error) {
	if !isConverted(baseName(f.name)) && (bytes.IndexByte(f.data, 0) < 0 || args.Encoding != "" || utf8.Valid(f.data) || hasMark(f.data)) {
		text, err := decodeText(f, args)
		if err != nil {
			return nil, err
		}
		return []*Document{f.document(text, f.partID(args, -1), nil)}, nil
	}
	result, err := format.Convert(ctx, format.File{Name: f.name, MediaType: f.mediaType, Charset: args.Encoding, Password: args.Password, Data: f.data}, limits)
	if err != nil {
		return nil, err
	}
	return f.parts(result, args), nil
}

// hasMark reports whether text begins with the byte order mark of UTF-16 or UTF-32.
func hasMark(data []byte) bool {
	return bytes.HasPrefix(data, []byte("\xff\xfe")) || bytes.HasPrefix(data, []byte("\xfe\xff")) || bytes.HasPrefix(data, []byte("\x00\x00\xfe\xff"))
}

// parts returns a document for each page of a PDF, each message of a mailbox, and one for
// other files.
func (f *file) parts(result *format.Result, args *spec.FileArgs) []*Document {
	var all []*Document
	switch {
	case (result.Format == "pdf" || result.Format == "mbox") && len(result.Pages) > 0:
		for i, text := range result.PageTexts() {
			more := map[string]any{}
			if result.Format == "pdf" {
				more["page_label"] = result.Pages[i].Label
			}
			all = append(all, f.document(text, f.partID(args, i), more))
		}
	default:
		more := map[string]any{}
		if offsets := result.PageOffsets(); len(offsets) > 0 {
			more["page_offsets"] = offsets
		}
		all = append(all, f.document(result.Text, f.partID(args, 0), more))
	}
	return all
}

// partID returns the id of a part of a file, -1 for a file that is one text. With
// filename_as_id it is that of SimpleDirectoryReader.
func (f *file) partID(args *spec.FileArgs, part int) string {
	suffix := ""
	if part >= 0 {
		suffix = fmt.Sprintf("_part_%d", part)
	}
	if args.FilenameAsID {
		return f.name + suffix
	}
	if part == 0 {
		suffix = "" // a file keeps its id when it gets a second page
	}
	return documentID(f.id + suffix)
}

func (f *file) document(text, id string, more map[string]any) *Document {
	metadata := maps.Clone(f.metadata)
	maps.Copy(metadata, more)
	return &Document{ID: id, Name: baseName(f.name), URI: f.uri, Text: text, Metadata: metadata}
}

// baseName returns the last part of a path or an address.
func baseName(name string) string {
	name = strings.TrimRight(strings.ReplaceAll(name, `\`, "/"), "/")
	return name[strings.LastIndexByte(name, '/')+1:]
}

// decodeText decodes a text file as the arguments say.
func decodeText(f *file, args *spec.FileArgs) (string, error) {
	text, err := format.DecodeText(format.File{Name: f.name, MediaType: f.mediaType, Charset: args.Encoding, Data: f.data})
	if err != nil {
		return "", err
	}
	invalid := strings.Contains(text, "\uFFFD") && !bytes.Contains(f.data, []byte("\uFFFD"))
	switch {
	case invalid && args.Errors == "strict":
		return "", fmt.Errorf("%s: has bytes that its charset does not have; set encoding, or errors: replace", f.name)
	case invalid && args.Errors == "ignore":
		text = strings.ReplaceAll(text, "\uFFFD", "")
	}
	return text, nil
}

// fileMetadata returns the six keys of SimpleDirectoryReader. Zero times are left out, and
// so is a type that is not known.
func fileMetadata(path string, size int64, created, modified time.Time) map[string]any {
	metadata := map[string]any{"file_path": path, "file_name": baseName(path), "file_size": size}
	if kind := mediaTypeOf(path); kind != "" {
		metadata["file_type"] = kind
	}
	if !created.IsZero() {
		metadata["creation_date"] = created.UTC().Format(time.DateOnly)
	}
	if !modified.IsZero() {
		metadata["last_modified_date"] = modified.UTC().Format(time.DateOnly)
	}
	return metadata
}

// mediaTypeOf returns the media type of a file name, empty if it is not known. The types
// of text files do not depend on the computer.
func mediaTypeOf(name string) string {
	ext := strings.ToLower(path.Ext(name))
	if known, ok := map[string]string{
		".md": "text/markdown", ".markdown": "text/markdown", ".txt": "text/plain", ".html": "text/html", ".htm": "text/html", ".csv": "text/csv",
		".tsv": "text/tab-separated-values", ".json": "application/json", ".xml": "text/xml", ".js": "text/javascript", ".css": "text/css",
		".py": "text/x-python", ".c": "text/plain", ".h": "text/plain", ".rst": "text/x-rst", ".eml": "message/rfc822", ".pdf": "application/pdf", ".epub": "application/epub+zip",
		".doc": "application/msword", ".xls": "application/vnd.ms-excel", ".ppt": "application/vnd.ms-powerpoint", ".mbox": "application/mbox",
		".docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
		".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
		".pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
	}[ext]; ok {
		return known
	}
	kind, _, _ := strings.Cut(mime.TypeByExtension(ext), ";")
	return kind
}
