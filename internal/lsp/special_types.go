package lsp

import (
	"reflect"

	"github.com/qtype-dev/qtype/internal/lsp/outline"
	"github.com/qtype-dev/qtype/spec"
)

// specialType is a type of package spec that is written otherwise than its struct looks.
type specialType struct {
	noun  string // what it is, in a user's words
	below bool   // it is a mapping, which stands below its key
	read  func(s *syntaxIndex, n *outline.Node, f *field, in *mappingNode)
}

// The types of what stands in the forms.
var (
	refToVariable = reflect.TypeFor[spec.Ref[*spec.Variable]]()
	refToStep     = reflect.TypeFor[spec.Ref[spec.Step]]()
	refToStore    = reflect.TypeFor[spec.Ref[*spec.Store]]()
	typeType      = reflect.TypeFor[spec.Type]()
	formulaType   = reflect.TypeFor[spec.Expression]()
	documentType  = reflect.TypeFor[*spec.Document]()
)

// specialTypes are all types that are written in a way of their own, references aside.
func specialTypes() map[reflect.Type]specialType {
	return map[reflect.Type]specialType{
		typeType:                            {"a type", false, (*syntaxIndex).typeExpression},
		reflect.TypeFor[spec.Secret]():      {"a text or a secret", false, (*syntaxIndex).secret},
		reflect.TypeFor[spec.Duration]():    {"a length of time", false, nil},
		formulaType:                         {"an expression", false, nil},
		reflect.TypeFor[spec.Assignments](): {"variables to expressions", true, (*syntaxIndex).assignments},
		reflect.TypeFor[spec.Bindings]():    {"names to variables", true, (*syntaxIndex).bindings},
		reflect.TypeFor[spec.Properties]():  {"names to types", true, (*syntaxIndex).properties},
		reflect.TypeFor[spec.PathRef]():     {"a variable or {uri: …}", false, (*syntaxIndex).pathRef},
		reflect.TypeFor[spec.StoreRef]():    {"id of a store or a URL", false, (*syntaxIndex).storeRef},
		reflect.TypeFor[*spec.StepItem]():   {"a step", false, (*syntaxIndex).stepItem},
		documentType:                        {"a document", false, func(s *syntaxIndex, n *outline.Node, _ *field, in *mappingNode) { s.document(n, in) }},
	}
}

// special reads a type that is written in a way of its own, and tells whether it is one.
func (s *syntaxIndex) special(n *outline.Node, t reflect.Type, f *field, in *mappingNode) bool {
	if isRef(t) {
		s.reference(n, t, f, in)
		return true
	}
	known, ok := s.lang.forms[t]
	if ok && known.read == nil || ok && known.below && n.Kind == outline.Scalar {
		s.single(n, t, f, in)
	} else if ok {
		known.read(s, n, f, in)
	}
	return ok
}

// secret reads a text or {secret_name: …}.
func (s *syntaxIndex) secret(n *outline.Node, f *field, in *mappingNode) {
	if n.Kind == outline.Mapping {
		t := reflect.TypeFor[spec.SecretReference]()
		s.structure(n, s.lang.classes[t], nil, t, f, in)
		return
	}
	s.single(n, reflect.TypeFor[spec.Secret](), f, in)
}

// stepItem reads a step or {$ref: id}.
func (s *syntaxIndex) stepItem(n *outline.Node, f *field, in *mappingNode) {
	if n.Get("$ref") != nil {
		s.reference(n, refToStep, f, in)
		return
	}
	s.value(n, reflect.TypeFor[spec.Step](), f, in)
}

// pathRef reads the id of a variable or {uri: …}.
func (s *syntaxIndex) pathRef(n *outline.Node, f *field, in *mappingNode) {
	if n.Kind == outline.Mapping && n.Get("$ref") == nil {
		s.freeValue(n, f, in)
		return
	}
	s.reference(n, refToVariable, f, in)
}

// storeRef reads the id of a store; a URL looks the same.
func (s *syntaxIndex) storeRef(n *outline.Node, f *field, in *mappingNode) {
	s.reference(n, refToStore, f, in)
}

// bindings reads a mapping from names to variables.
func (s *syntaxIndex) bindings(n *outline.Node, f *field, in *mappingNode) {
	for _, p := range n.Pairs {
		s.key(asBinding, p, f, in)
		s.value(p.Value, refToVariable, f, in)
	}
}

// assignments reads a mapping from variables to expressions.
func (s *syntaxIndex) assignments(n *outline.Node, f *field, in *mappingNode) {
	for _, p := range n.Pairs {
		s.mark(word{role: asRef, start: p.Start, end: p.End, text: p.Key, pair: p, field: f, of: refToVariable, in: in})
		s.value(p.Value, formulaType, f, in)
	}
}

// properties reads a mapping from names to types.
func (s *syntaxIndex) properties(n *outline.Node, f *field, in *mappingNode) {
	for _, p := range n.Pairs {
		s.key(asProperty, p, f, in)
		s.value(p.Value, typeType, f, in)
	}
}

// reference reads an id or {$ref: id}.
func (s *syntaxIndex) reference(n *outline.Node, t reflect.Type, f *field, in *mappingNode) {
	switch n.Kind {
	case outline.Scalar:
		s.word(asRef, n, t, f, in)
	case outline.Mapping:
		for _, p := range n.Pairs {
			s.key(asFreeKey, p, nil, in)
			if p.Key == "$ref" && p.Value.Kind == outline.Scalar {
				s.word(asRef, p.Value, t, f, in)
				continue
			}
			s.value(p.Value, nil, f, in)
		}
	}
}

// typeExpression reads text, list[Order]? or {element_type: …}.
func (s *syntaxIndex) typeExpression(n *outline.Node, f *field, in *mappingNode) {
	switch n.Kind {
	case outline.Scalar:
		s.word(asType, n, typeType, f, in)
	case outline.Mapping:
		for _, p := range n.Pairs {
			s.key(asFreeKey, p, nil, in)
			if p.Key == "element_type" {
				s.value(p.Value, typeType, f, in)
			}
		}
	}
}
