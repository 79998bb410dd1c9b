package format

import (
	"context"
	"strings"
)

// convertText returns text in UTF-8, with line feeds as line breaks.
func convertText(_ context.Context, j *job) (*Result, error) {
	text, err := decodeText(j.file)
	if err != nil {
		return nil, err
	}
	return &Result{Text: text}, nil
}

// decodeText converts the content of a file to UTF-8 without a byte order mark and with
// line feeds as line breaks.
func decodeText(file File) (string, error) {
	text, err := toUTF8(file.Data, declaredCharset(file))
	if err != nil {
		return "", err
	}
	return strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n"), nil
}
