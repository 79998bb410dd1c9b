// Package format converts the bytes of a file to Markdown: documents of offices and
// of the web, books, mail, tables and text in any charset. The table of Formats lists
// what it reads.
//
//	result, err := format.Convert(ctx, format.File{Name: "report.pdf", Data: data}, format.Limits{})
//
// Files are hostile input: the bytes that a conversion reads, unpacks and writes are
// limited, the context ends it, and a library that panics is an error of the file. The
// functions are safe for concurrent use.
package format

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/qtype-dev/qtype/internal/remotefs"
	"github.com/qtype-dev/qtype/internal/textfmt"
)

// File is a file to convert.
type File struct {
	Name      string // the file's name, path or address; its extension decides where the content does not
	MediaType string // the type that a server declared, possibly with a charset; empty if unknown
	Charset   string // the charset of text, if the caller knows it; empty to detect it
	Base      string // the address to which the links of a page are relative; by default Name, if it is an address of the web
	Password  string // the password of a PDF file that needs one
	Data      []byte // the content; Convert does not change it
}

// Result is the text of a file.
type Result struct {
	Text      string // Markdown, or the unchanged text of a format that is text already
	Title     string // the title that the file states; empty if it has none
	MediaType string // the type of the file, as "application/pdf"
	Format    string // the name of its format in the table of Formats
	Pages     []Page // the pages, slides, chapters or messages, in order; nil for other formats
}

// Page is a page of Text. It ends where the next page begins.
type Page struct {
	Offset int    // where the page begins in Text, in characters (code points)
	Label  string // the page's number as the file shows it: "iv", "12"

	Unknown float64 // the share of characters that the fonts of a PDF file do not state, which are U+FFFD
}

// PageOffsets returns the offsets of the pages, for the metadata key page_offsets; nil
// if the format has no pages.
func (r *Result) PageOffsets() []any {
	if r.Pages == nil {
		return nil
	}
	offsets := make([]any, len(r.Pages))
	for i, p := range r.Pages {
		offsets[i] = int64(p.Offset)
	}
	return offsets
}

// UnknownCharacters returns the share of the page that has most of them, for the metadata
// key of this name.
func (r *Result) UnknownCharacters() float64 {
	most := 0.0
	for _, p := range r.Pages {
		most = max(most, p.Unknown)
	}
	return most
}

// UnknownCharacters is the metadata key of the share of characters that fonts do not state.
const UnknownCharacters = "unknown_characters"

// PageTexts returns the text of each page; the whole text if there are no pages.
func (r *Result) PageTexts() []string {
	if len(r.Pages) == 0 {
		return []string{r.Text}
	}
	texts := make([]string, len(r.Pages))
	rest, at := r.Text, r.Pages[0].Offset
	rest = rest[textfmt.ByteOffset(rest, at):]
	for i := range r.Pages {
		end := len(rest)
		if i+1 < len(r.Pages) {
			end = textfmt.ByteOffset(rest, r.Pages[i+1].Offset-at)
			at = r.Pages[i+1].Offset
		}
		texts[i] = strings.TrimSpace(rest[:end])
		rest = rest[end:]
	}
	return texts
}

// Limits bound a conversion. 0 means the default.
type Limits struct {
	Input    int64 // bytes of the file; 256 MB by default
	Unpacked int64 // bytes after decompression, of all parts together; 256 MB by default
	Output   int   // bytes of the result's text; 64 MB by default
	Pages    int   // pages; 20,000 by default
}

// The default limits.
const (
	defaultInput    = 256 << 20
	defaultUnpacked = 256 << 20
	defaultOutput   = 64 << 20
	defaultPages    = 20_000
)

// withDefaults replaces the limits that are not set.
func (l Limits) withDefaults() Limits {
	if l.Input <= 0 {
		l.Input = defaultInput
	}
	if l.Unpacked <= 0 {
		l.Unpacked = defaultUnpacked
	}
	if l.Output <= 0 {
		l.Output = defaultOutput
	}
	if l.Pages <= 0 {
		l.Pages = defaultPages
	}
	return l
}

// MaxInput returns the maximum size of a file in bytes, so that a caller need not read
// more.
func (l Limits) MaxInput() int64 { return l.withDefaults().Input }

