package schemagen

import (
	"path/filepath"
	"reflect"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/invopop/jsonschema"

	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/spec"
)

// docs are the doc comments of package spec by "Type" or "Type.Field".
type docs map[string]string

// readDocs reads the doc comments of the package in dir.
func readDocs(dir string) (docs, error) {
	var r jsonschema.Reflector
	if err := r.AddGoComments("", dir, jsonschema.WithFullComment()); err != nil {
		return nil, err
	}
	prefix := filepath.ToSlash(filepath.Clean(dir)) + "."
	found := docs{}
	for name, text := range r.CommentMap {
		if short, ok := strings.CutPrefix(name, prefix); ok {
			found[short] = text
		}
	}
	t, policies := reflect.TypeFor[spec.Memory](), spec.PolicyDocs()
	for i := range t.NumField() {
		key, _, _ := strings.Cut(t.Field(i).Tag.Get("yaml"), ",")
		if text := policies[key]; text != "" {
			found[t.Name()+"."+t.Field(i).Name] = text
		}
	}
	return found, nil
}

// lookup returns the description of a type or field for readers of YAML: without
// the Go name that the doc comment starts with.
func (d docs) lookup(t reflect.Type, field string) string {
	name, subject := t.Name(), t.Name()
	if field != "" {
		name, subject = name+"."+field, field
	}
	text := textfmt.OneLine(d[name])
	rest, ok := strings.CutPrefix(text, subject+" ")
	if !ok {
		return text
	}
	for _, verb := range []string{"is ", "are "} {
		rest = strings.TrimPrefix(rest, verb)
	}
	first, size := utf8.DecodeRuneInString(rest)
	return string(unicode.ToUpper(first)) + rest[size:]
}
