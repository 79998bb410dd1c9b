// Package yamlformat normalizes the white space of YAML documents, for `qtype fmt` and the
// language server. It never changes the meaning of a document: a result that has another
// tree, or differs in anything but white space, is discarded.
package yamlformat

import (
	"errors"
	"io"
	"sort"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v4"

	"github.com/qtype-dev/qtype/internal/lsp/outline"
	"github.com/qtype-dev/qtype/loader"
)

// ErrUnreadable reports a document with syntax errors.
var ErrUnreadable = errors.New("the document cannot be formatted: it has syntax errors")

// Format normalizes the white space of a document: two spaces per level, one
// after colons and dashes, none at the end of a line, at most one empty line in a
// row, one line feed at the end. It changes nothing else. If the result would have
// another meaning, it is discarded.
func Format(text string) (string, error) {
	before, err := parseYAML(text)
	if err != nil {
		return "", ErrUnreadable
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
	in, err := loader.NewYAML([]byte(text))
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
	if err := in.Load(&second); !errors.Is(err, io.EOF) {
		return nil, ErrUnreadable
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
	starts := lineStarts(text)
	lineOf := func(offset int) int { return sort.SearchInts(starts, offset+1) - 1 }
	marked := make([]bool, rows)
	outline.Parse(text).Walk(func(n *outline.Node) {
		if n.Kind == outline.Scalar {
			for row := lineOf(n.Start) + 1; row <= lineOf(max(n.End-1, n.Start)) && row < rows; row++ {
				marked[row] = true
			}
		}
	})
	return marked
}

// lineStarts returns the offsets of the lines of a text.
func lineStarts(text string) []int {
	starts := []int{0}
	for i := range len(text) {
		if text[i] == '\n' {
			starts = append(starts, i+1)
		}
	}
	return starts
}
