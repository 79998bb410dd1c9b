package lsp

import (
	"context"
	"reflect"
	"slices"
	"strings"

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

// maxSymbols is how many symbols of a workspace are listed.
const maxSymbols = 1000

// workspaceSymbols returns the entities of the open documents and of those in the open folders whose names contain
// the query, in any case.
func (s *server) workspaceSymbols(ctx context.Context, p protocol.WorkspaceSymbolParams) ([]protocol.SymbolInformation, error) {
	found := []protocol.SymbolInformation{}
	for _, d := range s.workspace.allDocuments() {
		if err := ctx.Err(); err != nil {
			return found, err
		}
		if len(found) >= maxSymbols {
			break
		}
		syntax := indexSyntax(s.lang(), d.path, func(path string) *outline.Node {
			if path == d.path {
				return d.outline()
			}
			return nil // its own symbols are listed with it
		})
		for _, symbol := range flatten(symbolTree(syntax, d), d.uri, "", nil) {
			if strings.Contains(strings.ToLower(symbol.Name), strings.ToLower(p.Query)) {
				found = append(found, symbol)
			}
		}
	}
	return found[:min(len(found), maxSymbols)], nil
}

// allDocuments returns the open documents, and the other documents of the open folders as they are on disk.
func (w *workspace) allDocuments() []*document {
	all := w.documents()
	if w.isolated {
		return all
	}
	w.mu.Lock()
	folders := slices.Clone(w.folders)
	w.mu.Unlock()
	for _, path := range filesIn(folders, isDocumentName) {
		if w.document(path) != nil {
			continue
		}
		if text, ok := w.text(path); ok {
			all = append(all, newDocument(w.uri(path), path, 0, "", text))
		}
	}
	return all
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
