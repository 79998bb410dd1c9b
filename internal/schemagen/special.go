package schemagen

import (
	"reflect"

	"github.com/invopop/jsonschema"

	"github.com/qtype-dev/qtype/spec"
)

// variable is the pattern of an environment variable, which may be used in any
// scalar.
const variable = `\$\{[^}]+\}`

// Patterns of scalars that are written as text.
const (
	typeName     = `[^\s\[\]?]+`
	variableType = `^(` + typeName + `|list\[` + typeName + `\])\??$|` + variable
	duration     = `^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$|` + variable
)

// listDepth is how deep lists may be nested in the pattern of a type: regular
// expressions cannot recurse.
const listDepth = 6

// nestedType returns the pattern of the type of a custom type's field: lists may be
// nested, and each level may be optional.
func nestedType() string {
	p := typeName + `\??`
	for range listDepth {
		p = `(` + typeName + `\??|list\[` + p + `\]\??)`
	}
	return `^` + p + `$|` + variable
}

// special returns the schema of a type of package spec with its own notation,
// instead of that of its struct; nil for other types.
func (g *generator) special(t reflect.Type) *jsonschema.Schema {
	switch t {
	case reflect.TypeFor[spec.Type]():
		return typeOfVariable()
	case reflect.TypeFor[spec.Secret]():
		return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{{Type: "string"}, refTo("SecretReference")}}
	case reflect.TypeFor[spec.Duration]():
		return pattern(duration, "expected a duration, such as 500ms, 30s or 2m")
	case reflect.TypeFor[spec.Thinking]():
		return thinking()
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
	case reflect.TypeFor[spec.Tokenizer]():
		return tokenizer()
	case reflect.TypeFor[spec.Approval]():
		if !g.isMapping {
			return refTo(defApproved)
		}
	case reflect.TypeFor[spec.StepItem]():
		return refTo(defStepItem)
	case reflect.TypeFor[spec.Document]():
		return refTo(defDocument)
	}
	return g.named(t)
}

// named returns a reference to the schema of a reference, a union or a struct; nil for other types.
func (g *generator) named(t reflect.Type) *jsonschema.Schema {
	if reflect.PointerTo(t).Implements(reflect.TypeFor[spec.Reference]()) {
		return refTo(defReference)
	}
	for _, u := range g.language.Unions() {
		if u.Type == t {
			return refTo(unionName(u))
		}
	}
	if t.Kind() == reflect.Struct {
		name := spec.DefinitionName(t)
		g.structs[name], g.described[name] = t, t
	}
	return nil
}

// pattern returns the schema of a text that matches re. message describes the
// pattern to users.
func pattern(re, message string) *jsonschema.Schema {
	return &jsonschema.Schema{Type: "string", Pattern: re, Extras: withMessage(message)}
}

// withMessage returns the keys that make yaml-language-server show a message instead of
// the expected pattern or type. Other tools ignore them.
func withMessage(message string) map[string]any {
	return map[string]any{"errorMessage": message, "patternErrorMessage": message}
}

// typeExpression returns the schema of a type expression. Editors propose the
// built-in types, which are its examples; other names may be custom types.
func typeExpression(re string) *jsonschema.Schema {
	s := pattern(re, "expected a type, such as text, int?, list[text] or a custom type")
	for _, name := range spec.BuiltInTypes() {
		s.Examples = append(s.Examples, name)
	}
	s.Examples = append(s.Examples, "list[text]", "text?")
	return s
}

// typeOfVariable returns the schema of a type expression without nesting, or of a
// list in its long form.
func typeOfVariable() *jsonschema.Schema {
	long := object("A list type in its long form.", "element_type", pattern(nestedType(), "expected a type"))
	return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{typeExpression(variableType), long}}
}

// reference returns the schema of a reference to an entity.
func reference() *jsonschema.Schema {
	ref := object("A reference by id.", "$ref", &jsonschema.Schema{Type: "string", Description: "The id of the entity."})
	id := &jsonschema.Schema{Type: "string", Extras: withMessage("expected the id of an entity that is declared elsewhere")}
	return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{id, ref}}
}

