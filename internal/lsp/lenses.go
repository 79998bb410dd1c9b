package lsp

import (
	"context"
	"fmt"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/qtype-dev/qtype/internal/catalogue"
	"github.com/qtype-dev/qtype/internal/lsp/outline"
	"github.com/qtype-dev/qtype/internal/lsp/protocol"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/spec"
)

// runCommand is the editor's command of code lenses: it starts the program in a terminal.
const runCommand = "qtype.runInTerminal"

// codeLenses handles textDocument/codeLens: commands that run the flows of a document, or
// the tests and evaluations of a file.
func (s *server) codeLenses(_ context.Context, p protocol.TextDocumentParams) ([]protocol.CodeLens, error) {
	d, err := s.openDocument(p.TextDocument)
	if err != nil {
		return nil, err
	}
	lenses := []protocol.CodeLens{}
	roots := s.workspace.rootsOf(d.path)
	if len(roots) == 0 || !filepath.IsAbs(roots[0]) || isRemote(roots[0]) {
		return lenses, nil // not a file that a program can read
	}
	add := func(title string, at *outline.Node, inputs []protocol.InputToAsk, args ...string) {
		if slices.Contains(s.opts.Commands, args[0]) {
			run := protocol.ProgramToRun{Args: args, Cwd: filepath.Dir(roots[0]), Inputs: nonNil(inputs)}
			lenses = append(lenses, protocol.CodeLens{Range: d.rangeOf(at.Start, at.End),
				Command: protocol.Command{Title: title, Command: runCommand, Arguments: []protocol.ProgramToRun{run}}})
		}
	}
	syntax := s.syntaxOf(d)
	if k := s.lang().kindOf(d.path); k != nil {
		add("Run "+k.Command, &outline.Node{}, nil, k.Command, d.path)
		for _, m := range syntax.words[d.path] {
			if m.role == roleValue && m.field != nil && m.field.name == "name" && m.mapping.isA(reflect.TypeFor[spec.Test]()) {
				add("Run this test", m.node, nil, k.Command, d.path, "--run", "^"+regexp.QuoteMeta(m.text)+"$")
			}
		}
		return lenses, nil
	}
	for _, e := range syntax.entities {
		switch {
		case e.path != d.path || e.class.kind() != spec.KindFlow || e.id == "":
		case e.isConversational():
			add("Chat", e.idNode, syntax.inputsOf(e), "chat", roots[0], "--flow", e.id)
		default:
			add("Run", e.idNode, syntax.inputsOf(e), "run", roots[0], "--flow", e.id)
		}
	}
	return lenses, nil
}

// isA reports whether a mapping represents a struct. It accepts nil.
func (o *mappingNode) isA(t reflect.Type) bool {
	return o != nil && o.class != nil && o.class.goType == t
}

// isConversational reports whether a flow is a conversation.
func (e *entity) isConversational() bool {
	return e.node.Get("interface").GetText("type") == "Conversational"
}

// inputsOf returns the inputs of a flow that a command line needs: not those that are
// optional, nor the message of a conversation, which is typed later.
func (s *syntaxIndex) inputsOf(flow *entity) []protocol.InputToAsk {
	var asked []protocol.InputToAsk
	for _, id := range flow.ids("inputs") {
		kind := "text"
		if v := s.findEntity(id, reflect.TypeFor[*spec.Variable](), flow.mappingNode); v != nil {
			kind = v.node.GetText("type")
		}
		if strings.HasSuffix(kind, "?") || flow.isConversational() && kind == "ChatMessage" {
			continue
		}
		asked = append(asked, protocol.InputToAsk{Name: id, Type: kind})
	}
	return asked
}

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

// modelKey is the key whose values are names of models.
const modelKey = "model_id"

// modelAt returns the model that a mapping declares, with the rows of the user.
func modelAt(m *mappingNode, rows *catalogue.Catalogue) *spec.Model {
	return &spec.Model{Provider: m.node.GetText("provider"), ModelID: m.node.GetText(modelKey), BaseURL: m.node.GetText("base_url"), Catalogue: rows}
}

// catalogue returns the catalogue of the document: the loader gives all models the same.
func (a *analysis) catalogue() *catalogue.Catalogue {
	if a == nil || a.doc == nil || a.doc.Application == nil || len(a.doc.Application.Models) == 0 {
		return nil
	}
	return a.doc.Application.Models[0].Base().Catalogue
}

// catalogueText describes a model by its row, empty for an unknown one.
func catalogueText(m *spec.Model) string {
	row, ok := m.Known()
	if !ok {
		return ""
	}
	lines := []string{fmt.Sprintf("**%s** — %s", row.ID, row.Provider)}
	if row.ContextWindow > 0 {
		line := "Context window " + textfmt.Thousands(row.ContextWindow)
		if row.MaxOutput > 0 {
			line += ", output " + textfmt.Thousands(row.MaxOutput)
		}
		lines = append(lines, line+" tokens")
	}
	lines = append(lines, priceText(row))
	if row.Reasoning.Reasons() {
		text := "Reasoning " + row.Reasoning.Mode
		if len(row.Reasoning.Efforts) > 0 {
			text += ": `" + strings.Join(row.Reasoning.Efforts, "`, `") + "`"
		}
		lines = append(lines, text)
	}
	if row.Status != "" {
		text := "Status " + string(row.Status)
		if row.Shutdown != "" {
			text += ", shutdown " + row.Shutdown
		}
		if row.Replacement != "" {
			text += ", replacement `" + row.Replacement + "`"
		}
		lines = append(lines, text)
	}
	return strings.Join(lines, "\n\n")
}

// priceText describes the prices of today.
func priceText(row *catalogue.Model) string {
	if row.Prices == nil {
		return "Prices are not known"
	}
	rates := row.Prices.RatesAt(time.Now(), "", 0)
	text := "Prices"
	for _, rate := range []struct {
		name   string
		amount *float64
	}{{"input", rates.Input}, {"cached input", rates.CachedInput}, {"output", rates.Output}} {
		if rate.amount != nil {
			text += fmt.Sprintf(" %s $%s,", rate.name, textfmt.Amount(*rate.amount))
		}
	}
	return strings.TrimSuffix(text, ",") + " for a million tokens"
}

// proposeModels proposes the models of the provider that still answer.
func (c *completer) proposeModels(m *mappingNode) {
	provider := m.node.GetText("provider")
	for _, row := range catalogue.All() {
		embeds := m.class != nil && m.class.tag == "EmbeddingModel"
		if row.Provider != provider || row.Status == catalogue.Retired || embeds != (row.Kind == catalogue.Embedding) || row.Kind == catalogue.Rerank {
			continue
		}
		detail := ""
		if row.ContextWindow > 0 {
			detail = textfmt.Thousands(row.ContextWindow) + " tokens"
		}
		if row.Shutdown != "" {
			detail += ", shutdown " + row.Shutdown
		}
		item := protocol.CompletionItem{Label: row.ID, Kind: protocol.CompletionItemKindValue, Detail: strings.TrimPrefix(detail, ", "),
			Documentation: protocol.Markdown(catalogueText(&spec.Model{Provider: row.Provider, ModelID: row.ID}))}
		c.add(item, quoteID(row.ID))
	}
}
