package lsp

import (
	"context"
	"errors"
	"sort"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v4"

	"github.com/qtype-dev/qtype/internal/lsp/outline"
	"github.com/qtype-dev/qtype/internal/lsp/protocol"
)

// format handles textDocument/formatting.
func (s *server) format(_ context.Context, p protocol.TextDocumentParams) ([]protocol.TextEdit, error) {
	d, err := s.openDocument(p.TextDocument)
	if err != nil {
		return nil, err
	}
	if len(s.workspace.rootsOf(d.path)) == 0 {
		return []protocol.TextEdit{}, nil // not a qtype document
	}
	formatted, err := formatText(d.text)
	if err != nil {
		return nil, requestFailed("%v", err)
	}
	return changedLines(d, formatted), nil
}

// errUnreadable is returned for a document with syntax errors.
var errUnreadable = errors.New("the document cannot be formatted: it has syntax errors")

// formatText normalizes the white space of a document: two spaces per level, one
// after colons and dashes, none at the end of a line, at most one empty line in a
// row, one line feed at the end. It changes nothing else. If the result would have
// another meaning, it is discarded.
func formatText(text string) (string, error) {
	before, err := parseYAML(text)
	if err != nil {
		return "", errUnreadable
	}
	for _, attempt := range []func(string) string{
		func(t string) string { return trimLines(indent(t)) }, trimLines,
	} {
		made := attempt(text)
		after, err := parseYAML(made)
		if err == nil && isSameTree(before, after) && equalIgnoringSpace(text, made) {
			return made, nil
		}
	}
	return text, nil
}

// parseYAML parses the document in a text; nil for an empty one. A second document
// is an error, as it is for the loader.
func parseYAML(text string) (*yaml.Node, error) {
	in, err := yaml.NewLoader(strings.NewReader(text), yaml.WithUniqueKeys(false))
	if err != nil {
		return nil, err
	}
	var root yaml.Node
	switch err := in.Load(&root); {
	case err != nil && strings.TrimSpace(withoutComments(text)) == "":
		return nil, nil
	case err != nil:
		return nil, err
	}
	var second yaml.Node
	if in.Load(&second) == nil {
		return nil, errUnreadable
	}
	return &root, nil
}

func withoutComments(text string) string {
	var kept []string
	for _, line := range strings.Split(text, "\n") {
		if !strings.HasPrefix(strings.TrimSpace(line), "#") {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "\n")
}

// isSameTree reports whether two trees have the same meaning and styles.
func isSameTree(a, b *yaml.Node) bool {
	if a == nil || b == nil {
		return a == b
	}
	if a.Kind != b.Kind || a.Tag != b.Tag || a.Value != b.Value || a.Anchor != b.Anchor || a.Style != b.Style || len(a.Content) != len(b.Content) {
		return false
	}
	for i := range a.Content {
		if !isSameTree(a.Content[i], b.Content[i]) {
			return false
		}
	}
	return true
}

// equalIgnoringSpace reports whether a and b differ only in white space.
func equalIgnoringSpace(a, b string) bool { return withoutSpace(a) == withoutSpace(b) }

func withoutSpace(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return -1
		}
		return r
	}, text)
}

// trimLines removes white space at the ends of lines and repeated empty lines,
// except within scalars.
func trimLines(text string) string {
	rows := strings.Split(text, "\n")
	inText := continuationLines(text, len(rows))
	kept := rows[:0:0]
	for i, row := range rows {
		if inText[i] {
			kept = append(kept, row)
			continue
		}
		ending := ""
		if strings.HasSuffix(row, "\r") {
			ending = "\r"
		}
		row = strings.TrimRight(row, " \t\r")
		if row == "" && (len(kept) == 0 || strings.TrimSpace(kept[len(kept)-1]) == "" && !inText[i-1]) {
			continue
		}
		kept = append(kept, row+ending)
	}
	made := strings.Join(kept, "\n")
	if n := len(rows); inText[n-1] || n > 1 && rows[n-1] == "" && inText[n-2] {
		return made // a scalar reaches the end, where line feeds may be content
	}
	return strings.TrimRight(made, "\n\r") + lineBreak(text)
}

// lineBreak returns the line break that a text uses.
func lineBreak(text string) string {
	switch {
	case strings.TrimSpace(text) == "":
		return ""
	case strings.Contains(text, "\r\n"):
		return "\r\n"
	}
	return "\n"
}

// continuationLines reports for each line whether it continues a scalar, where
// white space may be content.
func continuationLines(text string, rows int) []bool {
	l := newLineIndex(text)
	marked := make([]bool, rows)
	outline.Parse(text).Walk(func(n *outline.Node) {
		if n.Kind == outline.Scalar {
			for row := l.lineOf(n.Start) + 1; row <= l.lineOf(max(n.End-1, n.Start)) && row < rows; row++ {
				marked[row] = true
			}
		}
	})
	return marked
}

// lineOf returns the 0-based line, counting line feeds only, of an offset.
func (l *lineIndex) lineOf(offset int) int { return sort.SearchInts(l.feedStarts, offset+1) - 1 }

// changedLines returns one edit of the lines that differ, or none.
func changedLines(d *document, formatted string) []protocol.TextEdit {
	if formatted == d.text {
		return []protocol.TextEdit{}
	}
	before, after := strings.SplitAfter(d.text, "\n"), strings.SplitAfter(formatted, "\n")
	start := 0
	for len(before) > 1 && len(after) > 1 && before[0] == after[0] {
		start += len(before[0])
		before, after = before[1:], after[1:]
	}
	end := len(d.text)
	for len(before) > 1 && len(after) > 1 && before[len(before)-1] == after[len(after)-1] {
		end -= len(before[len(before)-1])
		before, after = before[:len(before)-1], after[:len(after)-1]
	}
	return []protocol.TextEdit{{Range: d.rangeOf(start, end), NewText: strings.Join(after, "")}}
}
