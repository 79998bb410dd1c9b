package lsp

import (
	"context"
	"strings"

	"github.com/qtype-dev/qtype/internal/lsp/protocol"
	"github.com/qtype-dev/qtype/internal/yamlformat"
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
	formatted, err := yamlformat.Format(d.text)
	if err != nil {
		return nil, requestFailed("%v", err)
	}
	return changedLines(d, formatted), nil
}

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
