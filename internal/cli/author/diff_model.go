package author

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/qtype-dev/qtype/internal/authoring"
	"github.com/qtype-dev/qtype/internal/cli"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/loader"
	"github.com/qtype-dev/qtype/spec/diag"
)

// runModels compares a document with itself as if models had other names.
func (d *diffCommand) runModels(ctx context.Context, path string) error {
	change, err := authoring.CompareModels(ctx, path, d.models, authoring.Options{Loader: loader.Options{Day: today()}})
	if err != nil {
		return err
	}
	if d.format.Value == "json" {
		err = d.writeModelsJSON(change)
	} else {
		err = d.writeModels(change)
	}
	if err == nil && change.Appeared.Errors() > 0 {
		return cli.ErrSilent
	}
	return err
}

// writeModels writes the comparison as text.
func (d *diffCommand) writeModels(change *authoring.ModelChange) error {
	var b strings.Builder
	for _, m := range change.Models {
		fmt.Fprintf(&b, "model %s: %s %s → %s %s\n", m.ID, m.Old.Provider, terminal.Clean(m.Old.Name), m.New.Provider, terminal.Clean(m.New.Name))
		for _, line := range []struct{ what, old, new string }{
			{"context window", orUnknown(tokens(m.Old.ContextWindow)), orUnknown(tokens(m.New.ContextWindow))},
			{"output", orUnknown(tokens(m.Old.MaxOutput)), orUnknown(tokens(m.New.MaxOutput))},
			{"$ in", orUnknown(dollars(m.Old.Input)), orUnknown(dollars(m.New.Input))},
			{"$ out", orUnknown(dollars(m.Old.Output)), orUnknown(dollars(m.New.Output))},
		} {
			fmt.Fprintf(&b, "  %-15s %s → %s\n", line.what, line.old, line.new)
		}
		if ratio, ok := m.Ratio(); ok {
			fmt.Fprintf(&b, "  %-15s %.2f × for calls that read 3 tokens for each one that they write\n", "cost", ratio)
		}
	}
	if _, err := io.WriteString(d.Out, b.String()); err != nil {
		return err
	}
	for _, part := range []struct {
		title string
		list  diag.List
	}{{"would be reported", change.Appeared}, {"would not be reported any more", change.Gone}} {
		if len(part.list) == 0 {
			continue
		}
		fmt.Fprintf(d.Out, "\n%s:\n", part.title)
		if err := diag.Text(d.Out, part.list, d.DiagnosticOptions(d.OutTerminal)); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(d.Out, "\n%s and %s would appear\n", textfmt.Count(change.Appeared.Errors(), "error"), textfmt.Count(change.Appeared.Warnings(), "warning"))
	return err
}

// orUnknown replaces an empty text.
func orUnknown(text string) string {
	if text == "" {
		return "unknown"
	}
	return text
}

// writeModelsJSON writes the comparison as one JSON object.
func (d *diffCommand) writeModelsJSON(change *authoring.ModelChange) error {
	type model struct {
		ID    string               `json:"id"`
		Old   authoring.ModelFacts `json:"old"`
		New   authoring.ModelFacts `json:"new"`
		Ratio *float64             `json:"cost_ratio,omitempty"`
	}
	made := struct {
		Models   []model  `json:"models"`
		Appeared []string `json:"appeared"`
		Gone     []string `json:"gone"`
	}{Appeared: []string{}, Gone: []string{}}
	for _, m := range change.Models {
		one := model{ID: m.ID, Old: m.Old, New: m.New}
		if ratio, ok := m.Ratio(); ok {
			one.Ratio = &ratio
		}
		made.Models = append(made.Models, one)
	}
	for _, found := range change.Appeared {
		made.Appeared = append(made.Appeared, found.Error())
	}
	for _, found := range change.Gone {
		made.Gone = append(made.Gone, found.Error())
	}
	out := json.NewEncoder(d.Out)
	out.SetEscapeHTML(false)
	return out.Encode(made)
}
