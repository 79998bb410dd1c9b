package schemagen

import (
	"reflect"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/spec"
)

// Declarations are the doc comments of package spec, for other generators.
type Declarations struct{ docs docs }

// ReadDeclarations reads the doc comments of the package in dir.
func ReadDeclarations(dir string) (Declarations, error) {
	d, err := readDocs(dir)
	return Declarations{d}, err
}

// Doc returns the description of a struct or, if field is not empty, of one of its
// fields, without the Go name that the comment starts with.
func (d Declarations) Doc(t reflect.Type, field string) string { return d.docs.lookup(t, field) }

// Field is a field of a struct that is a key in a document.
type Field struct {
	reflect.StructField
	Owner    reflect.Type // the struct that declares it: an embedded one, or the struct itself
	Key      string       // its key in a document
	Required bool         // it must be present
	Rules    string       // rules of package validator on its value
}

// Fields returns the keys of a struct in the order of its fields, with those of
// embedded structs in their place.
func Fields(t reflect.Type) []Field {
	var fields []Field
	for _, f := range fieldsOf(t) {
		key := f.Tag.Get("yaml")
		fields = append(fields, Field{
			StructField: f, Owner: ownerOf(t, key), Key: key, Rules: new(spec.Language).ValidateTag(f),
			Required: f.Tag.Get("jsonschema") == "required" && !isOptional(t, key),
		})
	}
	return fields
}

// ownerOf returns the struct that declares a key: t or one that it embeds.
func ownerOf(t reflect.Type, key string) reflect.Type {
	for i := range t.NumField() {
		f := t.Field(i)
		if !f.Anonymous && f.Tag.Get("yaml") == key {
			return t
		}
		if f.Anonymous && f.Type.Kind() == reflect.Struct {
			if owner := ownerOf(f.Type, key); owner != nil {
				return owner
			}
		}
	}
	return nil
}

// isOptional reports whether t makes a key of an embedded struct optional.
func isOptional(t reflect.Type, key string) bool {
	for i := range t.NumField() {
		if f := t.Field(i); f.Anonymous && contains(f.Tag.Get("optional"), key) {
			return true
		}
	}
	return false
}

// contains reports whether a comma-separated list has an item.
func contains(list, item string) bool {
	return slices.Contains(strings.Split(list, ","), item)
}
