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
	schema   *input.Node // nil for a property of any type
	required bool
}

// maxDepth is the maximum nesting of lists.
const maxDepth = 20

// choiceKeys are the keys of a schema with alternatives.
var choiceKeys = []string{"anyOf", "oneOf"}

// fields returns the properties of an object's schema, with those of allOf. If the object
// has properties, those of its alternatives are optional ones.
func (c *converter) fields(schema *input.Node) []field {
	var all, other []field
	c.collect(schema, &all, map[*input.Node]bool{})
	if len(all) == 0 {
		return nil
	}
	schema = c.resolve(schema)
	for _, key := range choiceKeys {
		for _, part := range items(schema.Get(key)) {
			var own []field
			c.collect(part, &own, map[*input.Node]bool{})
			other = addOptional(other, own)
		}
	}
	for _, f := range other {
		if !slices.ContainsFunc(all, func(o field) bool { return o.name == f.name }) {
			all = append(all, f)
		}
	}
	return all
}

// addOptional adds the properties of an alternative; one that another alternative has too
// can have any value.
func addOptional(all, own []field) []field {
	for _, f := range own {
		f.required = false
		if i := slices.IndexFunc(all, func(o field) bool { return o.name == f.name }); i >= 0 {
			all[i].schema = nil
			continue
		}
		all = append(all, f)
	}
	return all
}

// collect adds the properties of a schema and of its parts, each part once: parts that refer to the
// same parts have exponentially many paths, or endless ones.
func (c *converter) collect(schema *input.Node, all *[]field, seen map[*input.Node]bool) {
	schema = c.resolve(schema)
	if schema == nil || seen[schema] {
		return
	}
	seen[schema] = true
	for _, part := range items(schema.Get("allOf")) {
		c.collect(part, all, seen)
	}
	required := func(name string) bool {
		return slices.ContainsFunc(items(schema.Get("required")), func(n *input.Node) bool { return n.Text == name })
	}
	for i := range *all {
		(*all)[i].required = (*all)[i].required || required((*all)[i].name)
	}
	for _, p := range pairs(schema.Get("properties")) {
		f := field{p.Key, p.Value, required(p.Key)}
		if i := slices.IndexFunc(*all, func(other field) bool { return other.name == p.Key }); i >= 0 {
			f.required = f.required || (*all)[i].required
			(*all)[i] = f
			continue
		}
		*all = append(*all, f)
	}
}

// typeOf returns the type of a schema's values. name is used for a custom type that has
// no other.
func (c *converter) typeOf(schema *input.Node, name string) *document.Type {
	schema = c.resolve(schema)
	if schema == nil {
		return &document.Type{Kind: document.Any}
	}
	if t := c.types[schema]; t != nil {
		return t
	}
	t := &document.Type{Kind: document.Any}
	c.types[schema] = t // ends the recursion of a schema that contains itself
	c.read(t, schema, name)
	return t
}

// read completes a type from its schema.
func (c *converter) read(t *document.Type, schema *input.Node, name string) {
	kinds, nullable := kindsOf(schema)
	nullable = nullable || isTrue(schema.Get("nullable")) || isTrue(schema.Get("x-nullable"))
	defer func() { t.Optional = t.Optional || nullable }()
	if len(kinds) > 1 {
		t.Kind = document.Any
		if len(kinds) == 2 && slices.Contains(kinds, "integer") && slices.Contains(kinds, "number") {
			t.Kind = document.Float
		}
		return
	}
	kind := ""
	if len(kinds) == 1 {
		kind = kinds[0]
	}
	switch kind {
	case "integer":
		t.Kind = document.Int
	case "number":
		t.Kind = document.Float
	case "boolean":
		t.Kind = document.Bool
	case "string", "file":
		t.Kind = textKind(schema.Get("format").Scalar())
	case "array":
		t.Kind, t.Elem = document.List, c.typeOf(schema.Get("items"), name+" item")
		if isEndless(t) {
			t.Kind, t.Elem = document.Any, nil
		}
	default:
		c.readObject(t, schema, name)
	}
}

