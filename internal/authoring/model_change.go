package authoring

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/qtype-dev/qtype/internal/catalogue"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
)

// ModelChange is what changes if models of a document were others.
type ModelChange struct {
	Models   []ModelPair
	Appeared diag.List // diagnostics that only the changed document has
	Gone     diag.List // diagnostics that only the document as it is has
}

// ModelPair is a model of a document, and what it would be.
type ModelPair struct {
	ID       string // in the document
	Old, New ModelFacts
}

// ModelFacts are what is known of a model before a run.
type ModelFacts struct {
	Provider      string   `json:"provider"`
	Name          string   `json:"model_id"`
	ContextWindow int      `json:"context_window,omitempty"`
	MaxOutput     int      `json:"max_output,omitempty"`
	Input         *float64 `json:"input,omitempty"`  // price of a million tokens that it reads; nil if unknown
	Output        *float64 `json:"output,omitempty"` // price of a million tokens that it writes; nil if unknown
}

// readForEachWritten is how many tokens a call is assumed to read for each one that it writes.
const readForEachWritten = 3

// Ratio estimates how many times the price of a call the new model costs, for calls that read
// three tokens for each one that they write. It is false if a price is unknown.
func (p ModelPair) Ratio() (float64, bool) {
	before, ok := p.Old.blended()
	after, known := p.New.blended()
	if !ok || !known || before == 0 {
		return 0, false
	}
	return after / before, true
}

func (f ModelFacts) blended() (float64, bool) {
	if f.Input == nil || f.Output == nil {
		return 0, false
	}
	return readForEachWritten**f.Input + *f.Output, true
}

// CompareModels checks a document as it is, and as if models had other names: NAME or
// PROVIDER/NAME by the id of the model.
func CompareModels(ctx context.Context, path string, models map[string]string, o Options) (*ModelChange, error) {
	before, was := Check(ctx, path, o)
	if err := HasModels(before.Document, models); err != nil {
		return nil, err
	}
	o.Loader.Models = models
	after, is := Check(ctx, path, o)
	made := &ModelChange{Appeared: without(is, was), Gone: without(was, is)}
	for _, id := range slices.Sorted(maps.Keys(models)) {
		made.Models = append(made.Models, ModelPair{ID: id, Old: factsOf(modelOf(before.Document, id), o.Loader.Day), New: factsOf(modelOf(after.Document, id), o.Loader.Day)})
	}
	return made, nil
}

// HasModels returns an error if a document does not have the models of these ids.
func HasModels(doc *spec.Document, models map[string]string) error {
	var ids []string
	for _, m := range modelsOf(doc) {
		ids = append(ids, m.EntityID())
	}
	for _, id := range slices.Sorted(maps.Keys(models)) {
		if slices.Contains(ids, id) {
			continue
		}
		return fmt.Errorf("the document has no model %q%s", id, diag.DidYouMean(id, ids))
	}
	return nil
}

// modelsOf lists the models of a document and of the documents that it references.
func modelsOf(doc *spec.Document) []spec.ModelEntity {
	models := doc.Models
	if doc.Application != nil {
		models = slices.Concat(models, doc.Application.Models)
		for _, d := range doc.Application.Documents() {
			models = append(models, d.Models...)
		}
	}
	return models
}

// modelOf returns the model of an id, which exists.
func modelOf(doc *spec.Document, id string) *spec.Model {
	for _, m := range modelsOf(doc) {
		if m.EntityID() == id {
			return m.Base()
		}
	}
	return &spec.Model{}
}

// factsOf returns what the document and the catalogue say of a model on a day.
func factsOf(m *spec.Model, day time.Time) ModelFacts {
	facts := ModelFacts{Provider: m.Provider, Name: m.Name(), ContextWindow: m.ContextWindow}
	row, ok := m.Known()
	if !ok {
		row = &catalogue.Model{}
	}
	if facts.ContextWindow == 0 {
		facts.ContextWindow = row.ContextWindow
	}
	facts.MaxOutput = row.MaxOutput
	if row.Prices != nil {
		rates := row.Prices.RatesAt(day, "", 0)
		facts.Input, facts.Output = rates.Input, rates.Output
	}
	return facts
}

// without returns the diagnostics of a list that another one does not have.
func without(list, other diag.List) diag.List {
	known := map[string]bool{}
	for _, d := range other {
		known[d.Error()] = true
	}
	return slices.DeleteFunc(slices.Clone(list), func(d diag.Diagnostic) bool { return known[d.Error()] })
}
