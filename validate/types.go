package validate

import (
	"reflect"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/spec/source"
)

// linkTypes looks up the names in type expressions: a built-in type, then a
// custom one (language.md 7.1). It reports names that are none (QT110 for a
// variable, QT114 for a property of a custom type).
func (p *checker) linkTypes() {
	known := map[string]bool{}
	for _, name := range builtIn() {
		known[name] = true
	}
	for _, v := range p.nodes {
		switch n := v.node.(type) {
		case *spec.Variable:
			if !p.linkType(&n.Type, known) {
				p.untyped[n] = true
				p.reportVariable(n)
			}
		case *spec.CustomType:
			for i := range n.Properties {
				prop := &n.Properties[i]
				named := baseOf(prop.Type).Name != "" || isIncompleteType(n.Place().Field("properties"), prop.Name)
				if !p.linkType(&prop.Type, known) && named && !p.unread(reflect.TypeFor[*spec.CustomType]()) {
					span := typePlace(n.Place().Field("properties").Field(prop.Name))
					p.list.Add(p.unknownType("QT114", span, prop.Type, "property "+n.ID+"."+prop.Name))
				}
			}
		}
	}
}

// isIncompleteType tells whether a type is written as the empty text: one that could
// not be read, or is not there, is empty, too, and told already.
func isIncompleteType(owner *spec.Position, key string) bool {
	_, written := owner.Lookup(key)
	return written && owner.Complete(key)
}

// reportVariable reports a variable whose type is not known, unless the loader
// had reason to leave it out. The element of the structured form was never
// checked, and existing documents name types there that are gone.
func (p *checker) reportVariable(v *spec.Variable) {
	place := v.Place().Field("type")
	if baseOf(v.Type).Name == "" && !isIncompleteType(v.Place(), "type") || p.unread(reflect.TypeFor[*spec.CustomType]()) && typeSynonym(baseOf(v.Type).Name) == "" {
		return
	}
	written := v.Type
	_, structured := place.Lookup("element_type")
	structured = structured && v.Type.Elem != nil
	if structured {
		written = *v.Type.Elem
	}
	finding := p.unknownType("QT110", typePlace(place), written, "variable "+v.ID)
	if structured {
		finding = finding.WithSeverity(diag.Warning)
		v.Type = spec.Type{Elem: &spec.Type{Name: spec.Any}, Optional: v.Type.Optional}
	}
	p.list.Add(finding)
}

// linkType sets Custom where the innermost type is a custom one, and tells whether it is known.
func (p *checker) linkType(t *spec.Type, builtIn map[string]bool) bool {
	for t.Elem != nil {
		t = t.Elem
	}
	if builtIn[t.Name] {
		return true
	}
	t.Custom = p.types[t.Name]
	if t.Custom != nil {
		p.used[t.Custom] = true
	}
	return t.Custom != nil
}

// unknownType is the finding for a type name that is none.
func (p *checker) unknownType(code string, span source.Span, t spec.Type, what string) diag.Diagnostic {
	name := baseOf(t).Name
	finding := fault(code, span, "%s has an unknown type %q", what, name)
	near := typeSynonym(name)
	var candidates []string // where the name is no other language's
	if near == "" {
		candidates = builtIn()
		for id := range p.types {
			candidates = append(candidates, id)
		}
		near = diag.Nearest(name, candidates)
	}
	if near == "" {
		return finding.WithHint("use a built-in type (qtype explain QT110 lists them) or declare it under types:")
	}
	fixed := strings.Replace(t.String(), name, near, 1)
	finding = finding.WithHint("did you mean %q?", near).WithSuggestion(fixed)
	if synonym(name) || diag.IsUnambiguous(name, near, candidates) {
		finding = finding.WithReplacement(t.String(), fixed)
	}
	if custom := p.types[near]; custom != nil {
		finding = finding.WithRelated(idPlace(custom), "a type declared here")
	}
	return finding
}

// typeSynonym is the built-in type for a name that other languages use.
func typeSynonym(name string) string {
	switch strings.ToLower(name) {
	case "string", "str", "varchar":
		return "text"
	case "integer", "int64", "long":
		return "int"
	case "number", "double", "decimal", "real":
		return "float"
	case "bool":
		return "boolean"
	case "binary", "blob":
		return "bytes"
	case "timestamp":
		return "datetime"
	case "message":
		return "ChatMessage"
	}
	return ""
}

