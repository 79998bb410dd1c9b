package lsp

import (
	"context"
	"reflect"

	"github.com/qtype-dev/qtype/internal/lsp/outline"
	"github.com/qtype-dev/qtype/internal/lsp/protocol"
	"github.com/qtype-dev/qtype/spec"
)

// documentSymbols returns the entities of a document: as a tree if the editor
// shows trees, otherwise as a list.
func (s *server) documentSymbols(_ context.Context, p protocol.TextDocumentParams) (protocol.DocumentSymbolResult, error) {
	d, err := s.openDocument(p.TextDocument)
	if err != nil {
		return protocol.DocumentSymbolResult{}, err
	}
	tree := symbolTree(s.syntaxOf(d), d)
	if s.editor.Capabilities.TextDocument.DocumentSymbol.HierarchicalDocumentSymbolSupport {
		return protocol.DocumentSymbolResult{Tree: tree}, nil
	}
	return protocol.DocumentSymbolResult{Flat: flatten(tree, d.uri, "", []protocol.SymbolInformation{})}, nil
}

// syntaxOf returns the index of an open document as a part of the first document
// that includes it; an empty one if it is not a qtype document.
func (s *server) syntaxOf(d *document) *syntaxIndex {
	if roots := s.workspace.rootsOf(d.path); len(roots) > 0 {
		return indexSyntax(s.lang(), roots[0], s.workspace.outlineOf)
	}
	return &syntaxIndex{}
}

// symbolTree returns the entities of a file, each below the nearest entity that
// contains it.
func symbolTree(syntax *syntaxIndex, d *document) []protocol.DocumentSymbol {
	isEntity := map[*outline.Node]bool{}
	for _, e := range syntax.entities {
		isEntity[e.node] = true
	}
	children := map[*outline.Node][]*entity{} // by parent; nil for the document
	for _, e := range syntax.entities {
		if e.path != d.path {
			continue
		}
		parent := e.parent
		for parent != nil && (!isEntity[parent.node] || parent.path != d.path) {
			parent = parent.parent
		}
		var at *outline.Node
		if parent != nil {
			at = parent.node
		}
		children[at] = append(children[at], e)
	}
	var subtree func(*outline.Node) []protocol.DocumentSymbol
	subtree = func(at *outline.Node) []protocol.DocumentSymbol {
		list := []protocol.DocumentSymbol{}
		for _, e := range children[at] {
			symbol := protocol.DocumentSymbol{Name: e.id, Detail: e.detail(), Kind: presentationOf(e.class.kind()).symbol, Children: subtree(e.node)}
			if symbol.Name == "" {
				symbol.Name = "(no id)" // the protocol does not allow empty names
			}
			symbol.SelectionRange = d.rangeOf(e.idNode.Start, e.idNode.End)
			symbol.Range = d.rangeOf(min(e.node.Start, e.idNode.Start), max(e.node.End, e.idNode.End))
			list = append(list, symbol)
		}
		return list
	}
	return subtree(nil)
}

// detail returns the text next to the name of an entity.
func (e *entity) detail() string {
	if e.class.goType == reflect.TypeFor[spec.Variable]() {
		return e.node.GetText("type")
	}
	if e.class.tag != "" {
		return e.class.tag
	}
	return string(e.class.kind())
}

// flatten appends the symbols of a tree to a list, each with the name of its parent.
func flatten(tree []protocol.DocumentSymbol, uri, container string, list []protocol.SymbolInformation) []protocol.SymbolInformation {
	for _, s := range tree {
		list = append(list, protocol.SymbolInformation{Name: s.Name, Kind: s.Kind, Location: protocol.Location{URI: uri, Range: s.Range}, ContainerName: container})
		list = flatten(s.Children, uri, s.Name, list)
	}
	return list
}
