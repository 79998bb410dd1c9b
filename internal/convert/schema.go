package convert

import (
	"fmt"
	"strings"
)

// schema reads JSON schemas.
type schema struct {
	*report
	what  string // whose schema it is, for messages
	dates bool   // dates are read as such; what expressions read stays a text
	root  *node  // the whole schema, in which references point
	open  []*node
	notes []string
}

// unwrapped is a schema without the {schema: …} that may stand around it.
func unwrapped(n *node) *node {
	if inner := n.get("schema"); inner != nil && inner.form == mapping && n.get("type") == nil && n.get("properties") == nil {
		return inner
	}
	return n
}

// unwrappedFile is the name of a file that stands for a schema; nil where there is none.
func unwrappedFile(n *node) *node {
	if n != nil && n.form == mapping && len(n.pairs) == 1 && n.pairs[0].key == "schema" {
		n = n.pairs[0].value
	}
	if n != nil && n.form == textual {
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
func (s *schema) shape(n *node, path string) *inferredType {
	if n.form != mapping {
		s.malformed(n, "%s: a JSON schema is a mapping, not %s", s.what, n.described())
		return &inferredType{declared: true}
	}
	if s.root == nil {
		s.root = n
	}
	depth := len(s.open)
	defer func() { s.open = s.open[:depth] }()
	if n = s.combined(n); n == nil {
		return &inferredType{sort: isText, declared: true}
	}
	s.checkKeys(n, path)
	names, nullable := s.types(n)
	made := &inferredType{declared: true, optional: nullable}
	name := ""
	if len(names) == 1 {
		name = names[0]
	}
	switch {
	case name == "string":
		made.sort = s.stringSort(n, path)
	case name == "integer":
		made.sort = isInt
	case name == "number", len(names) == 2 && contains(names, "integer") && contains(names, "number"):
		made.sort = isNumber
	case name == "boolean":
		made.sort = isBool
	case name == "array":
		s.array(n, path, made)
	case name == "object" && n.get("properties") != nil:
		s.object(n, path, made)
	case name == "object":
		s.unsupported(n, "%s: %s is an object of any fields, which no type is; it is declared as a text", s.what, either(path, "it"))
		made.sort = isText
	default:
		s.unsupported(n, "%s: %s is of no single type; it is declared as a text", s.what, either(path, "it"))
		made.sort = isText
	}
	s.describe(n, path)
	return made
}

func contains(all []string, name string) bool {
	for _, one := range all {
		if one == name {
			return true
		}
	}
	return false
}

// types are the types that a schema names, null apart.
func (s *schema) types(n *node) (names []string, nullable bool) {
	t := n.get("type")
	var all []*node
	switch {
	case t == nil && n.get("properties") != nil:
		return []string{"object"}, false
	case t == nil && n.get("items") != nil:
		return []string{"array"}, false
	case t == nil && n.get("enum") != nil:
		return s.typesOf(n.get("enum").items)
	case t == nil && n.get("const") != nil:
		return s.typesOf([]*node{n.get("const")})
	case t == nil:
		return nil, false
	case t.form == list:
		all = t.items
	default:
		all = []*node{t}
	}
	known := []string{"string", "integer", "number", "boolean", "array", "object", "null"}
	for _, one := range all {
		switch {
		case one.form == textual && one.text == "null", one.form == nothing:
			nullable = true
		case one.form != textual || !contains(known, one.text):
			s.add(ruleForm.At(one.mark(), "%s: %s is no type of a JSON schema", s.what, one.described()).WithNearest(one.text, known))
		default:
			names = append(names, one.text)
		}
	}
	if v := n.get("nullable"); v != nil && s.truth(n, "nullable") {
		nullable = true
	}
	return names, nullable
}

// typesOf are the types of values that are listed.
func (s *schema) typesOf(values []*node) (names []string, nullable bool) {
	for _, v := range values {
		name := [...]string{"", "boolean", "integer", "number", "string", "", ""}[v.form]
		switch {
		case v.form == nothing:
			nullable = true
		case !contains(names, name):
			names = append(names, name)
		}
	}
	return names, nullable
}

// stringSort is the sort of a string, by its format.
func (s *schema) stringSort(n *node, path string) typeKind {
	format := s.textOf(n, "format")
	switch {
	case format == "date" && s.dates:
		return isDate
	case format == "date-time" && s.dates:
		return isDateTime
	case format != "":
		s.notes = append(s.notes, path+" has the format "+format)
	}
	return isText
}

func (s *schema) array(n *node, path string, to *inferredType) {
	to.sort = isList
	items := n.get("items")
	if items == nil || items.form == list {
		s.unsupported(n, "%s: %s does not say what its elements are; they are declared as texts", s.what, either(path, "it"))
		to.elem = &inferredType{sort: isText, declared: true}
		return
	}
	to.elem = s.shape(items, "each of "+path)
}

func (s *schema) object(n *node, path string, to *inferredType) {
	to.sort = isRecord
	required := map[string]bool{}
	properties := s.mapOf(n, "properties")
	for _, one := range s.listOf(n, "required") {
		required[one.text] = true
		if properties != nil && one.form == textual && properties.get(one.text) == nil {
			s.add(ruleForm.At(one.span, "%s: %q is required, but is no property", s.what, one.text).WithNearest(one.text, keys(properties)))
		}
	}
	if properties == nil {
		return
	}
	for _, p := range properties.pairs {
		if p.key == "" {
			s.add(ruleForm.At(p.at, "%s: a property has no name", s.what))
			continue
		}
		inner := p.key
		if path != "" {
			inner = path + "." + p.key
		}
		of := s.shape(p.value, inner)
		if !required[p.key] {
			made := *of
			made.optional = true
			of = &made
		}
		to.fields = append(to.fields, &field{p.key, of})
	}
}

func keys(n *node) []string {
	var all []string
	for _, p := range n.pairs {
		all = append(all, p.key)
	}
	return all
}

// describe notes what a schema says in words, and its limits in words.
func (s *schema) describe(n *node, path string) {
	var notes []string
	if d := s.textOf(n, "description"); d != "" {
		notes = append(notes, strings.TrimRight(strings.Join(strings.Fields(d), " "), "."))
	}
	if e := n.get("enum"); e != nil && e.form == list {
		var words []string
		for _, item := range e.items {
			words = append(words, item.text)
		}
		notes = append(notes, "one of "+strings.Join(words, ", "))
	}
	for _, key := range limits() {
		if v := n.get(key); v != nil && v.form < list {
			notes = append(notes, key+" "+v.text)
		}
	}
	if len(notes) == 0 || path == "" {
		return
	}
	s.notes = append(s.notes, path+": "+strings.Join(notes, "; "))
}

// checkKeys tells of keywords that are not understood or have no effect here.
func (s *schema) checkKeys(n *node, path string) {
	known := append(limits(), "type", "properties", "required", "items", "description", "title", "format", "enum", "additionalProperties", "$schema", "$id", "$comment", "nullable", "$defs", "definitions")
	spell(n, known...)
	for _, p := range n.pairs {
		if p.written != "" {
			s.add(ruleUnknown.At(p.at, "%s: the keyword %q is taken for %s", s.what, p.written, p.key))
		}
		switch p.key {
		case "additionalProperties":
			if p.value.form == mapping && n.get("properties") != nil {
				s.unsupported(p.value, "%s: fields beside those that are named have no place in a type", s.what)
			}
		case "enum", "pattern", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength", "minItems", "maxItems", "const", "uniqueItems":
			s.ignored(p.at, "%s: %s is not checked; the description tells the model of it", s.what, p.key)
		case "anyOf", "oneOf", "allOf", "not", "$ref", "if", "then", "else", "patternProperties", "dependentRequired", "dependentSchemas", "prefixItems":
			s.add(ruleUnsupported.At(p.at, "%s: the keyword %s has no counterpart", s.what, p.key))
		default:
			if !contains(known, p.key) {
				s.add(ruleUnknown.At(p.at, "%s: the keyword %q is not known and is left out", s.what, p.key).WithNearest(p.key, known))
			}
		}
	}
	if path == "" && n.get("title") != nil {
		s.notes = append(s.notes, fmt.Sprint(n.get("title").text))
	}
}

// about is all notes as one text.
func (s *schema) about() string { return strings.Join(s.notes, ". ") }