// synonym tells whether a name of another language can only be the one built-in
// type; a number may be whole or not.
func synonym(name string) bool {
	switch strings.ToLower(name) {
	case "string", "str", "varchar", "integer", "int64", "bool":
		return true
	}
	return false
}

// builtIn lists the names that the language defines itself.
func builtIn() []string { return slices.Concat(spec.Primitives(), spec.DomainTypes()) }

// baseOf is the innermost element of a list type, the type itself otherwise.
func baseOf(t spec.Type) spec.Type {
	for t.Elem != nil {
		t = *t.Elem
	}
	return t
}

// typePlace is where a type expression stands; {element_type: text} is one too.
func typePlace(p *spec.Position) source.Span { return p.Field("element_type").Span() }

func typeRules() []rule {
	return []rule{unknownVariableType(), unknownPropertyType(), shadowedType()}
}

func unknownVariableType() rule {
	return rule{code: "QT110", title: "unknown type of a variable",
		doc: "A variable's type is a built-in type, the id of a custom type, or list[…] of one; a trailing ? makes it optional. " +
			"Names are case-sensitive. Built in are " + strings.Join(builtIn(), ", ") + ".",
		sample: sample{in: "name: ⟦string│text⟧", out: "name: text", steps: "- {type: Echo, id: pass, inputs: [name], outputs: [name]}"}}
}

func unknownPropertyType() rule {
	return rule{code: "QT114", title: "unusable type of a property",
		doc: "A property's type is a built-in type or the id of a custom type; lists may nest and ? may stand at every level. " +
			"A type that needs a record of itself, directly or through others, has no finite value: make one property of the circle optional or a list.",
		check: on(recursiveTypes),
		sample: sample{text: `
id: example
types:
  - id: Author
    properties: {name: text, born: "⟦year│int⟧?"}
  - id: Book
    properties: {title: text, author: Author}
`}}
}

// recursiveTypes reports records that must hold a record of their own type: no
// value of them could be finite (language.md 7.4).
func recursiveTypes(p *ruleContext, _ *spec.Document) {
	if !p.here.root {
		return
	}
	s := typeSearch{pass: p, state: map[*spec.CustomType]int{}}
	for _, v := range p.nodes {
		if t, ok := v.node.(*spec.CustomType); ok {
			s.visit(t)
		}
	}
}

// typeSearch finds circles of required properties, depth first.
type typeSearch struct {
	pass  *ruleContext
	state map[*spec.CustomType]int // 1 on the path, 2 done
	path  []string                 // the properties from the start to here: Book.author
	trail []*spec.CustomType       // the types of path
}

// visit goes into every type that t must hold; one that is still on the path closes a circle.
func (s *typeSearch) visit(t *spec.CustomType) {
	if s.state[t] != 0 {
		return
	}
	s.state[t] = 1
	for _, prop := range t.Properties {
		next := prop.Type.Custom
		if next == nil || prop.Type.Optional {
			continue
		}
		s.path, s.trail = append(s.path, t.ID+"."+prop.Name), append(s.trail, t)
		if s.state[next] == 1 {
			circle := s.path[slices.Index(s.trail, next):]
			s.pass.list.Add(s.pass.reportAt(t.Place().Field("properties").Field(prop.Name).Span(),
				"the type %q needs itself without end: %s", next.ID, strings.Join(append(slices.Clone(circle), next.ID), " → ")).
				WithHint("write %q to let it end", prop.Type.String()+"?"))
		} else {
			s.visit(next)
		}
		s.path, s.trail = s.path[:len(s.path)-1], s.trail[:len(s.trail)-1]
	}
	s.state[t] = 2
}

func shadowedType() rule {
	return rule{code: "QT409", warning: true, title: "a custom type is named like a built-in one",
		doc: "The built-in type wins wherever the name is used, so the custom type can never be selected.",
		sample: sample{text: `
id: example
types:
  - id: ⟦Embedding│BookEmbedding⟧
    properties: {numbers: "list[float]"}
`},
		check: on(func(p *ruleContext, t *spec.CustomType) {
			if slices.Contains(builtIn(), t.ID) {
				p.report(idPlace(t), "the type %q is built in; this one can never be used", t.ID)
			}
		})}
}
