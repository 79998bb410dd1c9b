package lsp

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/lsp/outline"
	"github.com/qtype-dev/qtype/internal/lsp/protocol"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/source"
)

// target is the subject of a request about a position.
type target struct {
	document *document
	offset   int // of the position
	analysis *analysis
	nameUse  *nameUse // the name at the position, nil if it is not that of an entity
}

// targetAt returns the target at a position in the first document that has one
// there.
func (s *server) targetAt(ctx context.Context, p protocol.TextDocumentPositionParams) (target, error) {
	d, err := s.openDocument(p.TextDocument)
	if err != nil {
		return target{}, err
	}
	target := target{document: d, offset: d.offset(p.Position)}
	for _, root := range s.workspace.rootsOf(d.path) {
		a := s.workspace.analyze(ctx, root)
		if a == nil {
			continue
		}
		if target.analysis == nil {
			target.analysis = a
		}
		if u := a.index().at(d.path, target.offset); u != nil {
			target.analysis, target.nameUse = a, u
			break
		}
	}
	return target, nil
}

// lastDeclaration returns the declaration that a word referred to in the last valid
// version of the document, nil for none.
func (s *server) lastDeclaration(root string, m *syntaxWord) *nameUse {
	good := s.workspace.lastValid(root)
	if good == nil || m.role != roleReference && m.role != roleType {
		return nil
	}
	name := m.text
	wants := reflect.TypeFor[*spec.CustomType]()
	if m.role == roleReference {
		wants = targetType(m.goType)
	} else if t, err := spec.ParseType(name); err == nil {
		for t.Elem != nil {
			t = *t.Elem
		}
		name = t.Name
	}
	for _, u := range good.index().uses {
		if u.kind == declaredName && u.entity.EntityID() == name && reflect.TypeOf(u.entity).AssignableTo(wants) {
			return &u
		}
	}
	return nil
}

// definition handles textDocument/definition: the declaration of an entity, or the
// file of an include.
func (s *server) definition(ctx context.Context, p protocol.TextDocumentPositionParams) ([]protocol.Location, error) {
	target, err := s.targetAt(ctx, p)
	if err != nil {
		return nil, err
	}
	if target.nameUse != nil {
		return s.declarations(target.analysis, target.nameUse.id), nil
	}
	for _, root := range s.workspace.rootsOf(target.document.path) {
		m := indexSyntax(s.lang(), root, s.workspace.outlineOf).at(target.document.path, target.offset)
		if m == nil {
			continue
		}
		if m.role == roleInclude {
			return s.fileStart(includePath(target.document.path, m.text)), nil
		}
		if u := s.lastDeclaration(root, m); u != nil {
			return s.declarations(s.workspace.lastValid(root), u.id), nil
		}
		if a, u := s.namedTarget(ctx, root, m); u != nil {
			return s.declarations(a, u.id), nil
		}
	}
	return []protocol.Location{}, nil
}

// fileStart returns the start of a file; none if the editor cannot open it.
func (s *server) fileStart(path string) []protocol.Location {
	if _, ok := s.workspace.text(path); !ok || isRemote(path) && s.workspace.document(path) == nil {
		return []protocol.Location{}
	}
	return []protocol.Location{{URI: s.workspace.uri(path)}}
}

// declarations returns the declarations of an entity: several if its file is
// included more than once.
func (s *server) declarations(a *analysis, id declaration) []protocol.Location {
	found := []protocol.Location{}
	for _, u := range a.index().usesOf(id) {
		if u.kind == declaredName {
			found = append(found, s.locationOf(a, u))
		}
	}
	return found
}

// locationOf converts the position of a name to the protocol's form.
func (s *server) locationOf(a *analysis, u nameUse) protocol.Location {
	if at, far := s.visibleSpan(a, source.Span{File: u.file}); far {
		return a.location(at, s.workspace.uri)
	}
	return protocol.Location{URI: s.workspace.uri(u.path), Range: a.linesOf(u.file).rangeOf(u.start, u.end)}
}

// references handles textDocument/references. It searches all documents that
// include the file with the declaration.
func (s *server) references(ctx context.Context, p protocol.ReferenceParams) ([]protocol.Location, error) {
	target, err := s.targetAt(ctx, p.TextDocumentPositionParams)
	if err != nil || target.nameUse == nil {
		return []protocol.Location{}, err
	}
	found := []protocol.Location{}
	seen := map[protocol.Location]bool{}
	for _, a := range s.dependents(ctx, target) {
		for _, u := range a.index().usesOf(target.nameUse.id) {
			at := s.locationOf(a, u)
			if u.kind == declaredName && !p.Context.IncludeDeclaration || seen[at] {
				continue
			}
			seen[at] = true
			found = append(found, at)
		}
	}
	slices.SortStableFunc(found, func(a, b protocol.Location) int {
		return cmp.Or(strings.Compare(a.URI, b.URI), cmp.Compare(a.Range.Start.Line, b.Range.Start.Line), cmp.Compare(a.Range.Start.Character, b.Range.Start.Character))
	})
	return found, nil
}

