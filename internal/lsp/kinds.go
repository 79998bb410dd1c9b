package lsp

import (
	"context"
	"path/filepath"
	"reflect"
	"slices"

	"github.com/qtype-dev/qtype/internal/lint"
	"github.com/qtype-dev/qtype/internal/lsp/outline"
	"github.com/qtype-dev/qtype/internal/lsp/protocol"
	"github.com/qtype-dev/qtype/loader"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/spec/source"
)

// kindOf returns the kind of a file that is not a document; nil for documents.
func (l *language) kindOf(path string) *lint.Kind {
	i := slices.IndexFunc(l.kinds, func(k *lint.Kind) bool { return k.Has(path) && filepath.IsAbs(path) })
	if i < 0 {
		return nil
	}
	return l.kinds[i]
}

// documentOf returns the path of the document that a file of a kind is about.
func (w *workspace) documentOf(k *lint.Kind, path string) string {
	return k.Document(path, w.outlineOf(path).GetText("app"))
}

// checkKind sets the diagnostics of a file that is not a document.
func (a *analysis) checkKind(ctx context.Context, k *lint.Kind, opts loader.Options) {
	_, list := k.Check(ctx, a.path, opts)
	a.doc = &spec.Document{}
	var elsewhere diag.List
	for _, d := range list {
		switch {
		case a.pathOf(d.Span.File) == a.path:
			a.diagnostics.Add(d)
		case d.Severity == diag.Error:
			elsewhere.Add(d)
		}
	}
	if len(elsewhere) > 0 {
		first := elsewhere[0]
		at := source.Span{File: &source.File{Path: a.path}, Start: source.Pos{Line: 1, Column: 1}, End: source.Pos{Line: 1, Column: 1}}
		problem := diag.Diagnostic{Code: first.Code, Severity: diag.Warning, Span: at,
			Message: filepath.Base(a.pathOf(first.Span.File)) + " has errors; this file is checked with it once they are corrected"}
		a.diagnostics.Add(problem.WithRelated(first.Span, first.Message))
	}
}

// readKind reads a file that is not a document, and the document that it is about.
func (s *syntaxIndex) readKind(k *lint.Kind, n *outline.Node) {
	s.readValue(n, reflect.TypeOf(k.Content), nil, nil)
	path := k.Document(s.path, n.GetText("app"))
	if o := s.read(path); o != nil && !holdsPath(s.trail, path) {
		s.path, s.trail = path, append(s.trail, path)
		s.readDocument(o, nil)
	}
}

// Values of the tag `names` that are not kinds of entities: the inputs and outputs of the flow
// at the place, the types of metrics and the categories of attacks.
const (
	namesInputs  = "inputs"
	namesOutputs = "outputs"
	namesMetrics = "metric"
	namesAttacks = "attack"
)

// isName reports whether a word may be a name that the tag `names` declares. It accepts nil.
func (m *syntaxWord) isName() bool {
	return m != nil && m.field != nil && len(m.field.names) > 0 && (m.role == roleFreeKey || m.role == roleValue)
}

// proposeNames proposes what a text or a key of a file names in its document. It reports
// whether the word at the cursor is one.
func (c *completer) proposeNames(m *syntaxWord) bool {
	if !m.isName() || len(m.field.enum) > 0 {
		return false
	}
	isMap := m.field.goType.Kind() == reflect.Map
	switch {
	case m.role == roleFreeKey:
	case isMap && (m.goType == nil || m.goType.Kind() != reflect.Map || !c.isAloneOnLine()):
		return false // a value of the mapping
	case !isMap && m.goType != nil && m.goType.Kind() == reflect.Slice:
		return false // the list itself
	case m.goType == expressionType && !c.selectName():
		return true
	}
	if m.field.names[0] == namesInputs || m.field.names[0] == namesOutputs {
		c.proposeFlowNames(m, isMap)
		return true
	}
	listed := c.listedIDs()
	for _, e := range c.syntax.entities {
		if slices.Contains(m.field.names, string(e.class.kind())) && !slices.Contains(listed, e.id) {
			c.addEntity(e)
		}
	}
	return true
}

// proposeFlowNames proposes the inputs or outputs of the flow at the cursor.
func (c *completer) proposeFlowNames(m *syntaxWord, asKeys bool) {
	there := map[string]bool{}
	if v := m.mapping.node.Get(m.field.name); asKeys && v != nil {
		for _, p := range v.Pairs {
			there[p.Key] = p != m.pair
		}
	}
	for _, name := range c.flowNames(c.syntax.flowAt(m.mapping), m.field.names[0] == namesOutputs) {
		if there[name.id] {
			continue
		}
		text := name.id
		if asKeys && (m.pair == nil || m.role != roleFreeKey || !m.pair.Colon) {
			text += ": "
		}
		c.add(protocol.CompletionItem{Label: name.id, Kind: protocol.CompletionItemKindVariable, Detail: name.detail}, text)
	}
}

// flowAt returns the id of the flow that a part of a file is about: that of the nearest key
// flow, or else the first flow of the document.
func (s *syntaxIndex) flowAt(o *mappingNode) string {
	for ; o != nil; o = o.parent {
		if id := o.node.GetText("flow"); id != "" {
			return id
		}
	}
	for _, e := range s.entities {
		if e.class.kind() == spec.KindFlow {
			return e.id
		}
	}
	return ""
}

// namedTarget returns the declaration of what a word of a file names in its document, with
// the analysis of the document; nil for none.
func (s *server) namedTarget(ctx context.Context, root string, m *syntaxWord) (*analysis, *nameUse) {
	k := s.lang().kindOf(root)
	if k == nil || !m.isName() {
		return nil, nil
	}
	a := s.workspace.analyze(ctx, s.workspace.documentOf(k, root))
	if a == nil {
		return nil, nil
	}
	isInput := m.field.names[0] == namesInputs
	for _, u := range a.index().uses {
		kind := string(u.entity.Kind())
		if u.kind == declaredName && u.entity.EntityID() == m.text &&
			(slices.Contains(m.field.names, kind) || isInput && kind == string(spec.KindVariable)) {
			return a, &u
		}
	}
	return nil, nil
}