// Convert converts a file. Its format is that of the content, else of the name, else of
// the declared media type. The error is a *Error, or the cause of the context.
func Convert(ctx context.Context, file File, limits Limits) (result *Result, err error) {
	name := remotefs.Redacted(file.Name)
	defer func() {
		if p := recover(); p != nil { // a library that does not expect the file
			result, err = nil, &Error{Name: name, Kind: Damaged, Reason: "is damaged", Err: fmt.Errorf("panic: %v", p)}
		}
	}()
	limits = limits.withDefaults()
	if int64(len(file.Data)) > limits.Input {
		return nil, &Error{Name: name, Kind: TooLarge, Reason: fmt.Sprintf("is larger than %s", size(limits.Input))}
	}
	f, err := detect(file)
	if err == nil {
		result, err = f.convert(ctx, &job{file: file, limits: limits, unpacked: limits.Unpacked})
	}
	if err == nil && len(result.Text) > limits.Output {
		err = outputTooLarge(limits)
	}
	switch known := new(Error); {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err == nil:
		result.Format, result.MediaType = f.Name, f.MediaTypes[0]
		result.dropNulls()
		return result, nil
	case errors.As(err, &known):
		return nil, &Error{Name: name, Kind: known.Kind, Reason: known.Reason, Err: known.Err}
	default:
		return nil, &Error{Name: name, Kind: Damaged, Reason: "is damaged or not a complete " + f.Label + " file", Err: err}
	}
}

// job is one conversion.
type job struct {
	file     File
	limits   Limits
	unpacked int64 // bytes that may still be unpacked
}

