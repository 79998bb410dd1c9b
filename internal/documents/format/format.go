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
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

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
		result, err = f.convert(ctx, &job{file: file, format: f, limits: limits, unpacked: limits.Unpacked})
	}
	if err == nil && len(result.Text) > limits.Output {
		err = outputTooLarge(limits)
	}
	switch known := new(Error); {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err == nil:
		result.Format, result.MediaType = f.Name, f.MediaTypes[0]
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
	format   *Format
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
