package lsp

import (
	"context"
	"reflect"
	"strings"

	"github.com/qtype-dev/qtype/internal/catalogue"
	"github.com/qtype-dev/qtype/internal/lsp/protocol"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/spec"
)

// inlayHints handles textDocument/inlayHint: the limits of models and memories that a
// document does not set.
func (s *server) inlayHints(ctx context.Context, p protocol.InlayHintParams) ([]protocol.InlayHint, error) {
	hints := []protocol.InlayHint{}
	d, err := s.openDocument(p.TextDocument)
	if err != nil {
		return hints, err
	}
	syntax := s.syntaxOf(d)
	var rows *catalogue.Catalogue
	if roots := s.workspace.rootsOf(d.path); len(roots) > 0 {
		rows = s.workspace.analyze(ctx, roots[0]).catalogue()
	}
	for _, e := range syntax.entities {
		if e.path != d.path {
			continue
		}
		at, text := e.idNode, ""
		switch e.class.kind() {
		case spec.KindModel:
			if named := e.node.Get(modelKey); named != nil {
				at = named
			}
			text = e.modelHint(rows)
		case spec.KindMemory:
			text = e.memoryHint()
		}
		if position := d.position(at.End); text != "" && p.Range.Contains(position) {
			hints = append(hints, protocol.InlayHint{Position: position, Label: text, PaddingLeft: true})
		}
	}
	return hints, nil
}

// modelHint returns the limits of a model that the catalogue has.
func (e *entity) modelHint(rows *catalogue.Catalogue) string {
	m := modelAt(e.mappingNode, rows)
	if m.ModelID == "" {
		m.ModelID = e.id
	}
	row, ok := m.Known()
	if !ok {
		return ""
	}
	var limits []string
	if row.ContextWindow > 0 && e.node.Get("context_window") == nil {
		limits = append(limits, "context "+textfmt.Thousands(row.ContextWindow))
	}
	if row.MaxOutput > 0 && e.class.goType != reflect.TypeFor[spec.EmbeddingModel]() {
		limits = append(limits, "output "+textfmt.Thousands(row.MaxOutput))
	}
	return strings.Join(limits, ", ")
}

// memoryHint returns the limits of a memory's policy that have their defaults.
func (e *entity) memoryHint() string {
	row, _ := spec.FindPolicy(spec.Policy(e.node.GetText("policy")))
	var limits []string
	for _, l := range row.Limits {
		if value, ok := l.Default(); ok && e.node.Get(l.Key) == nil {
			limits = append(limits, l.Key+" "+textfmt.Number(value))
		}
	}
	return strings.Join(limits, ", ")
}
