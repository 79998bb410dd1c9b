package eval

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/spec"
)

// settings checks the values of the keys that a type of metrics requires.
func settings(m *spec.Metric, row spec.MetricRow, app *spec.Application) error {
	for _, key := range row.Required {
		var err error
		switch key {
		case "pattern":
			_, err = Pattern(m)
		case "schema":
			_, err = ResultSchema(m)
		case "model":
			err = checkModel(m, row, app)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// judgesOf returns the chat models of a metric.
func judgesOf(m *spec.Metric, app *spec.Application) (all []*spec.Model, err error) {
	ids := m.Judges
	switch {
	case m.Model != "" && len(ids) > 0:
		return nil, errors.New("the metric has model and judges: use one of them")
	case m.Model != "":
		ids = []string{m.Model}
	case len(ids) == 0:
		return nil, fmt.Errorf("a metric of type %s needs model", m.Type)
	}
	for i, id := range ids {
		found, err := ModelOf(app, id)
		chat, isChat := found.(*spec.Model)
		switch {
		case err != nil:
			return nil, err
		case !isChat:
			return nil, fmt.Errorf("model %s is not a chat model", id)
		case slices.Contains(ids[:i], id):
			return nil, fmt.Errorf("model %s is twice among the judges: votes is how often each is asked", id)
		}
		all = append(all, chat)
	}
	return all, nil
}

// checkLabels checks the labels of a judge, and the set by which it is checked.
func checkLabels(m *spec.Metric) error {
	if m.Labels != nil && len(m.Labels) < 2 {
		return errors.New("a judge needs at least two labels")
	}
	for _, label := range slices.Sorted(maps.Keys(m.Labels)) {
		if score := m.Labels[label]; !(score >= 0 && score <= 1) {
			return fmt.Errorf("the score of label %s is %v, not from 0 to 1", label, score)
		}
	}
	switch {
	case m.Check == nil:
	case m.Check.MinKappa == nil && m.Check.MinAccuracy == nil:
		return errors.New("check needs min_kappa or min_accuracy, below which the judge is refused")
	case m.Type == "judge" && m.Labels == nil && m.Threshold == nil:
		return errors.New("check needs a judge with labels, or with a threshold from which on results pass")
	case m.Type == "relevance" && m.Threshold == nil:
		return errors.New("check needs a threshold from which on results pass")
	}
	return nil
}

// checkModel checks that a metric names a model of its kind.
func checkModel(m *spec.Metric, row spec.MetricRow, app *spec.Application) error {
	declared, err := ModelOf(app, m.Model)
	if err != nil {
		return err
	}
	switch _, embeds := declared.(*spec.EmbeddingModel); {
	case row.Embeds && !embeds:
		return fmt.Errorf("model %s is not an embedding model", m.Model)
	case embeds && !row.Embeds:
		return fmt.Errorf("model %s is not a chat model", m.Model)
	}
	return nil
}

// Pattern returns the regular expression of a metric.
func Pattern(m *spec.Metric) (*regexp.Regexp, error) {
	pattern, err := regexp.Compile(m.Pattern)
	if err != nil {
		return nil, fmt.Errorf("invalid regular expression %q: %s", m.Pattern, strings.TrimPrefix(err.Error(), "error parsing regexp: "))
	}
	return pattern, nil
}

// ResultSchema returns the JSON schema of a metric.
func ResultSchema(m *spec.Metric) (*jsonschema.Resolved, error) {
	text, err := json.Marshal(m.Schema)
	if err != nil {
		return nil, errors.New("the schema is not JSON")
	}
	schema, err := compileSchema(text)
	if err != nil {
		return nil, fmt.Errorf("invalid JSON schema: %s", textfmt.OneLine(err.Error()))
	}
	return schema, nil
}

// compileSchema prepares a schema of draft-07 or draft 2020-12. It reads no files.
func compileSchema(text []byte) (*jsonschema.Resolved, error) {
	declared := &jsonschema.Schema{}
	if err := json.Unmarshal(text, declared); err != nil {
		return nil, err
	}
	// With ValidateDefaults an unknown draft is an error here, not of each result.
	return declared.Resolve(&jsonschema.ResolveOptions{ValidateDefaults: true})
}

// ModelOf returns a model of the application by its id.
func ModelOf(app *spec.Application, id string) (spec.ModelEntity, error) {
	var ids []string
	for _, d := range app.Documents() {
		for _, m := range d.Models {
			if m.EntityID() == id {
				return m, nil
			}
			ids = append(ids, m.EntityID())
		}
	}
	return nil, fmt.Errorf("no model has the id %q; there are: %s", id, textfmt.List(ids))
}