// expression returns the schema of an expression. A number or boolean is one, too.
func expression() *jsonschema.Schema {
	return &jsonschema.Schema{Extras: map[string]any{"type": []string{"string", "number", "boolean"}}}
}

// thinking returns the schema of a word or a number of tokens. YAML 1.1 reads off as false.
func thinking() *jsonschema.Schema {
	words := []any{false}
	for _, word := range spec.ThinkingWords() {
		words = append(words, string(word))
	}
	return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{{Enum: words}, {Type: "integer", Minimum: "1"},
		pattern(`^\$\{`, "expected off, low, medium, high, max or a number of tokens")}}
}

// storeRef returns the schema of a reference to a store, or its URL.
func storeRef() *jsonschema.Schema {
	s := reference()
	s.AnyOf[0].Extras = withMessage("expected the id of a store, or a URL")
	return s
}

// approved returns the schema of the id of a tool, or of an Approval.
func (g *generator) approved() *jsonschema.Schema {
	g.isMapping = true
	g.addStruct(reflect.TypeFor[spec.Approval]())
	g.isMapping = false
	return &jsonschema.Schema{AnyOf: append(reference().AnyOf, refTo(reflect.TypeFor[spec.Approval]().Name()))}
}

// pathRef returns the schema of a constant path, or of a variable that contains
// one.
func pathRef() *jsonschema.Schema {
	uri := object("A constant path.", "uri", &jsonschema.Schema{Type: "string", Description: "The path or URL."})
	return &jsonschema.Schema{AnyOf: append(reference().AnyOf, uri)}
}

// object returns the schema of a mapping with exactly one key.
func object(description, key string, value *jsonschema.Schema) *jsonschema.Schema {
	s := &jsonschema.Schema{Type: "object", Description: description, Required: []string{key},
		Properties: jsonschema.NewProperties(), AdditionalProperties: jsonschema.FalseSchema}
	s.Properties.Set(key, value)
	return s
}

// stepItem returns the schema of a step, or of a reference to a step of another
// flow.
func stepItem() *jsonschema.Schema {
	ref := object("A step of another flow.", "$ref", &jsonschema.Schema{Type: "string", Description: "The id of the step."})
	return &jsonschema.Schema{
		Type:        "object",
		Description: "One step of the flow: selected by type, or {$ref: id} for a step of another flow.",
		If:          &jsonschema.Schema{Type: "object", Required: []string{"$ref"}},
		Then:        ref,
		Else:        refTo("Step"),
	}
}

// document returns the schema of an application or of one of the five lists. The
// first element decides which list it is.
func (g *generator) document() *jsonschema.Schema {
	list := func(name string) *jsonschema.Schema {
		return &jsonschema.Schema{Type: "array", Items: refTo(name)}
	}
	first := func(s *jsonschema.Schema) *jsonschema.Schema {
		// draft-07 describes the first item by a list with one schema.
		return &jsonschema.Schema{Extras: map[string]any{"minItems": 1, "items": []*jsonschema.Schema{s}}}
	}
	kinds := list("Variable")
	for _, c := range []struct {
		when *jsonschema.Schema
		name string
	}{
		{first(g.untagged("Auth")), "Auth"},
		{first(g.tagged("Auth")), "Auth"},
		{first(g.tagged("Tool")), "Tool"},
		{first(g.tagged("ModelEntity")), "ModelEntity"},
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

// unionName returns the name of a union's definition: that of the Go interface.
// Editors show it as what is expected.
func unionName(u spec.Union) string { return u.Type.Name() }

// unionOf returns the union with a definition name.
func (g *generator) unionOf(name string) spec.Union {
	for _, u := range g.language.Unions() {
		if unionName(u) == name {
			return u
		}
	}
	return spec.Union{}
}

// tokenizer returns the schema of the name of an encoding or the path of a file.
func tokenizer() *jsonschema.Schema {
	var names []any
	for _, name := range spec.Encodings() {
		names = append(names, name)
	}
	return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{{Type: "string", Enum: names},
		pattern(`[/\\]|\.json$|\.model$|^\$\{`, "expected an encoding, such as o200k_base, or the path of a tokenizer.json or .model file")}}
}
