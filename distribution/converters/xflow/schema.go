package xflow

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/convert/document"
	"github.com/qtype-dev/qtype/internal/convert/input"
)

// schema converts JSON schemas to types.
type schema struct {
	*input.Report
	what  string      // what the schema describes, for messages
	dates bool        // reads date formats as dates; expressions need strings
	root  *input.Node // the whole schema, which references point into
	open  []*input.Node
	notes []string
}

// unwrapped removes {schema: …} around a schema.
func unwrapped(n *input.Node) *input.Node {
	if inner := n.Get("schema"); inner != nil && inner.Kind == input.Map && n.Get("type") == nil && n.Get("properties") == nil {
		return inner
	}
	return n
}

// unwrappedFile returns the file name that is used in place of a schema, nil if
// there is none.
func unwrappedFile(n *input.Node) *input.Node {
	if n != nil && n.Kind == input.Map && len(n.Pairs) == 1 && n.Pairs[0].Key == "schema" {
		n = n.Pairs[0].Value
	}
	if n != nil && n.Kind == input.Text {
		return n
	}
	return nil
}

// limits returns the keywords that restrict values. A type does not contain them;
// the description states them in words for the model.
func limits() []string {
	return []string{"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength", "pattern",
		"minItems", "maxItems", "uniqueItems", "const", "default", "examples"}
}

// shape returns the type of a schema at a path, which is used in notes.
func (s *schema) shape(n *input.Node, path string) *document.Type {
	if n.Kind != input.Map {
		s.Malformed(n, "%s: a JSON schema must be a mapping, not %s", s.what, n.Describe())
		return &document.Type{Declared: true}
	}
	if s.root == nil {
		s.root = n
	}
	depth := len(s.open)
	defer func() { s.open = s.open[:depth] }()
	if n = s.combined(n); n == nil {
		return &document.Type{Kind: document.Text, Declared: true}
	}
	s.checkKeys(n, path)
	names, nullable := s.types(n)
	made := &document.Type{Declared: true, Optional: nullable}
	name := ""
	if len(names) == 1 {
		name = names[0]
	}
	switch {
	case name == "string":
		made.Kind = s.stringSort(n, path)
	case name == "integer":
		made.Kind = document.Int
	case name == "number", len(names) == 2 && slices.Contains(names, "integer") && slices.Contains(names, "number"):
		made.Kind = document.Float
	case name == "boolean":
		made.Kind = document.Bool
	case name == "array":
		s.array(n, path, made)
	case name == "object" && n.Get("properties") != nil:
		s.object(n, path, made)
	case name == "object":
		s.Unsupported(n, "%s: %s is an object of arbitrary fields, which has no type; using text", s.what, cmp.Or(path, "the value"))
		made.Kind = document.Text
	default:
		s.Unsupported(n, "%s: %s has no single type; using text", s.what, cmp.Or(path, "the value"))
		made.Kind = document.Text
	}
	s.describe(n, path)
	return made
}

// types returns the types that a schema names, without null.
func (s *schema) types(n *input.Node) (names []string, nullable bool) {
	t := n.Get("type")
	var all []*input.Node
	switch {
	case t == nil && n.Get("properties") != nil:
		return []string{"object"}, false
	case t == nil && n.Get("items") != nil:
		return []string{"array"}, false
	case t == nil && n.Get("enum") != nil:
		return s.typesOf(n.Get("enum").Elements())
	case t == nil && n.Get("const") != nil:
		return s.typesOf([]*input.Node{n.Get("const")})
	case t == nil:
		return nil, false
	case t.Kind == input.List:
		all = t.Elements()
	default:
		all = []*input.Node{t}
	}
	known := []string{"string", "integer", "number", "boolean", "array", "object", "null"}
	for _, one := range all {
		switch {
		case one.Kind == input.Text && one.Text == "null", one.Kind == input.Null:
			nullable = true
		case one.Kind != input.Text || !slices.Contains(known, one.Text):
			s.Add(input.Malformed.At(one.Mark(), "%s: %s is not a type of JSON schemas", s.what, one.Describe()).WithNearest(one.Text, known))
		default:
			names = append(names, one.Text)
		}
	}
	if v := n.Get("nullable"); v != nil && s.Bool(n, "nullable") {
		nullable = true
	}
	return names, nullable
}

func (s *schema) typesOf(values []*input.Node) (names []string, nullable bool) {
	for _, v := range values {
		name := [...]string{"", "boolean", "integer", "number", "string", "", ""}[v.Kind]
		switch {
		case v.Kind == input.Null:
			nullable = true
		case !slices.Contains(names, name):
			names = append(names, name)
		}
	}
	return names, nullable
}

