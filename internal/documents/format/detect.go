package format

import (
	"bytes"
	"strings"
)

// sniffSize is how many bytes of a file are read to detect its format.
const sniffSize = 4096

// detect returns the format of a file.
func detect(file File) (*Format, error) {
	head := file.Data[:min(len(file.Data), sniffSize)]
	if f := byExtension(extension(file.Name)); f != nil {
		return f, nil
	}
	if f := byMediaType(file.MediaType); f != nil {
		return f, nil
	}
	if IsHTML(head) {
		return named("html"), nil
	}
	return named("text"), nil
}

// IsHTML reports whether text begins as an HTML document does: with a doctype or with
// the element html, head or body, after comments and an XML declaration. Markdown that
// begins with an HTML element is not an HTML document.
func IsHTML(text []byte) bool {
	rest := bytes.TrimPrefix(text[:min(len(text), sniffSize)], []byte("\xef\xbb\xbf"))
	for {
		rest = bytes.TrimLeft(rest, " \t\r\n\f")
		closing := ""
		switch {
		case bytes.HasPrefix(rest, []byte("<!--")):
			closing = "-->"
		case bytes.HasPrefix(rest, []byte("<?xml")):
			closing = "?>"
		default:
			return startsDocument(rest)
		}
		_, after, found := bytes.Cut(rest, []byte(closing))
		if !found {
			return false
		}
		rest = after
	}
}

// startsDocument reports whether text begins with the first tag of an HTML document.
func startsDocument(text []byte) bool {
	lower := strings.ToLower(string(text[:min(len(text), len("<!doctype html "))]))
	for _, tag := range []string{"<!doctype html", "<html", "<head", "<body"} {
		if rest, ok := strings.CutPrefix(lower, tag); ok && (rest == "" || strings.ContainsAny(rest[:1], " \t\r\n\f>/")) {
			return true
		}
	}
	return false
}
