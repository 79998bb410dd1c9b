package schemagen

import (
	"encoding/json"
	"fmt"
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

// docsOf returns the descriptions that a schema has of structs.
func docsOf(schema string, structs map[string]reflect.Type) (docs, error) {
	type described struct{ Description string }
	var read struct {
		Definitions map[string]struct {
			described
			Properties map[string]described
		}
	}
	if err := json.Unmarshal([]byte(schema), &read); err != nil {
		return nil, fmt.Errorf("parse the schema: %w", err)
	}
	found := docs{}
	for name, def := range read.Definitions {
		found[name] = def.Description
	}
	for name, t := range structs {
		def, known := read.Definitions[name]
		if found[name] == "" {
			found[name] = def.Properties["type"].Description
		}
		for _, f := range Fields(t) {
			if text := def.Properties[f.Key].Description; known && text != "" {
				found[f.Owner.Name()+"."+f.Name] = text
			}
		}
	}
	return found, nil
}

// lookup returns the description of a type or field for readers of YAML: without
// the Go name that the doc comment starts with. A struct of a part has it in the tag `doc`.
func (d docs) lookup(t reflect.Type, field string) string {
	if f, tagged := fieldOf(t, field); tagged {
		return f.Tag.Get("doc")
	}
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

// fieldOf returns the field of a struct with the tag `doc` of a key, and for no key that of the struct: an embedded one has it.
func fieldOf(t reflect.Type, name string) (reflect.StructField, bool) {
	if t.Kind() != reflect.Struct {
		return reflect.StructField{}, false
	}
	for i := range t.NumField() {
		if f := t.Field(i); f.Tag.Get("doc") != "" && (f.Name == name || name == "" && f.Anonymous) {
			return f, true
		}
	}
	return reflect.StructField{}, false
}
