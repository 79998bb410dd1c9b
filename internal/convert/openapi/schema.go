package openapi

import (
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/convert/document"
	"github.com/qtype-dev/qtype/internal/convert/input"
)

// field is a property of an object.
type field struct {
	name     string
	schema   *input.Node
	required bool
}

// maxDepth is the maximum nesting of allOf, and of lists.
const maxDepth = 20

// fields returns the properties of an object's schema, with those of allOf.
func (c *converter) fields(schema *input.Node) []field {
	var all []field
	c.collect(schema, &all, maxDepth)
	return all
}

func (c *converter) collect(schema *input.Node, all *[]field, depth int) {
	schema = c.resolve(schema)
	if schema == nil || depth == 0 {
		return
	}
	for _, part := range items(schema.Get("allOf")) {
		c.collect(part, all, depth-1)
	}
	for _, p := range pairs(schema.Get("properties")) {
		required := slices.ContainsFunc(items(schema.Get("required")), func(n *input.Node) bool { return n.Text == p.Key })
		f := field{p.Key, p.Value, required}
		if i := slices.IndexFunc(*all, func(other field) bool { return other.name == p.Key }); i >= 0 {
			(*all)[i] = f
			continue
		}
		*all = append(*all, f)
	}
}

// typeOf returns the type of a schema's values. name is used for a custom type that has
// no other.
func (c *converter) typeOf(schema *input.Node, name string) *document.Type {
	if ref := schema.Get("$ref").Scalar(); ref != "" {
		name = ref[strings.LastIndexByte(ref, '/')+1:]
	}
	schema = c.resolve(schema)
	if schema == nil {
		return &document.Type{Kind: document.Text}
	}
	if t := c.types[schema]; t != nil {
		return t
	}
	t := &document.Type{Kind: document.Text}
	c.types[schema] = t // ends the recursion of a schema that contains itself
	c.read(t, schema, name)
	return t
}

// read completes a type from its schema.
func (c *converter) read(t *document.Type, schema *input.Node, name string) {
	kind, nullable := typeName(schema)
	t.Optional = nullable || schema.Get("nullable").Scalar() == "true"
	switch kind {
	case "integer":
		t.Kind = document.Int
	case "number":
		t.Kind = document.Float
	case "boolean":
		t.Kind = document.Bool
	case "string":
		switch schema.Get("format").Scalar() {
		case "date":
			t.Kind = document.Date
		case "date-time":
			t.Kind = document.DateTime
		}
	case "array":
		t.Kind, t.Elem = document.List, c.typeOf(schema.Get("items"), name+" item")
		if isEndless(t) {
			c.note(input.Unsupported, schema, "%s is a list that contains itself; it is a text.", name)
			t.Kind, t.Elem = document.Text, nil
		}
	default:
		c.readObject(t, schema, name)
	}
}

// isEndless reports whether a list contains itself, not through an object.
func isEndless(t *document.Type) bool {
	for range maxDepth {
		if t.Kind != document.List || t.Elem == nil {
			return false
		}
		t = t.Elem
	}
	return true
}

// typeName returns the type of a schema and whether null is another.
func typeName(schema *input.Node) (name string, nullable bool) {
	n := schema.Get("type")
	for _, item := range items(n) {
		if item.Text == "null" {
			nullable = true
		} else if name == "" {
			name = item.Text
		}
	}
	if name == "" {
		name = n.Scalar()
	}
	return name, nullable
}

// readObject completes the type of an object, or of a choice that has one alternative
// other than null. Anything else is a text.
func (c *converter) readObject(t *document.Type, schema *input.Node, name string) {
	var choices []*input.Node
	for _, key := range []string{"anyOf", "oneOf"} {
		for _, item := range items(schema.Get(key)) {
			if kind, _ := typeName(item); kind == "null" {
				t.Optional = true
				continue
			}
			choices = append(choices, item)
		}
	}
	fields := c.fields(schema)
	switch {
	case len(choices) == 1 && len(fields) == 0:
		optional := t.Optional
		*t = *c.typeOf(choices[0], name)
		t.Optional = t.Optional || optional
	case len(fields) > 0:
		t.Kind, t.Name, t.Description = document.Record, c.ids.New(pascal(name), "Record"), oneLine(schema.Get("description").Scalar())
		c.app.CustomTypes = append(c.app.CustomTypes, t)
		for _, f := range fields {
			if f.name == "" || strings.HasPrefix(f.name, "_") {
				c.note(input.Unsupported, f.schema, "The property %q of %s is left out: a property cannot have this name.", f.name, t.Name)
				continue
			}
			of := *c.typeOf(f.schema, name+" "+f.name)
			of.Optional = of.Optional || !f.required
			t.Fields = append(t.Fields, &document.Field{Name: f.name, Type: &of})
		}
	case len(choices) > 1:
		c.note(input.Unsupported, schema, "%s has several possible types; it is a text.", name)
	}
}

// pascal joins the words of a name, each with a capital letter.
func pascal(name string) string {
	var b strings.Builder
	for word := range strings.FieldsFuncSeq(document.Slug(name), func(r rune) bool { return strings.ContainsRune(" _-./[]", r) }) {
		b.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return b.String()
}
