package lsp

import (
	"reflect"

	"github.com/qtype-dev/qtype/internal/lsp/outline"
	"github.com/qtype-dev/qtype/spec"
)

// specialType is a type of package spec with its own notation instead of that of
// its struct.
type specialType struct {
	description string // in terms of documents
	isMapping   bool   // it is a mapping, which is written below its key
	read        func(s *syntaxIndex, n *outline.Node, f *field, in *mappingNode)
}

var (
	variableRefType    = reflect.TypeFor[spec.Ref[*spec.Variable]]()
	stepRefType        = reflect.TypeFor[spec.Ref[spec.Step]]()
	storeRefType       = reflect.TypeFor[spec.Ref[*spec.Store]]()
	typeExpressionType = reflect.TypeFor[spec.Type]()
	expressionType     = reflect.TypeFor[spec.Expression]()
	documentType       = reflect.TypeFor[*spec.Document]()
)

// specialTypes returns all types with their own notation, except references.
func specialTypes() map[reflect.Type]specialType {
	return map[reflect.Type]specialType{
		typeExpressionType:                  {"a type", false, (*syntaxIndex).readTypeExpression},
		reflect.TypeFor[spec.Secret]():      {"a text or a secret", false, (*syntaxIndex).readSecret},
		reflect.TypeFor[spec.Duration]():    {"a duration", false, nil},
		reflect.TypeFor[spec.Thinking]():    {"a word or a number of tokens", false, nil},
		expressionType:                      {"an expression", false, nil},
		reflect.TypeFor[spec.Assignments](): {"a mapping of variables to expressions", true, (*syntaxIndex).readAssignments},
		reflect.TypeFor[spec.Bindings]():    {"a mapping of names to variables", true, (*syntaxIndex).readBindings},
		reflect.TypeFor[spec.Properties]():  {"a mapping of names to types", true, (*syntaxIndex).readProperties},
		reflect.TypeFor[spec.PathRef]():     {"a variable or {uri: …}", false, (*syntaxIndex).readPathRef},
		reflect.TypeFor[spec.StoreRef]():    {"the id of a store or a URL", false, (*syntaxIndex).readStoreRef},
		reflect.TypeFor[spec.Tokenizer]():   {"an encoding or the path of a file", false, nil},
		reflect.TypeFor[*spec.StepItem]():   {"a step", false, (*syntaxIndex).readStepItem},
		documentType:                        {"a document", false, func(s *syntaxIndex, n *outline.Node, _ *field, in *mappingNode) { s.readDocument(n, in) }},
	}
}

// readSpecial reads a type with its own notation and reports whether it is one.
func (s *syntaxIndex) readSpecial(n *outline.Node, t reflect.Type, f *field, in *mappingNode) bool {
	if isRef(t) {
		s.readReference(n, t, f, in)
		return true
	}
	known, ok := s.lang.specialTypes[t]
	if ok && known.read == nil || ok && known.isMapping && n.Kind == outline.Scalar {
		s.readScalar(n, t, f, in)
	} else if ok {
		known.read(s, n, f, in)
	}
	return ok
}

// readSecret reads a text or {secret_name: …}.
func (s *syntaxIndex) readSecret(n *outline.Node, f *field, in *mappingNode) {
	if n.Kind == outline.Mapping {
		t := reflect.TypeFor[spec.SecretReference]()
		s.readStruct(n, s.lang.structs[t], nil, t, f, in)
		return
	}
	s.readScalar(n, reflect.TypeFor[spec.Secret](), f, in)
}

// readStepItem reads a step or {$ref: id}.
func (s *syntaxIndex) readStepItem(n *outline.Node, f *field, in *mappingNode) {
	if n.Get("$ref") != nil {
		s.readReference(n, stepRefType, f, in)
		return
	}
	s.readValue(n, reflect.TypeFor[spec.Step](), f, in)
}

// readPathRef reads the id of a variable or {uri: …}.
func (s *syntaxIndex) readPathRef(n *outline.Node, f *field, in *mappingNode) {
	if n.Kind == outline.Mapping && n.Get("$ref") == nil {
		s.readFree(n, f, in)
		return
	}
	s.readReference(n, variableRefType, f, in)
}

// readStoreRef reads the id or URL of a store: they have the same notation.
func (s *syntaxIndex) readStoreRef(n *outline.Node, f *field, in *mappingNode) {
	s.readReference(n, storeRefType, f, in)
}

// readBindings reads a mapping of names to variables.
func (s *syntaxIndex) readBindings(n *outline.Node, f *field, in *mappingNode) {
	s.readNames(roleBinding, n, variableRefType, f, in)
}

// readProperties reads a mapping of names to types.
func (s *syntaxIndex) readProperties(n *outline.Node, f *field, in *mappingNode) {
	s.readNames(roleProperty, n, typeExpressionType, f, in)
}

// readNames reads a mapping of names to values of a type.
func (s *syntaxIndex) readNames(r role, n *outline.Node, t reflect.Type, f *field, in *mappingNode) {
	for _, p := range n.Pairs {
		s.addKey(r, p, f, in)
		s.readValue(p.Value, t, f, in)
	}
}

// readAssignments reads a mapping of variables to expressions.
func (s *syntaxIndex) readAssignments(n *outline.Node, f *field, in *mappingNode) {
	for _, p := range n.Pairs {
		s.addWord(syntaxWord{role: roleReference, start: p.Start, end: p.End, text: p.Key, pair: p, field: f, goType: variableRefType, mapping: in})
		s.readValue(p.Value, expressionType, f, in)
	}
}

// readReference reads an id or {$ref: id}.
func (s *syntaxIndex) readReference(n *outline.Node, t reflect.Type, f *field, in *mappingNode) {
	switch n.Kind {
	case outline.Scalar:
		s.addValue(roleReference, n, t, f, in)
	case outline.Mapping:
		s.readObject(n, "$ref", t, f, in)
	}
}

// readTypeExpression reads text, list[Order]? or {element_type: …}.
func (s *syntaxIndex) readTypeExpression(n *outline.Node, f *field, in *mappingNode) {
	switch n.Kind {
	case outline.Scalar:
		s.addValue(roleType, n, typeExpressionType, f, in)
	case outline.Mapping:
		s.readObject(n, "element_type", typeExpressionType, f, in)
	}
}

// readObject reads a mapping in which one key has a value of a known type.
func (s *syntaxIndex) readObject(n *outline.Node, key string, t reflect.Type, f *field, in *mappingNode) {
	for _, p := range n.Pairs {
		s.addKey(roleFreeKey, p, nil, in)
		if p.Key == key {
			s.readValue(p.Value, t, f, in)
		} else {
			s.readValue(p.Value, nil, f, in)
		}
	}
}
