package lsp

import (
	"context"
	"reflect"

	"github.com/qtype-dev/qtype/internal/lsp/outline"
	"github.com/qtype-dev/qtype/spec"
)

// symbols answers the entities of a document: as a tree where the editor shows
// trees, else as a list.
func (s *server) symbols(_ context.Context, p documentParams) (any, error) {
	d, err := s.held(p.TextDocument)
	if err != nil {
		return nil, err
	}
	tree := treeOf(s.surveyOf(d), d)
	if s.editor.Capabilities.TextDocument.DocumentSymbol.Hierarchical {
		return tree, nil
	}
	return flatten(tree, d.uri, "", []symbolInformation{}), nil
}

// surveyOf surveys an open document as a part of the first one that it belongs
// to; the survey of nothing where it is no document.
func (s *server) surveyOf(d *document) *syntaxIndex {
	for _, root := range s.space.rootsOf(d.path) {
		return indexSyntax(s.lang, root, s.space.outlineOf)
	}
	return &syntaxIndex{}
}

// treeOf puts each entity of a file below the nearest entity around it.
func treeOf(survey *syntaxIndex, d *document) []symbol {
	children := map[*outline.Node][]*entity{}
	known := map[*outline.Node]bool{}
	for _, e := range survey.entities {
		known[e.node] = true
	}
	for _, e := range survey.entities {
		if e.path != d.path {
			continue
		}
		above := e.up
		for above != nil && (!known[above.node] || above.path != d.path) {
			above = above.up
		}
		var at *outline.Node
		if above != nil {
			at = above.node
		}
		children[at] = append(children[at], e)
	}
	var grow func(*outline.Node) []symbol
	grow = func(at *outline.Node) []symbol {
		list := []symbol{}
		for _, e := range children[at] {
			one := symbol{Name: e.id, Detail: e.detail(), Kind: symbolKind(e.class), Children: grow(e.node)}
			if one.Name == "" {
				one.Name = "(no id)" // the protocol allows no empty name
			}
			one.Selection = d.span(e.idNode.Start, e.idNode.End)
			one.Range = d.span(min(e.node.Start, e.idNode.Start), max(e.node.End, e.idNode.End))
			list = append(list, one)
		}
		return list
	}
	return grow(nil)
}

// detail is what stands beside an entity's name.
func (e *entity) detail() string {
	if e.class.of == reflect.TypeFor[spec.Variable]() {
		return e.node.GetText("type")
	}
	if e.class.tag != "" {
		return e.class.tag
	}
	return e.class.kind()
}

// The protocol's kinds of symbols.
const (
	symbolModule   = 2
	symbolMethod   = 6
	symbolField    = 8
	symbolFunction = 12
	symbolVariable = 13
	symbolKey      = 20
	symbolStruct   = 23
	symbolObject   = 19
)

// symbolKind is the picture that an editor shows beside an entity.
func symbolKind(k *class) int {
	switch k.kind() {
	case string(spec.KindApplication):
		return symbolModule
	case string(spec.KindFlow), string(spec.KindTool):
		return symbolFunction
	case string(spec.KindStep):
		return symbolMethod
	case string(spec.KindVariable):
		return symbolVariable
	case string(spec.KindType):
		return symbolStruct
	case string(spec.KindAuth):
		return symbolKey
	case string(spec.KindMemory):
		return symbolField
	}
	return symbolObject
}

// flatten makes a list of a tree, each symbol with the name of the one around it.
func flatten(tree []symbol, uri, container string, list []symbolInformation) []symbolInformation {
	for _, one := range tree {
		list = append(list, symbolInformation{one.Name, one.Kind, location{uri, one.Range}, container})
		list = flatten(one.Children, uri, one.Name, list)
	}
	return list
}
