package format

import (
	"context"
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
	Paged      bool     // whether results have pages

	convert func(context.Context, *job) (*Result, error)
}

// formats is the one list of formats. Formats that are only named in errors come last.
var formats = sync.OnceValue(func() []*Format {
	return []*Format{
		{Name: "html", Label: "HTML", Extensions: []string{".html", ".htm", ".xhtml", ".xht"}, MediaTypes: []string{"text/html", "application/xhtml+xml"},
			Doc: "the main content, without navigation, headers and footers of the site; headings, lists, tables, links and code", convert: convertHTML},
		{Name: "markdown", Label: "Markdown", Extensions: []string{".md", ".markdown", ".mdx", ".mkd"}, MediaTypes: []string{"text/markdown", "text/x-markdown"},
			Doc: "the text, unchanged", convert: convertText},
		{Name: "text", Label: "text", Extensions: []string{".txt", ".text", ".log"}, MediaTypes: []string{"text/plain"},
			Doc: "the text, unchanged, also of source code and configuration", convert: convertText},
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
