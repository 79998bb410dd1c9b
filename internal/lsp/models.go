package lsp

import (
	"fmt"
	"strings"
	"time"

	"github.com/qtype-dev/qtype/internal/catalogue"
	"github.com/qtype-dev/qtype/internal/lsp/protocol"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/spec"
)

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
