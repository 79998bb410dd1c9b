package splitter

import (
	"context"
	"iter"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/qtype-dev/qtype/spec"
)

// heading is a line of a Markdown text that begins a section.
type heading struct {
	start, end int // of the line, without its line end
	level      int
	title      string // as it is in the text
}

// headings yields the headings with number signs of a Markdown text. Lines in fenced code
// are not headings.
func headings(text string) iter.Seq[heading] {
	return func(yield func(heading) bool) {
		fenced, start := false, 0
		for line := range strings.Lines(text) {
			from := start
			start += len(line)
			if strings.HasPrefix(strings.TrimLeftFunc(line, isTrimmed), "```") {
				fenced = !fenced
				continue
			}
			if h, ok := parseHeading(strings.TrimSuffix(line, "\n")); ok && !fenced {
				h.start, h.end = from, from+h.end
				if !yield(h) {
					return
				}
			}
		}
	}
}

func parseHeading(line string) (heading, bool) {
	rest := strings.TrimLeft(line, "#")
	level := len(line) - len(rest)
	r, size := utf8.DecodeRuneInString(rest)
	if level == 0 || !unicode.IsSpace(r) {
		return heading{}, false
	}
	return heading{end: len(line), level: level, title: rest[size:]}, true
}

// outline is the headings that a place of a text is below of, the highest first.
type outline []heading

// add returns the outline after a heading.
func (o outline) add(h heading) outline {
	for len(o) > 0 && o[len(o)-1].level >= h.level {
		o = o[:len(o)-1]
	}
	return append(o, h)
}

// titles returns the texts of the headings.
func (o outline) titles() []string {
	titles := make([]string, len(o))
	for i, h := range o {
		titles[i] = h.title
	}
	return titles
}

// section is a part of a Markdown text up to the next heading.
type section struct {
	start, end int
	parents    []string // the titles of the sections that it is in
}

// sections yields the sections of a Markdown text.
func sections(text string) iter.Seq[section] {
	return func(yield func(section) bool) {
		var above outline
		current := section{}
		for h := range headings(text) {
			current.end = h.start
			if current.end > current.start && !yield(current) {
				return
			}
			above = above.add(h)
			current = section{start: h.start, parents: above[:len(above)-1].titles()}
		}
		current.end = len(text)
		yield(current)
	}
}

// markdown is MarkdownNodeParser: a chunk is a section.
type markdown struct{ separator string }

func newMarkdown(args *spec.MarkdownArgs) (Splitter, error) {
	return markdown{args.HeaderPathSeparator}, nil
}

// Split implements Splitter.
func (m markdown) Split(ctx context.Context, d Document) iter.Seq2[Chunk, error] {
	return func(yield func(Chunk, error) bool) {
		for s := range sections(d.Text) {
			if ctx.Err() != nil {
				yield(Chunk{}, context.Cause(ctx))
				return
			}
			chunk, ok := passage(d.Text, s.start, s.end)
			if !ok {
				continue
			}
			path := m.separator
			if len(s.parents) > 0 {
				path += strings.Join(s.parents, m.separator) + m.separator
			}
			chunk.Metadata = []Entry{{"header_path", path}}
			if !yield(chunk, nil) {
				return
			}
		}
	}
}

// markdownElement is MarkdownElementNodeParser: a chunk is a table, or the text of a
// section before, between or after tables.
type markdownElement struct{}

// Split implements Splitter.
func (markdownElement) Split(ctx context.Context, d Document) iter.Seq2[Chunk, error] {
	return func(yield func(Chunk, error) bool) {
		for s := range sections(d.Text) {
			for e := range elements(d.Text, s) {
				if ctx.Err() != nil {
					yield(Chunk{}, context.Cause(ctx))
					return
				}
				chunk, ok := passage(d.Text, e.start, e.end)
				if !ok {
					continue
				}
				chunk.Metadata = []Entry{{"element_type", e.kind}}
				if !yield(chunk, nil) {
					return
				}
			}
		}
	}
}

// element is a part of a section.
type element struct {
	start, end int
	kind       string // text or table
}

// elements yields the tables of a section and the texts around them. A table is two or
// more lines that begin with a vertical bar, the second of which is a rule.
func elements(text string, s section) iter.Seq[element] {
	return func(yield func(element) bool) {
		begin, fenced := s.start, false
		for i := s.start; i < s.end; {
			line := lineAt(text, i, s.end)
			if strings.HasPrefix(strings.TrimLeft(line, " "), "```") {
				fenced = !fenced
			}
			end := i + len(line)
			if !fenced && isTableRow(line) && isTableRule(lineAt(text, end, s.end)) {
				for end < s.end && isTableRow(lineAt(text, end, s.end)) {
					end += len(lineAt(text, end, s.end))
				}
				if !yield(element{begin, i, "text"}) || !yield(element{i, end, "table"}) {
					return
				}
				begin = end
			}
			i = end
		}
		yield(element{begin, s.end, "text"})
	}
}

// lineAt returns the line at text[i:end] with its line end.
func lineAt(text string, i, end int) string {
	line := text[i:end]
	if n := strings.IndexByte(line, '\n'); n >= 0 {
		line = line[:n+1]
	}
	return line
}

func isTableRow(line string) bool { return strings.HasPrefix(strings.TrimLeft(line, " "), "|") }

func isTableRule(line string) bool {
	return isTableRow(line) && strings.Contains(line, "-") && strings.Trim(line, "|-: \t\r\n") == ""
}
