package schemagen

import (
	"reflect"

	"github.com/invopop/jsonschema"

	"github.com/qtype-dev/qtype/spec"
)

// variable is the pattern of an environment variable's use; it may stand where
// any scalar may.
const variable = `\$\{[^}]+\}`

// Patterns of scalars that a document writes as text.
const (
	typeName     = `[^\s\[\]?]+`
	variableType = `^(` + typeName + `|list\[` + typeName + `\])\??$|` + variable
	duration     = `^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$|` + variable
)

// listDepth is how deep lists of lists may go in the pattern of a type; a regular
// expression has to stop somewhere, and nobody has gone further.
const listDepth = 6

// nestedType is the pattern of a custom type's field: lists may nest and ? may
// stand at every level.
func nestedType() string {
	p := typeName + `\??`
	for range listDepth {
		p = `(` + typeName + `\??|list\[` + p + `\]\??)`
	}
	return `^` + p + `$|` + variable
}

// special gives the types of package spec that are written otherwise than their
// structs look; nil for all others.
func (g *generator) special(t reflect.Type) *jsonschema.Schema {
	switch t {
	case reflect.TypeFor[spec.Type]():
		return typeOfVariable()
	case reflect.TypeFor[spec.Secret]():
		return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{{Type: "string"}, refTo("SecretReference")}}
	case reflect.TypeFor[spec.Duration]():
		return pattern(duration, "a length of time is expected, such as 500ms, 30s or 2m")
	case reflect.TypeFor[spec.Expression]():
		return expression()
	case reflect.TypeFor[spec.Assignments]():
		return &jsonschema.Schema{Type: "object", AdditionalProperties: expression()}
	case reflect.TypeFor[spec.StoreRef]():
		return storeRef()
	case reflect.TypeFor[spec.Bindings]():
		return &jsonschema.Schema{Type: "object", AdditionalProperties: refTo(defReference)}
	case reflect.TypeFor[spec.Properties]():
		return &jsonschema.Schema{Type: "object", AdditionalProperties: typeExpression(nestedType())}
	case reflect.TypeFor[spec.PathRef]():
		return pathRef()
	case reflect.TypeFor[spec.StepItem]():
		return refTo(defStepItem)
	case reflect.TypeFor[spec.Document]():
		return refTo(defDocument)
	}
	if reflect.PointerTo(t).Implements(reflect.TypeFor[spec.Reference]()) {
		return refTo(defReference)
	}
	for _, u := range spec.Unions() {
		if u.Type == t {
			return refTo(unionName(u))
		}
	}
	if t.Kind() == reflect.Struct && t.PkgPath() == reflect.TypeFor[spec.Application]().PkgPath() {
		g.structs[t.Name()] = t
	}
	return nil
}

// pattern is a text of a certain form; message says in words which.
func pattern(re, message string) *jsonschema.Schema {
	return &jsonschema.Schema{Type: "string", Pattern: re, Extras: says(message)}
}

// says makes yaml-language-server give a message of ours instead of the pattern
// or the type that was wanted. Other readers of the schema ignore the keys.
func says(message string) map[string]any {
	return map[string]any{"errorMessage": message, "patternErrorMessage": message}
}

// typeExpression is the type of a custom type's field. The built-in types are its
// examples, which editors offer; other names may be types of the document's own.
func typeExpression(re string) *jsonschema.Schema {
	s := pattern(re, "a type is expected, such as text, int?, list[text] or a type of the document")
	for _, name := range append(spec.Primitives(), spec.DomainTypes()...) {
		s.Examples = append(s.Examples, name)
	}
	s.Examples = append(s.Examples, "list[text]", "text?")
	return s
}

// typeOfVariable is a type expression without nesting, or a list in its long form.
func typeOfVariable() *jsonschema.Schema {
	long := object("A list type in its long form.", "element_type", pattern(nestedType(), "a type is expected"))
	return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{typeExpression(variableType), long}}
}

// reference names an entity by its id.
func reference() *jsonschema.Schema {
	ref := object("A reference by id.", "$ref", &jsonschema.Schema{Type: "string", Description: "The id of the entity."})
	id := &jsonschema.Schema{Type: "string", Extras: says("an id is expected: what it names is declared elsewhere")}
	return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{id, ref}}
}

// expression is a formula; a number or a truth value alone is one too.
func expression() *jsonschema.Schema {
	return &jsonschema.Schema{Extras: map[string]any{"type": []string{"string", "number", "boolean"}}}
}

// storeRef names a declared store, or is the URL of one.
func storeRef() *jsonschema.Schema {
	s := reference()
	s.AnyOf[0].Extras = says("the id of a store or a URL is expected")
	return s
}

// pathRef is a constant path, or a variable that holds one.
func pathRef() *jsonschema.Schema {
	uri := object("A constant path.", "uri", &jsonschema.Schema{Type: "string", Description: "The path or URL."})
	return &jsonschema.Schema{AnyOf: append(reference().AnyOf, uri)}
}

// object is a mapping that has exactly one key.
func object(description, key string, value *jsonschema.Schema) *jsonschema.Schema {
	s := &jsonschema.Schema{Type: "object", Description: description, Required: []string{key},
		Properties: jsonschema.NewProperties(), AdditionalProperties: jsonschema.FalseSchema}
	s.Properties.Set(key, value)
	return s
}

// stepItem is a step, or a reference to one that is written elsewhere.
func stepItem() *jsonschema.Schema {
	ref := object("A step that is written elsewhere.", "$ref", &jsonschema.Schema{Type: "string", Description: "The id of the step."})
	return &jsonschema.Schema{
		Type:        "object",
		Description: "One step of the flow: chosen by type, or {$ref: id} for a step of another flow.",
		If:          &jsonschema.Schema{Type: "object", Required: []string{"$ref"}},
		Then:        ref,
		Else:        refTo("Step"),
	}
}

// document is an application or one of the five lists. The first element tells
// which list it is (reference language.md 2).
func document() *jsonschema.Schema {
	list := func(name string) *jsonschema.Schema {
		return &jsonschema.Schema{Type: "array", Items: refTo(name)}
	}
	first := func(s *jsonschema.Schema) *jsonschema.Schema {
		// draft-07 writes the first item's schema as a one-element list.
		return &jsonschema.Schema{Extras: map[string]any{"minItems": 1, "items": []*jsonschema.Schema{s}}}
	}
	kinds := list("Variable")
	for _, c := range []struct {
		when *jsonschema.Schema
		name string
	}{
		{first(untagged("Auth")), "Auth"},
		{first(tagged("Auth")), "Auth"},
		{first(tagged("Tool")), "Tool"},
		{first(tagged("ModelEntity")), "ModelEntity"},
		{first(&jsonschema.Schema{Type: "object", Required: []string{"properties"}}), "CustomType"},
	} {
		kinds = &jsonschema.Schema{If: c.when, Then: list(c.name), Else: kinds}
	}
	return &jsonschema.Schema{
		If:   &jsonschema.Schema{Type: "array"},
		Then: kinds,
		Else: refTo("Application"),
	}
}

// unionName is the definition's name: that of the Go interface, which editors
// show as the name of what is expected.
func unionName(u spec.Union) string { return u.Type.Name() }

// unionOf finds a union by the name of its definition.
func unionOf(name string) spec.Union {
	for _, u := range spec.Unions() {
		if unionName(u) == name {
			return u
		}
	}
	return spec.Union{}
}
