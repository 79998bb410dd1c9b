// Package mediatype detects the media type of data by its first bytes, and checks that data
// has the kind that a document declares. It does without net/http, which would make programs
// larger that have no server.
package mediatype

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"
)

// sniffSize is how many bytes are read to distinguish text from other data.
const sniffSize = 1024

// Text and HTML are the types of text; SVG is an image, but text too.
const (
	Text = "text/plain"
	HTML = "text/html"
	SVG  = "image/svg+xml"
)

// signature is what data of a type has at an offset.
type signature struct {
	offset int
	bytes  string
	mime   string
}

// signatures lists the types that have a signature. The first that fits applies.
func signatures() []signature {
	return []signature{
		{0, "\x89PNG\r\n", "image/png"}, {0, "\xff\xd8\xff", "image/jpeg"}, {0, "GIF87a", "image/gif"}, {0, "GIF89a", "image/gif"},
		{8, "WEBP", "image/webp"}, {0, "II*\x00", "image/tiff"}, {0, "MM\x00*", "image/tiff"}, {0, "\x00\x00\x01\x00", "image/x-icon"},
		{0, "\xff\x0a", "image/jxl"}, {0, "\x00\x00\x00\x0cJXL ", "image/jxl"},
		{4, "ftypheic", "image/heic"}, {4, "ftypheix", "image/heic"}, {4, "ftypmif1", "image/heif"}, {4, "ftypavif", "image/avif"},
		{8, "WAVE", "audio/wav"}, {0, "ID3", "audio/mpeg"}, {0, "fLaC", "audio/flac"}, {0, "OggS", "audio/ogg"}, {4, "ftypM4A", "audio/mp4"},
		{8, "AIFF", "audio/aiff"}, {0, "#!AMR", "audio/amr"}, {0, "MThd", "audio/midi"}, {0, "\xff\xf1", "audio/aac"}, {0, "\xff\xf9", "audio/aac"},
		{0, "\xff\xfb", "audio/mpeg"}, {0, "\xff\xf3", "audio/mpeg"}, {0, "\xff\xf2", "audio/mpeg"}, {0, "\xff\xfa", "audio/mpeg"},
		{4, "ftypqt", "video/quicktime"}, {4, "ftyp3g", "video/3gpp"}, {4, "ftyp", "video/mp4"}, {0, "\x1a\x45\xdf\xa3", "video/webm"}, {8, "AVI ", "video/x-msvideo"},
		{0, "\x00\x00\x01\xba", "video/mpeg"}, {0, "\x00\x00\x01\xb3", "video/mpeg"}, {0, "FLV\x01", "video/x-flv"}, {0, "\x30\x26\xb2\x75\x8e\x66\xcf\x11", "video/x-ms-wmv"},
		{0, "%PDF-", "application/pdf"}, {0, "PK\x03\x04", "application/zip"}, {0, "\x1f\x8b", "application/gzip"},
		{0, "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "application/x-ole-storage"}, {0, "\x7fELF", "application/x-executable"},
	}
}

// Detect returns the media type of data; empty if it is neither known nor text.
func Detect(data []byte) string {
	for _, s := range signatures() {
		if !has(data, s.offset, s.bytes) {
			continue
		}
		if s.offset == 8 && !has(data, 0, "RIFF") && !has(data, 0, "FORM") {
			continue
		}
		return s.mime
	}
	switch {
	case IsText(data):
		return ofText(data)
	case has(data, 0, "BM") && len(data) > 26:
		return "image/bmp"
	}
	return ""
}

func has(data []byte, offset int, text string) bool {
	return len(data) >= offset+len(text) && string(data[offset:offset+len(text)]) == text
}

// IsText reports whether data begins as UTF-8 text without control characters. Empty data
// is not.
func IsText(data []byte) bool {
	head := data[:min(len(data), sniffSize)]
	for i, c := range head {
		if c < ' ' && c != '\t' && c != '\n' && c != '\r' && c != '\f' && c != '\x1b' {
			return false
		}
		if len(data) > sniffSize && len(head)-i < utf8.UTFMax && utf8.RuneStart(c) && !utf8.FullRune(head[i:]) {
			head = head[:i] // a character that is cut
			break
		}
	}
	return len(head) > 0 && utf8.Valid(head)
}

// ofText returns the type of text: an image, a page or plain.
func ofText(data []byte) string {
	head := strings.ToLower(string(bytes.TrimSpace(data[:min(len(data), sniffSize)])))
	switch {
	case strings.HasPrefix(head, "<svg"), strings.HasPrefix(head, "<?xml") && strings.Contains(head, "<svg"):
		return SVG
	case strings.HasPrefix(head, "<!doctype html"), strings.HasPrefix(head, "<html"):
		return HTML
	}
	return Text
}

// KindOf returns the kind of the media of a type: image, audio or video; file for
// documents and text; empty for an unknown type.
func KindOf(mime string) string {
	family, _, _ := strings.Cut(mime, "/")
	switch {
	case mime == "":
		return ""
	case family == "image" || family == "audio" || family == "video":
		return family
	}
	return "file"
}

// Check returns an error if data is known to be of another kind than an image, a sound or a
// film. Data of an unknown format may be one: the provider of the model decides. Data of the
// other kinds (file and bytes) is never wrong.
func Check(kind string, data []byte) error {
	if kind != "image" && kind != "audio" && kind != "video" {
		return nil
	}
	if len(data) == 0 {
		return fmt.Errorf("expected %s, but it is empty", noun(kind))
	}
	mime := Detect(data)
	switch {
	case KindOf(mime) == kind, mime == "", kind != "image" && isContainer(mime):
		return nil
	}
	return fmt.Errorf("expected %s, found %s", noun(kind), describe(mime, data))
}

// isContainer reports whether files of a type have sounds or films.
func isContainer(mime string) bool {
	switch mime {
	case "audio/ogg", "audio/mp4", "video/mp4", "video/webm", "video/3gpp", "video/x-ms-wmv", "video/mpeg":
		return true
	}
	return false
}

func noun(kind string) string {
	return map[string]string{"image": "an image", "audio": "a sound", "video": "a film"}[kind]
}

// describe describes data for an error.
func describe(mime string, data []byte) string {
	const shown = 40 // characters
	switch mime {
	case "application/pdf":
		return "a PDF document"
	case HTML:
		return "an HTML page"
	case Text:
		text := []rune(string(bytes.TrimSpace(data[:min(len(data), sniffSize)])))
		if len(text) > shown {
			return fmt.Sprintf("the text %q", string(text[:shown])+"…")
		}
		return fmt.Sprintf("the text %q", string(text))
	}
	if what := noun(KindOf(mime)); what != "" {
		return fmt.Sprintf("%s (%s)", what, mime)
	}
	return "a file of type " + mime
}

// Binary is the type of data of which nothing is known.
const Binary = "application/octet-stream"

// Of returns the media type of data that somebody declares to be of a type, which may be empty. The
// content decides: data of a known format has the type of that format. The declared type is used for
// data that has no known format, and where it only says more about it: text/csv of a text, the type
// of a document of an archive, or audio of a container of sounds and films.
func Of(declared string, data []byte) (string, error) {
	declared, err := parseType(declared)
	found := Detect(data)
	switch {
	case err != nil:
		return "", err
	case found == "" && declared == "":
		return Binary, nil
	case found == "" || refines(declared, found):
		return declared, nil
	}
	return found, nil
}

// refines reports whether a declared type says more about data than the type that was found.
func refines(declared, found string) bool {
	switch kind := KindOf(declared); {
	case kind == "audio":
		return KindOf(found) != kind && isContainer(found)
	case kind != "file" || found == "application/pdf" || declared == "application/pdf":
		return false
	case strings.HasPrefix(declared, "text/"):
		return strings.HasPrefix(found, "text/")
	}
	return KindOf(found) == "file" || found == SVG
}

// parseType returns a media type in lower case, without parameters; empty for a type that says nothing.
func parseType(text string) (string, error) {
	name, _, _ := strings.Cut(text, ";")
	name = strings.ToLower(strings.TrimSpace(name))
	if name == "" || name == Binary || name == "binary/octet-stream" {
		return "", nil
	}
	family, format, ok := strings.Cut(name, "/")
	if !ok || !isToken(family) || !isToken(format) {
		return "", fmt.Errorf("%q is not a media type such as image/png", text)
	}
	return name, nil
}

// isToken reports whether a text is a part of a media type.
func isToken(text string) bool {
	for _, c := range []byte(text) {
		if c <= ' ' || c >= 0x7f || strings.IndexByte(`()<>@,;:\"/[]?=`, c) >= 0 {
			return false
		}
	}
	return text != ""
}

// maxName is the longest path or address, in bytes.
const maxName = 4096

// MayBeFileName reports whether a text may be a path or an address: one line that is not
// longer than such names are.
func MayBeFileName(text string) bool {
	return len(text) <= maxName && strings.TrimSpace(text) != "" && !strings.ContainsAny(text, "\n\r\x00")
}

// IsFileName reports whether the text of a file is taken for the name of the file, and not
// for its content: an address, or one word that ends with an extension.
func IsFileName(text string) bool {
	if !MayBeFileName(text) || strings.ContainsAny(text, " \t\"'<>{}") {
		return false
	}
	if strings.Contains(text, "://") {
		return true
	}
	end := text[strings.LastIndexByte(text, '/')+1:]
	dot := strings.LastIndexByte(end, '.')
	const longest = 5
	extension := end[dot+1:]
	return dot > 0 && extension != "" && len(extension) <= longest && isExtension(extension)
}

// isExtension reports whether a text has only ASCII letters and digits, and a letter first.
func isExtension(text string) bool {
	for i, c := range strings.ToLower(text) {
		if (c < 'a' || c > 'z') && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return true
}
