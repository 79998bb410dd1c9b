// Package valuetest makes types and values for tests of values and steps. The package
// is for tests only.
package valuetest

import (
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
)

// Type parses a type expression and links it to the custom types that it names.
func Type(t testing.TB, text string, customs ...*spec.CustomType) spec.Type {
	t.Helper()
	parsed, err := spec.ParseType(text)
	if err != nil {
		t.Fatal(err)
	}
	link(&parsed, customs)
	return parsed
}

func link(t *spec.Type, customs []*spec.CustomType) {
	if t.Elem != nil {
		link(t.Elem, customs)
	}
	for _, c := range customs {
		if t.Name == c.ID {
			t.Custom = c
		}
	}
}

// Custom returns a type with properties of the form "name: type", which may use the
// type itself and the known types.
func Custom(t testing.TB, id string, props []string, known ...*spec.CustomType) *spec.CustomType {
	t.Helper()
	c := &spec.CustomType{ID: id}
	for _, p := range props {
		name, text, _ := strings.Cut(p, ": ")
		c.Properties = append(c.Properties, spec.Property{Name: name, Type: Type(t, text, append(known, c)...)})
	}
	return c
}

// Variables returns variables declared as "name: type".
func Variables(t testing.TB, customs []*spec.CustomType, decls ...string) []*spec.Variable {
	t.Helper()
	var all []*spec.Variable
	for _, d := range decls {
		id, text, _ := strings.Cut(d, ": ")
		all = append(all, &spec.Variable{ID: id, Type: Type(t, text, customs...)})
	}
	return all
}

// Parse parses a JSON text with value.Parse.
func Parse(t testing.TB, text string) any {
	t.Helper()
	v, err := value.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return v
}
