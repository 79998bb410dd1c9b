package diag

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"unicode/utf16"

	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/spec/source"
)

// summary returns the message with the hint, for formats without a caret.
func (d Diagnostic) summary() string {
	if d.Hint == "" {
		return escapeControl(d.Message)
	}
	return escapeControl(d.Message + "; " + d.Hint)
}

// file returns the path of a span's file, "" if there is none.
func file(s source.Span) string {
	if s.File == nil {
		return ""
	}
	return escapeControl(s.File.Path)
}

// entry is a diagnostic in JSON. Lines and columns are omitted if there are none.
type entry struct {
	Code       string    `json:"code"`
	Severity   Severity  `json:"severity"`
	Message    string    `json:"message"`
	File       string    `json:"file"`
	Line       int       `json:"line,omitempty"`
	Column     int       `json:"column,omitempty"`
	EndLine    int       `json:"end_line,omitempty"`
	EndColumn  int       `json:"end_column,omitempty"`
	Suggestion string    `json:"suggestion,omitempty"`
	Fixes      []fixJSON `json:"fixes,omitempty"`
}

type fixJSON struct {
	File      string `json:"file"`
	Line      int    `json:"line"`
	Column    int    `json:"column"`
	EndLine   int    `json:"end_line"`
	EndColumn int    `json:"end_column"`
	Text      string `json:"text"`
}

func fixesOf(d Diagnostic) []fixJSON {
	var all []fixJSON
	for _, f := range d.Fixes {
		s := f.Span
		all = append(all, fixJSON{file(s), s.Start.Line, s.Start.Column, s.End.Line, s.End.Column, f.NewText})
	}
	return all
}

// JSON prints the list as an array of objects, [] if it is empty. Lines and columns
// count from 1, columns in characters; a diagnostic without a position has none.
// The fixes of a diagnostic belong together.
func JSON(w io.Writer, list List) error {
	entries := make([]entry, len(list))
	for i, d := range list {
		entries[i] = entry{
			Code: d.Code, Severity: d.Severity, Message: d.summary(), File: file(d.Span),
			Line: d.Span.Start.Line, Column: d.Span.Start.Column,
			EndLine: d.Span.End.Line, EndColumn: d.Span.End.Column, Suggestion: d.Suggestion,
			Fixes: fixesOf(d),
		}
	}
	return encode(w, entries)
}

// encode writes indented JSON. It escapes control characters for the terminal,
// which changes no value.
func encode(w io.Writer, value any) error {
	var text bytes.Buffer
	if err := textfmt.WriteJSON(&text, value); err != nil {
		return err
	}
	var b strings.Builder
	for _, r := range text.String() {
		switch {
		case r < 0x80 || !unprintable(r):
			b.WriteRune(r)
		case r < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// GitHub prints the list as workflow commands that annotate a pull request.
func GitHub(w io.Writer, list List) error {
	for _, d := range list {
		properties := []string{}
		add := func(name string, value any) {
			properties = append(properties, name+"="+escapeProperty(fmt.Sprint(value)))
		}
		if path := file(d.Span); path != "" {
			add("file", path)
		}
		if d.Span.Start.Line > 0 {
			add("line", d.Span.Start.Line)
			add("col", d.Span.Start.Column)
			add("endLine", d.Span.End.Line)
			add("endColumn", d.Span.End.Column)
		}
		add("title", d.Code)
		if _, err := fmt.Fprintf(w, "::%s %s::%s\n", d.Severity, strings.Join(properties, ","), escapeData(d.summary())); err != nil {
			return err
		}
	}
	return nil
}

// escapeData escapes the message of a workflow command.
func escapeData(s string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A").Replace(s)
}

// escapeProperty escapes a property of a workflow command.
func escapeProperty(s string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C").Replace(s)
}
