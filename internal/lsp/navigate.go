package lsp

import (
	"cmp"
	"context"
	"reflect"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/source"
)

// target is what a request about a place is about.
type target struct {
	doc *document
	at  int // the byte in the document
	of  *analysis
	use *use // what stands there; nil for nothing that names an entity
}

// targetAt finds what stands at a place, in the first document that knows.
func (s *server) targetAt(ctx context.Context, p positionParams) (target, error) {
	d, err := s.held(p.TextDocument)
	if err != nil {
		return target{}, err
	}
	target := target{doc: d, at: d.offset(p.Position)}
	for _, root := range s.space.rootsOf(d.path) {
		a := s.space.analyze(ctx, root)
		if a == nil {
			continue
		}
		if target.of == nil {
			target.of = a
		}
		if u := a.index().at(d.path, target.at); u != nil {
			target.of, target.use = a, u
			break
		}
	}
	return target, nil
}

// lastDeclaration finds what a word named when the document could last be read.
func (s *server) lastDeclaration(root string, m *word) *use {
	good := s.space.lastValid(root)
	if good == nil || m.role != asRef && m.role != asType {
		return nil
	}
	name := m.text
	wants := reflect.TypeFor[*spec.CustomType]()
	if m.role == asRef {
		wants = wantedBy(m.of)
	} else if t, err := spec.ParseType(name); err == nil {
		for t.Elem != nil {
			t = *t.Elem
		}
		name = t.Name
	}
	for _, u := range good.index().uses {
		if u.kind == declared && u.entity.EntityID() == name && reflect.TypeOf(u.entity).AssignableTo(wants) {
			return &u
		}
	}
	return nil
}

// definition answers where the entity that a word names is declared, and which
// file an include reads.
func (s *server) definition(ctx context.Context, p positionParams) ([]location, error) {
	target, err := s.targetAt(ctx, p)
	if err != nil {
		return nil, err
	}
	if target.use != nil {
		return s.declarations(target.of, target.use.id), nil
	}
	for _, root := range s.space.rootsOf(target.doc.path) {
		m := indexSyntax(s.lang, root, s.space.outlineOf).at(target.doc.path, target.at)
		if m == nil {
			continue
		}
		if m.role == asInclude {
			return s.fileAt(included(target.doc.path, m.text)), nil
		}
		if u := s.lastDeclaration(root, m); u != nil {
			return s.declarations(s.space.lastValid(root), u.id), nil
		}
	}
	return []location{}, nil
}

// fileAt is the start of a file; nowhere where there is none that an editor can open.
func (s *server) fileAt(path string) []location {
	if _, ok := s.space.text(path); !ok || isRemote(path) && s.space.document(path) == nil {
		return []location{}
	}
	return []location{{s.space.uri(path), textRange{}}}
}

// declarations are the places where an entity is declared: one, or several where it is included twice.
func (s *server) declarations(a *analysis, id declaration) []location {
	found := []location{}
	for _, u := range a.index().all(id) {
		if u.kind == declared {
			found = append(found, s.locationOf(a, u))
		}
	}
	return found
}

// locationOf is the place of a use as the protocol has it.
func (s *server) locationOf(a *analysis, u use) location {
	if at, far := s.visible(a, source.Span{File: u.file}); far {
		return a.location(at, s.space.uri)
	}
	return location{s.space.uri(u.path), a.linesOf(u.file).span(u.start, u.end)}
}

// references answers every place that names what a word names, in all documents
// that read the file where it is declared.
func (s *server) references(ctx context.Context, p referenceParams) ([]location, error) {
	target, err := s.targetAt(ctx, p.positionParams)
	if err != nil || target.use == nil {
		return []location{}, err
	}
	found := []location{}
	seen := map[location]bool{}
	for _, a := range s.readers(ctx, target) {
		for _, u := range a.index().all(target.use.id) {
			at := s.locationOf(a, u)
			if u.kind == declared && !p.Context.IncludeDeclaration || seen[at] {
				continue
			}
			seen[at] = true
			found = append(found, at)
		}
	}
	slices.SortStableFunc(found, func(a, b location) int {
		return cmp.Or(strings.Compare(a.URI, b.URI), cmp.Compare(a.Range.Start.Line, b.Range.Start.Line), cmp.Compare(a.Range.Start.Character, b.Range.Start.Character))
	})
	return found, nil
}

// readers are the documents that read the file in which an aim's entity is declared.
func (s *server) readers(ctx context.Context, target target) []*analysis {
	all := []*analysis{target.of}
	for _, root := range s.space.rootsOf(target.use.id.path) {
		if root == target.of.root {
			continue
		}
		if a := s.space.analyze(ctx, root); a != nil {
			all = append(all, a)
		}
	}
	return all
}

// highlights answers the places in the same document that name the same entity.
func (s *server) highlights(ctx context.Context, p positionParams) ([]documentHighlight, error) {
	const read, write = 2, 3
	target, err := s.targetAt(ctx, p)
	if err != nil || target.use == nil {
		return []documentHighlight{}, err
	}
	found := []documentHighlight{}
	for _, u := range target.of.index().all(target.use.id) {
		if u.path != target.doc.path {
			continue
		}
		kind := read
		if u.kind == declared {
			kind = write
		}
		found = append(found, documentHighlight{target.doc.span(u.start, u.end), kind})
	}
	return found, nil
}

// quote puts quotes around a name.
func quote(s string) string { return `"` + strings.ReplaceAll(s, `"`, `\"`) + `"` }