// dependents returns the analyses of the documents that include the file with the
// declaration of a target.
func (s *server) dependents(ctx context.Context, target target) []*analysis {
	all := []*analysis{target.analysis}
	for _, root := range s.workspace.rootsOf(target.nameUse.id.path) {
		if root == target.analysis.path {
			continue
		}
		if a := s.workspace.analyze(ctx, root); a != nil {
			all = append(all, a)
		}
	}
	return all
}

// documentHighlights handles textDocument/documentHighlight.
func (s *server) documentHighlights(ctx context.Context, p protocol.TextDocumentPositionParams) ([]protocol.DocumentHighlight, error) {
	target, err := s.targetAt(ctx, p)
	if err != nil || target.nameUse == nil {
		return []protocol.DocumentHighlight{}, err
	}
	found := []protocol.DocumentHighlight{}
	for _, u := range target.analysis.index().usesOf(target.nameUse.id) {
		if u.path != target.document.path {
			continue
		}
		kind := protocol.DocumentHighlightKindRead
		if u.kind == declaredName {
			kind = protocol.DocumentHighlightKindWrite
		}
		found = append(found, protocol.DocumentHighlight{Range: target.document.rangeOf(u.start, u.end), Kind: kind})
	}
	return found, nil
}

func quote(s string) string { return `"` + strings.ReplaceAll(s, `"`, `\"`) + `"` }

// documentLinks returns the includes of a document: editors open the files.
func (s *server) documentLinks(_ context.Context, p protocol.TextDocumentParams) ([]protocol.DocumentLink, error) {
	links := []protocol.DocumentLink{}
	d, err := s.openDocument(p.TextDocument)
	if err != nil {
		return links, err
	}
	for _, m := range s.syntaxOf(d).words[d.path] {
		if m.role == roleInclude && m.text != "" {
			links = append(links, protocol.DocumentLink{Range: d.rangeOf(m.start, m.end), Target: s.workspace.uri(includePath(d.path, m.text))})
		}
	}
	return links, nil
}

// foldingRanges returns the values below keys and dashes that have several lines.
func (s *server) foldingRanges(_ context.Context, p protocol.TextDocumentParams) ([]protocol.FoldingRange, error) {
	folds := []protocol.FoldingRange{}
	d, err := s.openDocument(p.TextDocument)
	if err != nil {
		return folds, err
	}
	add := func(start int, value *outline.Node) {
		last := d.line(max(value.Start, value.Start+len(strings.TrimRight(d.text[value.Start:value.End], " \t\r\n"))-1))
		if first := d.line(start); last > first {
			folds = append(folds, protocol.FoldingRange{StartLine: first, EndLine: last})
		}
	}
	d.outline().Walk(func(n *outline.Node) {
		for _, pair := range n.Pairs {
			add(pair.Start, pair.Value)
		}
		for _, item := range n.Items {
			if !n.Flow {
				add(item.Dash, item)
			}
		}
	})
	return folds, nil
}

// proposePaths proposes the files and folders of the folder that the path of an include names so far.
func (c *completer) proposePaths(m *syntaxWord) {
	typed, _, _ := strings.Cut(m.text, cursor)
	name := strings.LastIndexByte(typed, '/') + 1
	if c.start = c.offset - len(typed[name:]); m.node.Style == outline.Plain {
		c.end = m.end - len(cursor)
	}
	folder := includePath(c.doc.path, typed[:name]+".")
	if !filepath.IsAbs(folder) || isRemote(folder) || strings.HasPrefix(typed, "~") {
		return
	}
	entries, _ := os.ReadDir(folder) // none while the folder is being typed
	for _, e := range entries {
		name := e.Name()
		switch isText := m.node.Tag == "!include_raw"; {
		case strings.HasPrefix(name, "."), filepath.Join(folder, name) == c.doc.path:
		case e.IsDir():
			c.add(protocol.CompletionItem{Label: name + "/", Kind: protocol.CompletionItemKindFolder}, name+"/")
		case isText || strings.HasSuffix(name, ".yaml") || strings.HasSuffix(name, ".yml"):
			c.add(protocol.CompletionItem{Label: name, Kind: protocol.CompletionItemKindFile}, name)
		}
	}
}

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