// stringSort returns the kind of a string by its format.
func (s *schema) stringSort(n *input.Node, path string) document.Kind {
	format := s.Text(n, "format")
	switch {
	case format == "date" && s.dates:
		return document.Date
	case format == "date-time" && s.dates:
		return document.DateTime
	case format != "":
		s.notes = append(s.notes, path+" has the format "+format)
	}
	return document.Text
}

func (s *schema) array(n *input.Node, path string, to *document.Type) {
	to.Kind = document.List
	items := n.Get("items")
	if items == nil || items.Kind == input.List {
		s.Unsupported(n, "%s: %s does not declare its elements; using text", s.what, cmp.Or(path, "the value"))
		to.Elem = &document.Type{Kind: document.Text, Declared: true}
		return
	}
	to.Elem = s.shape(items, "each of "+path)
}

func (s *schema) object(n *input.Node, path string, to *document.Type) {
	to.Kind = document.Record
	required := map[string]bool{}
	properties := s.Map(n, "properties")
	for _, one := range s.List(n, "required") {
		required[one.Text] = true
		if properties != nil && one.Kind == input.Text && properties.Get(one.Text) == nil {
			s.Add(input.Malformed.At(one.Span, "%s: %q is required but is not a property", s.what, one.Text).WithNearest(one.Text, input.Keys(properties)))
		}
	}
	if properties == nil {
		return
	}
	for _, p := range properties.Entries() {
		if p.Key == "" {
			s.Add(input.Malformed.At(p.KeySpan, "%s: property without a name", s.what))
			continue
		}
		inner := p.Key
		if path != "" {
			inner = path + "." + p.Key
		}
		of := s.shape(p.Value, inner)
		if !required[p.Key] {
			made := *of
			made.Optional = true
			of = &made
		}
		to.Fields = append(to.Fields, &document.Field{Name: p.Key, Type: of})
	}
}

// describe adds a note with the description and the limits of a schema.
func (s *schema) describe(n *input.Node, path string) {
	var notes []string
	if d := s.Text(n, "description"); d != "" {
		notes = append(notes, strings.TrimRight(strings.Join(strings.Fields(d), " "), "."))
	}
	if e := n.Get("enum"); e != nil && e.Kind == input.List {
		var words []string
		for _, item := range e.Elements() {
			words = append(words, item.Text)
		}
		notes = append(notes, "one of "+strings.Join(words, ", "))
	}
	for _, key := range limits() {
		if v := n.Get(key); v != nil && v.Kind < input.List {
			notes = append(notes, key+" "+v.Text)
		}
	}
	if len(notes) == 0 {
		return
	}
	s.notes = append(s.notes, strings.TrimPrefix(path+": "+strings.Join(notes, "; "), ": "))
}

// checkKeys reports keywords that are unknown or have no effect.
func (s *schema) checkKeys(n *input.Node, path string) {
	known := append(limits(), "type", "properties", "required", "items", "description", "title", "format", "enum", "additionalProperties", "$schema", "$id", "$comment", "nullable", "$defs", "definitions")
	input.NormalizeKeys(n, known...)
	for _, p := range n.Entries() {
		if p.Spelling != "" {
			s.Add(input.UnknownKey.At(p.KeySpan, "%s: keyword %q read as %s", s.what, p.Spelling, p.Key))
		}
		switch p.Key {
		case "additionalProperties":
			if p.Value.Kind == input.Map && n.Get("properties") != nil {
				s.Unsupported(p.Value, "%s: a type has no additional fields", s.what)
			}
		case "enum", "pattern", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength", "minItems", "maxItems", "const", "uniqueItems":
			s.Ignored(p.KeySpan, "%s: %s is not checked; the description states it for the model", s.what, p.Key)
		case "anyOf", "oneOf", "allOf", "not", "$ref", "if", "then", "else", "patternProperties", "dependentRequired", "dependentSchemas", "prefixItems":
			s.Add(input.Unsupported.At(p.KeySpan, "%s: keyword %s has no counterpart", s.what, p.Key))
		default:
			if !slices.Contains(known, p.Key) {
				s.Add(input.UnknownKey.At(p.KeySpan, "%s: unknown keyword %q ignored", s.what, p.Key).WithNearest(p.Key, known))
			}
		}
	}
	if path == "" && n.Get("title") != nil {
		s.notes = append(s.notes, fmt.Sprint(n.Get("title").Text))
	}
}

// about returns all notes as one text.
func (s *schema) about() string { return strings.Join(s.notes, ". ") }