// extension returns the extension of a name, path or address in lower case, with its
// dot; of an http address without the query.
func extension(name string) string {
	if scheme, remote := remotefs.Remote(name); remote && strings.HasPrefix(scheme, "http") {
		name, _, _ = strings.Cut(name, "?")
		name, _, _ = strings.Cut(name, "#")
	}
	return strings.ToLower(path.Ext(strings.ReplaceAll(name, `\`, "/")))
}

// size formats a number of bytes.
func size(n int64) string {
	if n >= 1<<20 {
		return fmt.Sprintf("%d MB", n>>20)
	}
	return fmt.Sprintf("%d bytes", n)
}

// Format is a row of the table of formats.
type Format struct {
	Name       string   // a short name: "pdf"
	Label      string   // the name in messages: "PDF"
	Extensions []string // of file names, in lower case, with the dot
	MediaTypes []string // the first one is that of results
	Doc        string   // what the conversion keeps, for the documentation
	Paged      bool     // whether results have pages, slides, chapters or messages

	binary  bool // whether the content has a signature, so that other content is not of this format
	convert func(context.Context, *job) (*Result, error)
}

// formats is the one list of formats.
var formats = sync.OnceValue(func() []*Format {
	return []*Format{
		{Name: "pdf", Label: "PDF", Extensions: []string{".pdf"}, MediaTypes: []string{"application/pdf", "application/x-pdf"}, Paged: true, binary: true,
			Doc: "the text in reading order: columns one after the other, paragraphs, headings by their size, tables whose cells are aligned", convert: convertPDF},
		{Name: "docx", Label: "Word", Extensions: []string{".docx", ".docm", ".dotx"}, binary: true, MediaTypes: []string{"application/vnd.openxmlformats-officedocument.wordprocessingml.document"},
			Doc: "headings, lists, tables, links, code, text boxes, footnotes; without deleted and hidden text", convert: convertDOCX},
		{Name: "pptx", Label: "PowerPoint", Extensions: []string{".pptx", ".pptm", ".ppsx"}, binary: true, MediaTypes: []string{"application/vnd.openxmlformats-officedocument.presentationml.presentation"}, Paged: true,
			Doc: "slides: title, text, lists, tables, links and the notes of the presenter", convert: convertPPTX},
		{Name: "xlsx", Label: "Excel", Extensions: []string{".xlsx", ".xlsm"}, binary: true, MediaTypes: []string{"application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"},
			Doc: "each visible sheet as a heading and a table", convert: convertXLSX},
		{Name: "epub", Label: "EPUB", Extensions: []string{".epub"}, binary: true, MediaTypes: []string{"application/epub+zip"}, Paged: true,
			Doc: "chapters in reading order, with headings, lists, tables and links", convert: convertEPUB},
		{Name: "odt", Label: "OpenDocument text", Extensions: []string{".odt", ".ott"}, binary: true, MediaTypes: []string{"application/vnd.oasis.opendocument.text"},
			Doc: "headings, lists, tables, links, text boxes, footnotes; without deleted text and comments", convert: convertODT},
		{Name: "ods", Label: "OpenDocument spreadsheet", Extensions: []string{".ods", ".ots"}, binary: true, MediaTypes: []string{"application/vnd.oasis.opendocument.spreadsheet"},
			Doc: "each visible sheet as a heading and a table", convert: convertODS},
		{Name: "odp", Label: "OpenDocument presentation", Extensions: []string{".odp", ".otp"}, binary: true, MediaTypes: []string{"application/vnd.oasis.opendocument.presentation"}, Paged: true,
			Doc: "slides: title, text, lists, tables, links and the notes of the presenter", convert: convertODP},
		{Name: "rtf", Label: "RTF", Extensions: []string{".rtf"}, binary: true, MediaTypes: []string{"application/rtf", "text/rtf"},
			Doc: "headings, lists in one level, tables, links and emphasis; without headers, footers, pictures and hidden text", convert: convertRTF},
		{Name: "html", Label: "HTML", Extensions: []string{".html", ".htm", ".xhtml", ".xht"}, MediaTypes: []string{"text/html", "application/xhtml+xml"},
			Doc: "the main content, without navigation, headers and footers of the site; headings, lists, tables, links and code", convert: convertHTML},
		{Name: "eml", Label: "mail", Extensions: []string{".eml"}, MediaTypes: []string{"message/rfc822"},
			Doc: "subject, sender, recipients, date, text and the names of attachments", convert: convertEML},
		{Name: "mbox", Label: "mailbox", Extensions: []string{".mbox", ".mbx"}, MediaTypes: []string{"application/mbox"}, Paged: true,
			Doc: "each message as in mail", convert: convertMbox},
		{Name: "csv", Label: "CSV", Extensions: []string{".csv", ".tsv", ".tab"}, MediaTypes: []string{"text/csv", "text/tab-separated-values", "application/csv"},
			Doc: "a table; the first row is its header", convert: convertCSV},
		{Name: "json", Label: "JSON", Extensions: []string{".json", ".jsonl", ".ndjson"}, MediaTypes: []string{"application/json", "application/jsonl", "application/x-ndjson"},
			Doc: "the text, unchanged", convert: convertText},
		{Name: "markdown", Label: "Markdown", Extensions: []string{".md", ".markdown", ".mdx", ".mkd"}, MediaTypes: []string{"text/markdown", "text/x-markdown"},
			Doc: "the text, unchanged", convert: convertText},
		{Name: "text", Label: "text", Extensions: []string{".txt", ".text", ".log"}, MediaTypes: []string{"text/plain"},
			Doc: "the text, unchanged, also of source code, configuration and unknown extensions", convert: convertText},
	}
})

// Formats returns the formats that can be converted, in the order of the documentation.
func Formats() []Format {
	list := make([]Format, len(formats()))
	for i, f := range formats() {
		list[i] = *f
	}
	return list
}

// named returns the format of a name; it panics if the table has none.
func named(name string) *Format {
	i := slices.IndexFunc(formats(), func(f *Format) bool { return f.Name == name })
	return formats()[i]
}

// byExtension returns the format of an extension, nil if there is none.
func byExtension(extension string) *Format {
	for _, f := range formats() {
		if slices.Contains(f.Extensions, extension) {
			return f
		}
	}
	return nil
}

// byMediaType returns the format of a media type, nil if there is none.
func byMediaType(mediaType string) *Format {
	mediaType, _, _ = strings.Cut(mediaType, ";")
	mediaType = strings.ToLower(strings.TrimSpace(mediaType))
	for _, f := range formats() {
		if slices.Contains(f.MediaTypes, mediaType) {
			return f
		}
	}
	return nil
}

// HasHeadings reports whether the text of a file may have headings in Markdown: its format, by its name
// or else its media type, is Markdown or one that is converted to it. In other text, such as source
// code, a number sign begins a comment. Known is false if neither has a format.
func HasHeadings(name, mediaType string) (headings, known bool) {
	f := byExtension(strings.ToLower(path.Ext(name)))
	if f == nil {
		f = byMediaType(mediaType)
	}
	return f != nil && !slices.Contains([]string{"csv", "json", "text"}, f.Name), f != nil
}

// Kind is the cause of an error, for code that depends on it.
type Kind int

// The kinds of errors.
const (
	Damaged     Kind = iota // the file is not what its format requires
	Encrypted               // the file needs a password
	NoText                  // the file has no text: an image, a scan, a recording
	Unsupported             // the format is not one of Formats
	TooLarge                // the file exceeds a limit
)

// Error reports why a file cannot be converted.
type Error struct {
	Name   string // the file, without credentials
	Kind   Kind   // the cause
	Reason string // what is wrong and what to do, in words for the user
	Err    error  // the error of a library, if there is one; not part of the message
}

// Error returns "name: reason".
func (e *Error) Error() string {
	if e.Name == "" {
		return "the document " + e.Reason
	}
	return e.Name + ": " + e.Reason
}

// Unwrap returns the error of a library.
func (e *Error) Unwrap() error { return e.Err }

// errorf returns an error without its file, which Convert adds.
func errorf(kind Kind, reason string, args ...any) *Error {
	return &Error{Kind: kind, Reason: fmt.Sprintf(reason, args...)}
}

func outputTooLarge(l Limits) *Error {
	return errorf(TooLarge, "has more than %s of text", size(int64(l.Output)))
}

func unpackedTooLarge(l Limits) *Error {
	return errorf(TooLarge, "is larger than %s after decompression", size(l.Unpacked))
}

func tooManyPages(l Limits) *Error {
	return errorf(TooLarge, "has more than %d pages", l.Pages)
}

// caused returns the error with its cause.
func (e *Error) caused(err error) *Error {
	e.Err = err
	return e
}

// sniffSize is how many bytes of a file are read to detect its format.
const sniffSize = 4096

// detect returns the format of a file: by signatures of its content, by its name, by its
// media type, by the form of its text.
func detect(file File) (*Format, error) {
	head := file.Data[:min(len(file.Data), sniffSize)]
	if f, err := bySignature(file, head); f != nil || err != nil {
		return f, err
	}
	for _, f := range []*Format{byExtension(extension(file.Name)), byMediaType(file.MediaType)} {
		switch {
		case f == nil:
		case f.binary:
			return nil, errorf(Damaged, "is not a %s file", f.Label)
		case len(bytes.TrimSpace(file.Data)) == 0:
			return nil, errorf(NoText, "is empty")
		default:
			return f, nil
		}
	}
	switch {
	case len(bytes.TrimSpace(file.Data)) == 0:
		return nil, errorf(NoText, "is empty")
	case IsHTML(head):
		return named("html"), nil
	case extension(file.Name) == "" && bytes.HasPrefix(head, []byte("From ")) && looksLikeMail(head[bytes.IndexByte(head, '\n')+1:]):
		return named("mbox"), nil
	case extension(file.Name) == "" && looksLikeMail(head):
		return named("eml"), nil
	}
	return named("text"), nil
}

// bySignature returns the format of a file with a signature; nil for text.
func bySignature(file File, head []byte) (*Format, error) {
	switch {
	case bytes.Contains(head[:min(len(head), 1024)], []byte("%PDF-")) && (bytes.HasPrefix(head, []byte("%PDF-")) || byExtension(extension(file.Name)) == named("pdf")):
		return named("pdf"), nil
	case bytes.HasPrefix(head, []byte("PK\x03\x04")), bytes.HasPrefix(head, []byte("PK\x05\x06")):
		return inArchive(file)
	case bytes.HasPrefix(head, []byte("\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1")):
		if bytes.Contains(file.Data, []byte("E\x00n\x00c\x00r\x00y\x00p\x00t\x00e\x00d\x00P\x00a\x00c\x00k\x00a\x00g\x00e\x00")) {
			return nil, errorf(Encrypted, "is encrypted: remove the password first")
		}
		return nil, errorf(Unsupported, "is a file of an old office program (.doc, .xls, .ppt or .msg): save it in the new format, such as .docx")
	case bytes.HasPrefix(head, []byte(`{\rtf`)):
		return named("rtf"), nil
	case bytes.HasPrefix(head, []byte("\x1f\x8b")), bytes.HasPrefix(head, []byte("\x28\xb5\x2f\xfd")), bytes.HasPrefix(head, []byte("Rar!")), bytes.HasPrefix(head, []byte("7z\xbc\xaf")):
		return nil, errorf(Unsupported, "is a compressed archive: unpack it first")
	}
	return nil, media(head)
}

// media returns an error for an image, a recording or a film.
func media(head []byte) error {
	kind := http.DetectContentType(head)
	switch {
	case bytes.HasPrefix(head, []byte("II*\x00")), bytes.HasPrefix(head, []byte("MM\x00*")), strings.HasPrefix(kind, "image/") && kind != "image/svg+xml":
		return errorf(NoText, "is an image without text: %s", readBy)
	case len(head) > 12 && bytes.Equal(head[4:8], []byte("ftyp")) && (bytes.HasPrefix(head[8:], []byte("hei")) || bytes.HasPrefix(head[8:], []byte("avif"))):
		return errorf(NoText, "is an image without text: %s", readBy)
	case strings.HasPrefix(kind, "audio/"), bytes.HasPrefix(head, []byte("ID3")), bytes.HasPrefix(head, []byte("fLaC")):
		return errorf(NoText, "is a recording without text: a model step can transcribe it: pass the file to an LLMInference whose model accepts audio")
	case strings.HasPrefix(kind, "video/"), kind == "application/ogg":
		return errorf(NoText, "is a film without text: a model step can describe it: pass the file to an LLMInference whose model accepts video")
	}
	return nil
}

// inArchive returns the format of a zip archive by its parts.
func inArchive(file File) (*Format, error) {
	a, err := openArchive(&job{file: file, limits: Limits{}.withDefaults(), unpacked: 1 << 20})
	if err != nil {
		if known, ok := err.(*Error); ok { //nolint:errorlint // never wrapped
			return nil, known
		}
		f := byExtension(extension(file.Name))
		if f == nil || !f.binary {
			f = &Format{Label: "zip"}
		}
		return nil, errorf(Damaged, "is damaged or not a complete %s file", f.Label).caused(err)
	}
	main := a.mainPart("")
	for name, part := range map[string]string{"docx": "word/document.xml", "pptx": "ppt/presentation.xml", "xlsx": "xl/workbook.xml", "epub": "META-INF/container.xml"} {
		if a.has(part) || main != "" && path.Dir(main) == path.Dir(part) { // any name in its usual folder
			return named(name), nil
		}
	}
	if kind, err := a.read("mimetype"); err == nil && a.has("content.xml") {
		if f := byMediaType(strings.TrimSuffix(strings.TrimSpace(string(kind)), "-template")); f != nil && f.binary {
			return f, nil
		}
		return nil, errorf(Unsupported, "is an OpenDocument file that is neither a text, a spreadsheet nor a presentation")
	}
	if f := byExtension(extension(file.Name)); f != nil && f.binary && f.Name != "pdf" {
		return nil, errorf(Damaged, "is damaged or not a complete %s file", f.Label)
	}
	return nil, errorf(Unsupported, "is a compressed archive: unpack it first")
}

// mailHeader matches a line of the head of a message that other texts rarely begin with.
var mailHeader = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?mi)^(received|return-path|from|to|subject|date|message-id|mime-version|delivered-to):[ \t]`)
})

// looksLikeMail reports whether text begins with the head of a message.
func looksLikeMail(head []byte) bool {
	end := bytes.Index(bytes.ReplaceAll(head, []byte("\r\n"), []byte("\n")), []byte("\n\n"))
	if end < 0 {
		end = len(head)
	}
	start := mailHeader().FindIndex(head)
	return start != nil && start[0] == 0 && len(mailHeader().FindAll(head[:min(end, len(head))], -1)) >= 3
}

// IsHTML reports whether text begins as an HTML document does: with a doctype or with
// the element html, head or body, after comments and an XML declaration. Markdown that
// begins with an HTML element is not an HTML document.
func IsHTML(text []byte) bool {
	rest := bytes.TrimPrefix(text[:min(len(text), sniffSize)], []byte("\xef\xbb\xbf"))
	for {
		rest = bytes.TrimLeft(rest, " \t\r\n\f")
		var closing string
		switch {
		case bytes.HasPrefix(rest, []byte("<!--")):
			closing = "-->"
		case bytes.HasPrefix(rest, []byte("<?xml")):
			closing = "?>"
		default:
			return startsDocument(rest)
		}
		_, after, found := bytes.Cut(rest, []byte(closing))
		if !found {
			return false
		}
		rest = after
	}
}

// startsDocument reports whether text begins with the first tag of an HTML document.
func startsDocument(text []byte) bool {
	lower := strings.ToLower(string(text[:min(len(text), len("<!doctype html "))]))
	for _, tag := range []string{"<!doctype html", "<html", "<head", "<body"} {
		if rest, ok := strings.CutPrefix(lower, tag); ok && (rest == "" || strings.ContainsAny(rest[:1], " \t\r\n\f>/")) {
			return true
		}
	}
	return false
}
