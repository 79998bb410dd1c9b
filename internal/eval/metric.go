package eval

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
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