// textKind returns the kind of a string with a format.
func textKind(format string) document.Kind {
	switch format {
	case "date":
		return document.Date
	case "date-time":
		return document.DateTime
	}
	return document.Text
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

// kindsOf returns the types of a schema, and whether null is another. Without the key type
// they follow from the constants and from the other keys.
func kindsOf(schema *input.Node) (kinds []string, nullable bool) {
	add := func(kind string) {
		if kind == "null" {
			nullable = true
		} else if kind != "" && !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	of := schema.Get("type")
	add(of.Scalar())
	for _, item := range items(of) {
		add(item.Text)
	}
	for _, item := range slices.Concat(items(schema.Get("enum")), nullConstant(schema)) {
		if item.Kind == input.Null {
			nullable = true
		}
	}
	if len(kinds) > 0 || nullable && of != nil {
		return kinds, nullable
	}
	constants := slices.Clone(items(schema.Get("enum")))
	if v := schema.Get("const"); v != nil {
		constants = append(constants, v)
	}
	for _, v := range constants {
		add(map[input.Kind]string{input.Null: "null", input.Bool: "boolean", input.Int: "integer", input.Float: "number", input.Text: "string", input.List: "array", input.Map: "object"}[v.Kind])
	}
	switch {
	case len(constants) > 0:
	case schema.Get("items") != nil:
		add("array")
	case schema.Get("pattern") != nil || schema.Get("maxLength") != nil || schema.Get("minLength") != nil:
		add("string")
	}
	return kinds, nullable
}

// nullConstant returns the constant null of a schema, if it has one.
func nullConstant(schema *input.Node) []*input.Node {
	for _, p := range schema.Pairs { // Get returns no null
		if p.Key == "const" && p.Value.Kind == input.Null {
			return []*input.Node{p.Value}
		}
	}
	return nil
}

// isNull reports whether null is the only value of a schema.
func (c *converter) isNull(schema *input.Node) bool {
	schema = c.resolve(schema)
	if schema == nil {
		return false
	}
	kinds, nullable := kindsOf(schema)
	return nullable && (len(kinds) == 0 && schema.Get("anyOf") == nil && schema.Get("oneOf") == nil && schema.Get("properties") == nil ||
		len(items(schema.Get("enum"))) == 1)
}

// readObject completes the type of an object, or of a choice. An object with unknown
// properties, and a choice of different types, can be any value.
func (c *converter) readObject(t *document.Type, schema *input.Node, name string) {
	if len(c.fields(schema)) > 0 {
		c.readRecord(t, schema, name)
		return
	}
	var choices []*input.Node
	for _, key := range choiceKeys {
		for _, item := range items(schema.Get(key)) {
			if c.isNull(item) {
				t.Optional = true
				continue
			}
			choices = append(choices, item)
		}
	}
	if parts := items(schema.Get("allOf")); len(parts) == 1 && len(choices) == 0 {
		choices = parts
	}
	if len(choices) == 0 {
		t.Kind = document.Any
		return
	}
	var joined *document.Type
	for _, item := range choices {
		joined = common(joined, c.typeOf(item, name))
	}
	optional := t.Optional
	*t = *joined
	t.Optional = t.Optional || optional
}

// common returns the type of values of two types; any value if they differ.
func common(a, b *document.Type) *document.Type {
	isText := func(t *document.Type) bool {
		return t.Kind == document.Text || t.Kind == document.Date || t.Kind == document.DateTime
	}
	isNumber := func(t *document.Type) bool { return t.Kind == document.Int || t.Kind == document.Float }
	switch {
	case a == nil:
		return b
	case a.BareText() == b.BareText() && a.Kind == b.Kind:
		c := *a
		c.Optional = a.Optional || b.Optional
		return &c
	case isText(a) && isText(b):
		return &document.Type{Kind: document.Text, Optional: a.Optional || b.Optional}
	case isNumber(a) && isNumber(b):
		return &document.Type{Kind: document.Float, Optional: a.Optional || b.Optional}
	}
	return &document.Type{Kind: document.Any, Optional: a.Optional || b.Optional}
}

// readRecord completes the type of an object with properties.
func (c *converter) readRecord(t *document.Type, schema *input.Node, name string) {
	id := c.typeIDs[schema]
	if id == "" {
		id = c.ids.New(pascal(name), "Record")
	}
	t.Kind, t.Name, t.Description = document.Record, id, oneLine(schema.Get("description").Scalar())
	c.app.CustomTypes = append(c.app.CustomTypes, t)
	for _, f := range c.fields(schema) {
		if f.name == "" || strings.HasPrefix(f.name, "_") {
			c.note(input.Unsupported, f.schema, "The property %q of %s is left out: a property cannot have this name.", f.name, t.Name)
			continue
		}
		of := *c.typeOf(f.schema, id+" "+f.name)
		of.Optional = of.Optional || !f.required
		t.Fields = append(t.Fields, &document.Field{Name: f.name, Type: &of})
	}
}

// values returns the constants of a schema for the description of a tool, none if there
// are many.
func (c *converter) values(schema *input.Node) []string {
	const most, longest = 20, 200
	schema = c.resolve(schema)
	if kinds, _ := kindsOfAny(schema); slices.Equal(kinds, []string{"array"}) {
		schema = c.resolve(schema.Get("items"))
	}
	var values []string
	for _, v := range items(schema.Get("enum")) {
		if v.Kind != input.Null && v.Text != "" {
			values = append(values, oneLine(v.Text))
		}
	}
	if len(values) > most || len(strings.Join(values, ", ")) > longest {
		return nil
	}
	return values
}

// kindsOfAny is kindsOf for a schema that may be absent.
func kindsOfAny(schema *input.Node) (kinds []string, nullable bool) {
	if schema == nil {
		return nil, false
	}
	return kindsOf(schema)
}

// pascal joins the words of a name, each with a capital letter.
func pascal(name string) string {
	var b strings.Builder
	for word := range strings.FieldsFuncSeq(document.Slug(name), func(r rune) bool { return strings.ContainsRune(" _-./[]", r) }) {
		b.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return b.String()
}
