package mediatype

import (
	"fmt"
	"strings"
)

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
