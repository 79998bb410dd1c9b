// Package markdown shows Markdown in a terminal while it is being written: each line is
// complete as soon as its source is, and what is not complete yet can be shown as it is.
//
// The text is of a model and not trusted: the caller has removed the characters that a
// terminal acts upon, and the package writes no sequences but those of styles.
package markdown

import (
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"
)

// maxPending bounds what Pending shows of a line, in bytes: it is called for each delta.
const maxPending = 4096

// Renderer renders a text that arrives in pieces.
type Renderer struct {
	Width int  // columns of the terminal
	Color bool // styles may be used; otherwise marks such as ** are shown

	line  string      // the source of the line that is not complete
	table []string    // the source of the lines of a table that is not complete
	fence string      // the mark that ends the code block; empty outside of one
	code  highlighter // of that block
}

// Write adds text and returns the lines that are complete.
func (r *Renderer) Write(text string) []string {
	var done []string
	for {
		line, rest, complete := strings.Cut(text, "\n")
		r.line += line
		if !complete {
			return done
		}
		done = append(done, r.complete(r.line)...)
		r.line, text = "", rest
	}
}

// Pending returns what is not complete, as it would be shown now.
func (r *Renderer) Pending() []string {
	if r.line == "" && len(r.table) == 0 {
		return nil
	}
	copied := *r
	if cut := len(r.line) - maxPending; cut > 0 {
		for !utf8.RuneStart(r.line[cut]) {
			cut++
		}
		copied.line = r.line[cut:]
	}
	return copied.Flush()
}

// Flush ends the text and returns the rest of its lines.
func (r *Renderer) Flush() []string {
	var done []string
	if r.line != "" {
		done = r.complete(r.line)
	}
	done = append(done, r.endTable()...)
	r.line, r.fence = "", ""
	return done
}

// complete returns a line that is complete, with the table that it may end. A line of a
// table is kept until the table ends.
func (r *Renderer) complete(line string) []string {
	if r.fence == "" && strings.HasPrefix(strings.TrimSpace(line), "|") {
		r.table = append(r.table, line)
		return nil
	}
	return append(r.endTable(), r.block(line)...)
}

// The patterns of lines.
var (
	fencePattern   = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile("^\\s*(```+|~~~+)\\s*([^`]*)$") })
	headingPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(#{1,6})\s+(.*?)\s*#*$`) })
	rulePattern    = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\s*([-*_])(\s*[-*_]){2,}\s*$`) })
	itemPattern    = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(\s*)([-*+]|\d{1,9}[.)])\s+(.*)$`) })
	quotePattern   = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\s*((?:>\s?)+)(.*)$`) })
)

// ruleWidth is the most columns of a horizontal rule.
const ruleWidth = 40

// block returns a line outside of tables.
func (r *Renderer) block(line string) []string {
	if m := fencePattern().FindStringSubmatch(line); m != nil || r.fence != "" {
		return r.codeLine(line, m)
	}
	if strings.TrimSpace(line) == "" {
		return []string{""}
	}
	if !r.Color {
		m := itemPattern().FindStringSubmatch(line)
		if m == nil {
			return r.wrap([]span{{text: line}}, span{}, span{})
		}
		mark := r.indent(m[1]) + m[2] + " "
		return r.wrap([]span{{text: m[3]}}, span{text: mark}, span{text: strings.Repeat(" ", width(mark))})
	}
	return r.styled(line)
}

// codeLine returns a line of a code block, or one of its two marks.
func (r *Renderer) codeLine(line string, m []string) []string {
	switch {
	case r.fence == "": // m is not nil
		r.fence = m[1]
		r.code = highlighter{syntax: syntaxOf(m[2])}
		if !r.Color {
			return r.wrap([]span{{text: line}}, span{}, span{})
		}
		if m[2] == "" {
			return nil
		}
		return r.wrap([]span{{m[2], dim}}, span{text: "  "}, span{text: "  "})
	case m != nil && strings.HasPrefix(m[1], r.fence) && m[2] == "":
		r.fence = ""
		if !r.Color {
			return r.wrap([]span{{text: line}}, span{}, span{})
		}
		return nil
	}
	line = strings.ReplaceAll(line, "\t", "    ")
	if !r.Color {
		return r.wrap([]span{{text: line}}, span{}, span{})
	}
	if r.code.syntax == nil {
		return r.wrapExact([]span{{line, code}}, span{text: "  "})
	}
	return r.wrapExact(r.code.line(line), span{text: "  "})
}

// styled returns a line with its marks replaced by styles.
func (r *Renderer) styled(line string) []string {
	if m := headingPattern().FindStringSubmatch(line); m != nil {
		s := bold
		if len(m[1]) == 1 {
			s |= underline
		}
		return r.wrap(inline(m[2], s), span{}, span{})
	}
	if rulePattern().MatchString(line) {
		return r.wrap([]span{{strings.Repeat("─", min(r.Width, ruleWidth)), dim}}, span{}, span{})
	}
	if m := itemPattern().FindStringSubmatch(line); m != nil {
		mark := m[2]
		if len(mark) == 1 {
			mark = "•"
		}
		text := m[3]
		for box, shown := range map[string]string{"[ ] ": "☐", "[x] ": "☑", "[X] ": "☑"} {
			if rest, ok := strings.CutPrefix(text, box); ok {
				mark, text = shown, rest
			}
		}
		indent := r.indent(m[1])
		return r.wrap(inline(text, 0), span{indent + mark + " ", accent}, span{text: indent + strings.Repeat(" ", width(mark)+1)})
	}
	if m := quotePattern().FindStringSubmatch(line); m != nil {
		bars := span{strings.Repeat("│ ", min(strings.Count(m[1], ">"), r.Width/4)), dim}
		return r.wrap(inline(m[2], italic), bars, bars)
	}
	return r.wrap(inline(line, 0), span{}, span{})
}

// indent returns the space before the mark of an item, at most half a line.
func (r *Renderer) indent(space string) string {
	return strings.Repeat(" ", min(width(strings.ReplaceAll(space, "\t", "    ")), r.Width/2))
}
