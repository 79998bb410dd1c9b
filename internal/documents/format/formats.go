package format

import (
	"context"
	"path"
	"slices"
	"strings"
	"sync"
)

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
