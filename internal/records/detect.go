package records

import (
	"bytes"
	"fmt"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/qtype-dev/qtype/internal/remotefs"
)

var (
	bomUTF8    = []byte{0xef, 0xbb, 0xbf}
	magicPQ    = []byte("PAR1")
	magicZip   = []byte("PK\x03\x04")
	magicOLE   = []byte{0xd0, 0xcf, 0x11, 0xe0, 0xa1, 0xb1, 0x1a, 0xe1}
	bomUTF16LE = []byte{0xff, 0xfe}
	bomUTF16BE = []byte{0xfe, 0xff}
)

// name returns the part of a path or URL that has the file's extension: the path of
// an HTTP URL, without its query.
func name(path string) string {
	if scheme, _ := remotefs.Remote(path); scheme == "http" || scheme == "https" {
		if u, err := url.Parse(path); err == nil {
			return u.Path
		}
	}
	return path
}

// detect returns the file's format: the requested one, else that of the name, else
// that of the content. It returns an error if the content cannot be of that format.
func detect(path, name string, requested Format, head []byte) (Format, error) {
	format := requested
	if format == "" {
		format, _ = FormatOf(name)
	}
	errorf := func(reason string, args ...any) error {
		return &FileError{Path: path, Reason: fmt.Sprintf(reason, args...)}
	}
	body := bytes.TrimSpace(bytes.TrimPrefix(head, bomUTF8))
	if len(body) == 0 && len(head) < peekSize {
		return "", errorf("the file is empty")
	}
	if binary, err := detectBinary(errorf, format, head); binary != "" || err != nil {
		return binary, err
	}
	return detectText(errorf, format, body)
}

// detectBinary detects a binary format by its first bytes; empty for text.
func detectBinary(errorf func(string, ...any) error, format Format, head []byte) (Format, error) {
	switch {
	case bytes.HasPrefix(head, magicPQ):
		if format != Parquet && format != "" {
			return "", errorf("is a Parquet file, not %s: rename it to .parquet", label(format))
		}
		return Parquet, nil
	case format == Parquet:
		return "", errorf("is not a Parquet file")
	case bytes.HasPrefix(head, magicZip):
		if format != Excel && format != "" {
			return "", errorf("is a zip archive or an Excel workbook, not %s: rename a workbook to .xlsx", label(format))
		}
		return Excel, nil
	case bytes.HasPrefix(head, magicOLE):
		return "", errorf("is an Excel workbook in the old format (.xls): save it as .xlsx")
	case format == Excel:
		return "", errorf("is not an Excel workbook")
	case bytes.Count(head, []byte{0})*3 > len(head): // every second byte of text in Latin letters
		return "", errorf("contains binary data, or UTF-16 text, which needs the table option encoding=utf-16le or encoding=utf-16be")
	case bytes.IndexByte(head, 0) >= 0:
		return "", errorf("contains binary data, not %s", label(format))
	}
	return "", nil
}

// detectText detects a text format by its first characters.
func detectText(errorf func(string, ...any) error, format Format, body []byte) (Format, error) {
	jsonish := bytes.HasPrefix(body, []byte(`{"`)) || bytes.HasPrefix(body, []byte(`[{`)) || bytes.Equal(body, []byte("[]"))
	switch {
	case (format == CSV || format == TSV) && jsonish:
		return "", errorf("contains JSON, not %s: rename it to .json or .jsonl", label(format))
	case format == JSON && body[0] != '{' && body[0] != '[':
		return "", errorf("does not contain JSON records: an array of objects is expected")
	case format != "":
		return format, nil
	case body[0] == '{' || body[0] == '[':
		return JSON, nil
	case !utf8.Valid(body[:max(0, len(body)-utf8.UTFMax)]):
		return "", errorf("contains binary data, not %s", label(""))
	}
	line, _, _ := strings.Cut(string(body), "\n")
	if strings.Contains(line, "\t") && !strings.Contains(line, ",") {
		return TSV, nil
	}
	return CSV, nil
}

// label returns a format's name for messages.
func label(f Format) string {
	switch f {
	case JSONL:
		return "JSON lines"
	case Parquet:
		return "Parquet"
	case Excel:
		return "Excel"
	case "":
		return "CSV, TSV, JSON, JSON lines, Excel or Parquet"
	}
	return strings.ToUpper(string(f))
}
