package xflow

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/convert/document"
	"github.com/qtype-dev/qtype/internal/convert/input"
)

// schema reads JSON schemas.
type schema struct {
	*input.Report
	what  string      // whose schema it is, for messages
	dates bool        // dates are read as such; what expressions read stays a text
	root  *input.Node // the whole schema, in which references point
	open  []*input.Node
	notes []string
}

// unwrapped is a schema without the {schema: …} that may stand around it.
func unwrapped(n *input.Node) *input.Node {
	if inner := n.Get("schema"); inner != nil && inner.Kind == input.Map && n.Get("type") == nil && n.Get("properties") == nil {
		return inner
	}
	return n
}

// unwrappedFile is the name of a file that stands for a schema; nil where there is none.
func unwrappedFile(n *input.Node) *input.Node {
	if n != nil && n.Kind == input.Map && len(n.Pairs) == 1 && n.Pairs[0].Key == "schema" {
		n = n.Pairs[0].Value
	}
	if n != nil && n.Kind == input.Text {
		return n
	}
	return nil
}

// limits are the keywords that only narrow values: a type does not hold them, so
// the model is told of them in words.
func limits() []string {
	return []string{"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength", "pattern",
		"minItems", "maxItems", "uniqueItems", "const", "default", "examples"}
}

// shape reads a schema; path is where in the whole it stands, for notes.
func (s *schema) shape(n *input.Node, path string) *document.Type {
	if n.Kind != input.Map {
		s.Malformed(n, "%s: a JSON schema is a mapping, not %s", s.what, n.Describe())
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
		s.Unsupported(n, "%s: %s is an object of any fields, which no type is; it is declared as a text", s.what, cmp.Or(path, "it"))
		made.Kind = document.Text
	default:
		s.Unsupported(n, "%s: %s is of no single type; it is declared as a text", s.what, cmp.Or(path, "it"))
		made.Kind = document.Text
	}
	s.describe(n, path)
	return made
}

// types are the types that a schema names, null apart.
func (s *schema) types(n *input.Node) (names []string, nullable bool) {
	t := n.Get("type")
	var all []*input.Node
	switch {
	case t == nil && n.Get("properties") != nil:
		return []string{"object"}, false
	case t == nil && n.Get("items") != nil:
		return []string{"array"}, false
	case t == nil && n.Get("enum") != nil:
		return s.typesOf(n.Get("enum").Items)
	case t == nil && n.Get("const") != nil:
		return s.typesOf([]*input.Node{n.Get("const")})
	case t == nil:
		return nil, false
	case t.Kind == input.List:
		all = t.Items
	default:
		all = []*input.Node{t}
	}
	known := []string{"string", "integer", "number", "boolean", "array", "object", "null"}
	for _, one := range all {
		switch {
		case one.Kind == input.Text && one.Text == "null", one.Kind == input.Null:
			nullable = true
		case one.Kind != input.Text || !slices.Contains(known, one.Text):
			s.Add(input.MalformedAt(one.Mark(), "%s: %s is no type of a JSON schema", s.what, one.Describe()).WithNearest(one.Text, known))
		default:
			names = append(names, one.Text)
		}
	}
	if v := n.Get("nullable"); v != nil && s.Bool(n, "nullable") {
		nullable = true
	}
	return names, nullable
}

// typesOf are the types of values that are listed.
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

// stringSort is the sort of a string, by its format.
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
		s.Unsupported(n, "%s: %s does not say what its elements are; they are declared as texts", s.what, cmp.Or(path, "it"))
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
			s.Add(input.MalformedAt(one.Span, "%s: %q is required, but is no property", s.what, one.Text).WithNearest(one.Text, input.Keys(properties)))
		}
	}
	if properties == nil {
		return
	}
	for _, p := range properties.Pairs {
		if p.Key == "" {
			s.Add(input.MalformedAt(p.KeySpan, "%s: a property has no name", s.what))
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

// describe notes what a schema says in words, and its limits in words.
func (s *schema) describe(n *input.Node, path string) {
	var notes []string
	if d := s.Text(n, "description"); d != "" {
		notes = append(notes, strings.TrimRight(strings.Join(strings.Fields(d), " "), "."))
	}
	if e := n.Get("enum"); e != nil && e.Kind == input.List {
		var words []string
		for _, item := range e.Items {
			words = append(words, item.Text)
		}
		notes = append(notes, "one of "+strings.Join(words, ", "))
	}
	for _, key := range limits() {
		if v := n.Get(key); v != nil && v.Kind < input.List {
			notes = append(notes, key+" "+v.Text)
		}
	}
	if len(notes) == 0 || path == "" {
		return
	}
	s.notes = append(s.notes, path+": "+strings.Join(notes, "; "))
}

// checkKeys tells of keywords that are not understood or have no effect here.
func (s *schema) checkKeys(n *input.Node, path string) {
	known := append(limits(), "type", "properties", "required", "items", "description", "title", "format", "enum", "additionalProperties", "$schema", "$id", "$comment", "nullable", "$defs", "definitions")
	input.NormalizeKeys(n, known...)
	for _, p := range n.Pairs {
		if p.Spelling != "" {
			s.Add(input.UnknownAt(p.KeySpan, "%s: the keyword %q is taken for %s", s.what, p.Spelling, p.Key))
		}
		switch p.Key {
		case "additionalProperties":
			if p.Value.Kind == input.Map && n.Get("properties") != nil {
				s.Unsupported(p.Value, "%s: fields beside those that are named have no place in a type", s.what)
			}
		case "enum", "pattern", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength", "minItems", "maxItems", "const", "uniqueItems":
			s.Ignored(p.KeySpan, "%s: %s is not checked; the description tells the model of it", s.what, p.Key)
		case "anyOf", "oneOf", "allOf", "not", "$ref", "if", "then", "else", "patternProperties", "dependentRequired", "dependentSchemas", "prefixItems":
			s.Add(input.UnsupportedAt(p.KeySpan, "%s: the keyword %s has no counterpart", s.what, p.Key))
		default:
			if !slices.Contains(known, p.Key) {
				s.Add(input.UnknownAt(p.KeySpan, "%s: the keyword %q is not known and is left out", s.what, p.Key).WithNearest(p.Key, known))
			}
		}
	}
	if path == "" && n.Get("title") != nil {
		s.notes = append(s.notes, fmt.Sprint(n.Get("title").Text))
	}
}

// about is all notes as one text.
func (s *schema) about() string { return strings.Join(s.notes, ". ") }
