package lsp

import (
	"cmp"
	"context"
	"reflect"
	"slices"
	"strings"

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
