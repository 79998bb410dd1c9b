package format

import (
	"bytes"
	"net/http"
	"path"
	"regexp"
	"strings"
	"sync"
)

// sniffSize is how many bytes of a file are read to detect its format.
const sniffSize = 4096

// detect returns the format of a file: by signatures of its content, by its name, by its
// media type, by the form of its text.
func detect(file File) (*Format, error) {
	head := file.Data[:min(len(file.Data), sniffSize)]
	if f, err := bySignature(file, head); f != nil || err != nil {
		return f, err
	}
	for _, f := range []*Format{byExtension(extension(file.Name)), byMediaType(file.MediaType)} {
		switch {
		case f == nil:
		case f.binary:
			return nil, errorf(Damaged, "is not a %s file", f.Label)
		case len(bytes.TrimSpace(file.Data)) == 0:
			return nil, errorf(NoText, "is empty")
		default:
			return f, nil
		}
	}
	switch {
	case len(bytes.TrimSpace(file.Data)) == 0:
		return nil, errorf(NoText, "is empty")
	case IsHTML(head):
		return named("html"), nil
	case extension(file.Name) == "" && bytes.HasPrefix(head, []byte("From ")) && looksLikeMail(head[bytes.IndexByte(head, '\n')+1:]):
		return named("mbox"), nil
	case extension(file.Name) == "" && looksLikeMail(head):
		return named("eml"), nil
	}
	return named("text"), nil
}

// bySignature returns the format of a file with a signature; nil for text.
func bySignature(file File, head []byte) (*Format, error) {
	switch {
	case bytes.Contains(head[:min(len(head), 1024)], []byte("%PDF-")) && (bytes.HasPrefix(head, []byte("%PDF-")) || byExtension(extension(file.Name)) == named("pdf")):
		return named("pdf"), nil
	case bytes.HasPrefix(head, []byte("PK\x03\x04")), bytes.HasPrefix(head, []byte("PK\x05\x06")):
		return inArchive(file)
	case bytes.HasPrefix(head, []byte("\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1")):
		if bytes.Contains(file.Data, []byte("E\x00n\x00c\x00r\x00y\x00p\x00t\x00e\x00d\x00P\x00a\x00c\x00k\x00a\x00g\x00e\x00")) {
			return nil, errorf(Encrypted, "is encrypted: remove the password first")
		}
		return nil, errorf(Unsupported, "is a file of an old office program (.doc, .xls, .ppt or .msg): save it in the new format, such as .docx")
	case bytes.HasPrefix(head, []byte(`{\rtf`)):
		return named("rtf"), nil
	case bytes.HasPrefix(head, []byte("\x1f\x8b")), bytes.HasPrefix(head, []byte("\x28\xb5\x2f\xfd")), bytes.HasPrefix(head, []byte("Rar!")), bytes.HasPrefix(head, []byte("7z\xbc\xaf")):
		return nil, errorf(Unsupported, "is a compressed archive: unpack it first")
	}
	return nil, media(head)
}

// media returns an error for an image, a recording or a film.
func media(head []byte) error {
	kind := http.DetectContentType(head)
	switch {
	case bytes.HasPrefix(head, []byte("II*\x00")), bytes.HasPrefix(head, []byte("MM\x00*")), strings.HasPrefix(kind, "image/") && kind != "image/svg+xml":
		return errorf(NoText, "is an image without text: %s", readBy)
	case len(head) > 12 && bytes.Equal(head[4:8], []byte("ftyp")) && (bytes.HasPrefix(head[8:], []byte("hei")) || bytes.HasPrefix(head[8:], []byte("avif"))):
		return errorf(NoText, "is an image without text: %s", readBy)
	case strings.HasPrefix(kind, "audio/"), bytes.HasPrefix(head, []byte("ID3")), bytes.HasPrefix(head, []byte("fLaC")):
		return errorf(NoText, "is a recording without text: a model step can transcribe it: pass the file to an LLMInference whose model accepts audio")
	case strings.HasPrefix(kind, "video/"), kind == "application/ogg":
		return errorf(NoText, "is a film without text: a model step can describe it: pass the file to an LLMInference whose model accepts video")
	}
	return nil
}

// inArchive returns the format of a zip archive by its parts.
func inArchive(file File) (*Format, error) {
	a, err := openArchive(&job{file: file, limits: Limits{}.withDefaults(), unpacked: 1 << 20})
	if err != nil {
		if known, ok := err.(*Error); ok { //nolint:errorlint // never wrapped
			return nil, known
		}
		f := byExtension(extension(file.Name))
		if f == nil || !f.binary {
			f = &Format{Label: "zip"}
		}
		return nil, errorf(Damaged, "is damaged or not a complete %s file", f.Label).caused(err)
	}
	main := a.mainPart("")
	for name, part := range map[string]string{"docx": "word/document.xml", "pptx": "ppt/presentation.xml", "xlsx": "xl/workbook.xml", "epub": "META-INF/container.xml"} {
		if a.has(part) || main != "" && path.Dir(main) == path.Dir(part) { // any name in its usual folder
			return named(name), nil
		}
	}
	if kind, err := a.read("mimetype"); err == nil && a.has("content.xml") {
		if f := byMediaType(strings.TrimSuffix(strings.TrimSpace(string(kind)), "-template")); f != nil && f.binary {
			return f, nil
		}
		return nil, errorf(Unsupported, "is an OpenDocument file that is neither a text, a spreadsheet nor a presentation")
	}
	if f := byExtension(extension(file.Name)); f != nil && f.binary && f.Name != "pdf" {
		return nil, errorf(Damaged, "is damaged or not a complete %s file", f.Label)
	}
	return nil, errorf(Unsupported, "is a compressed archive: unpack it first")
}

// mailHeader matches a line of the head of a message that other texts rarely begin with.
var mailHeader = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?mi)^(received|return-path|from|to|subject|date|message-id|mime-version|delivered-to):[ \t]`)
})

// looksLikeMail reports whether text begins with the head of a message.
func looksLikeMail(head []byte) bool {
	end := bytes.Index(bytes.ReplaceAll(head, []byte("\r\n"), []byte("\n")), []byte("\n\n"))
	if end < 0 {
		end = len(head)
	}
	start := mailHeader().FindIndex(head)
	return start != nil && start[0] == 0 && len(mailHeader().FindAll(head[:min(end, len(head))], -1)) >= 3
}

// IsHTML reports whether text begins as an HTML document does: with a doctype or with
// the element html, head or body, after comments and an XML declaration. Markdown that
// begins with an HTML element is not an HTML document.
func IsHTML(text []byte) bool {
	rest := bytes.TrimPrefix(text[:min(len(text), sniffSize)], []byte("\xef\xbb\xbf"))
	for {
		rest = bytes.TrimLeft(rest, " \t\r\n\f")
		var closing string
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
