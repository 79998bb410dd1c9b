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

// format answers the edits that bring a document into good form.
func (s *server) format(_ context.Context, p protocol.TextDocumentParams) ([]protocol.TextEdit, error) {
	d, err := s.openDocument(p.TextDocument)
	if err != nil {
		return nil, err
	}
	if len(s.workspace.rootsOf(d.path)) == 0 {
		return []protocol.TextEdit{}, nil // some other YAML, which others format
	}
	formatted, err := formatText(d.text)
	if err != nil {
		return nil, requestFailed("%v", err)
	}
	return changedLines(d, formatted), nil
}

// errUnreadable says why a document is not formatted.
var errUnreadable = errors.New("the document cannot be formatted: its syntax is wrong")

// formatText brings a document into good form: two spaces a level, one blank behind
// colons and dashes, no blanks at the ends of lines, at most one empty line in a
// row, one line end at the end. Only blanks change: comments, quotes, the order
// and what stands in texts stay as they are. What would change the meaning all
// the same is not done.
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

// treeOfYAML reads the first document of a text; nil for an empty one. A second
// one is an error: the loader reads none.
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

// withoutComments is a text without the lines that are comments.
func withoutComments(text string) string {
	var kept []string
	for _, line := range strings.Split(text, "\n") {
		if !strings.HasPrefix(strings.TrimSpace(line), "#") {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "\n")
}

// sameTree tells whether two trees mean the same and are written in the same styles.
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

// equalIgnoringSpace tells whether two texts differ in nothing but blanks, comments included.
func equalIgnoringSpace(a, b string) bool { return withoutSpace(a) == withoutSpace(b) }

// withoutSpace is what of a text is not blank.
func withoutSpace(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return -1
		}
		return r
	}, text)
}

// trimLines takes blanks off the ends of lines and empty lines out, texts aside.
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
		return made // a text to the very end, whose line ends may count
	}
	return strings.TrimRight(made, "\n\r") + lineBreak(text)
}

// lineBreak is how a text ends its lines.
func lineBreak(text string) string {
	switch {
	case strings.TrimSpace(text) == "":
		return ""
	case strings.Contains(text, "\r\n"):
		return "\r\n"
	}
	return "\n"
}

// textRows tells which lines are the second or a later one of a scalar, where
// blanks may matter.
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

// lineOf is the number of the line, ended by line feeds, that holds an offset.
func (l *lineIndex) lineOf(offset int) int { return sort.SearchInts(l.feedStarts, offset+1) - 1 }

// changedLines are the lines that differ, as one edit; none where none does.
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
