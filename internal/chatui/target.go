package chatui

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/spec/value"
)

// Target is the flow of a conversation with the variables that carry its messages.
type Target struct {
	flow   *spec.Flow
	input  *spec.Variable // takes the user's message
	output *spec.Variable // holds the answer
	fixed  map[string]any // the other inputs, the same in every turn
}

// Flow returns the id of the flow.
func (t *Target) Flow() string { return t.flow.ID }

// NewTarget selects a conversational flow: that of the id, or the first one if id is
// empty. inputs is a JSON object with the flow's other inputs; it may be empty. An
// terminal.UsageError concerns these.
func NewTarget(app *spec.Application, id, inputs string) (*Target, error) {
	if app == nil {
		return nil, errors.New("the document is not an application: only an application can run")
	}
	var all, conversational []string
	var flow *spec.Flow
	for _, f := range app.Flows {
		all = append(all, f.ID)
		if f.Interface == nil || f.Interface.Type != "Conversational" {
			continue
		}
		conversational = append(conversational, f.ID)
		if flow == nil && (id == "" || id == f.ID) {
			flow = f
		}
	}
	switch {
	case flow != nil:
	case id != "" && !slices.Contains(all, id):
		return nil, fmt.Errorf("no flow has the id %q; there are: %s%s", id, textfmt.List(all), diag.DidYouMean(id, all))
	case id != "":
		return nil, fmt.Errorf("flow %s is not conversational; conversational flows: %s", id, textfmt.List(conversational))
	default:
		return nil, fmt.Errorf("application %s has no conversational flow (interface: {type: Conversational}); use qtype run for other flows", app.ID)
	}
	t := &Target{flow: flow, fixed: map[string]any{}}
	return t, t.bind(inputs)
}

// bind finds the message variables of the flow and takes the other inputs from JSON.
func (t *Target) bind(inputs string) error {
	given := map[string]any{}
	if inputs != "" {
		v, err := value.Parse(inputs)
		r, ok := v.(*value.Record)
		if err != nil || !ok {
			return terminal.Usagef("-i cannot be %q: expected a JSON object with the flow's other inputs", inputs)
		}
		given = maps.Collect(r.All())
	}
	for _, ref := range t.flow.Inputs {
		v := ref.To
		if v.Type.Is("ChatMessage") && t.input == nil {
			t.input = v
			continue
		}
		x, ok := given[v.ID]
		if !ok && !v.IsOptional() {
			return terminal.Usagef("flow %s also needs %s (%s): pass -i '{%q: …}'", t.flow.ID, v.ID, v.Type, v.ID)
		}
		if ok {
			t.fixed[v.ID] = x
		}
		delete(given, v.ID)
	}
	if names := slices.Sorted(maps.Keys(given)); len(names) > 0 {
		return terminal.Usagef("-i: flow %s has no other input %q", t.flow.ID, names[0])
	}
	for _, ref := range t.flow.Outputs {
		if ref.To.Type.Is("ChatMessage") && t.output == nil {
			t.output = ref.To
		}
	}
	if t.input == nil || t.output == nil { // the validator reports it as QT312 or QT315
		return fmt.Errorf("flow %s must have an input and an output of type ChatMessage", t.flow.ID)
	}
	return nil
}
