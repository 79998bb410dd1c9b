package lsp

import (
	"context"
	"strings"
)

// format answers the edits that bring a document into good form: blanks at the
// ends of lines, several empty lines, line ends and the end of the file.
func (s *server) format(_ context.Context, p formattingParams) ([]textEdit, error) {
	d, err := s.held(p.TextDocument)
	if err != nil {
		return nil, err
	}
	return lineEdits(d, Format(d.text)), nil
}

func lineEdits(d *document, formatted string) []textEdit {
	if formatted == d.text {
		return []textEdit{}
	}
	return []textEdit{{d.span(0, len(d.text)), formatted}}
}

// Format is a stub.
func Format(text string) string { return strings.TrimRight(text, "\n") + "\n" }
