package estimate

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/qtype-dev/qtype/internal/model/mock"
	"github.com/qtype-dev/qtype/internal/typeschema"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/steps"
)

// answers is a model without a mock in the document: its answers have the expected length, and the
// form that the request or a Decoder after the step needs.
type answers struct {
	model.Chat              // answers with a text
	instance     model.Chat // answers with an instance of the schema of the request
	declared     *spec.Model
	dry          *dryRun
	outputTokens int
}

// newAnswers makes the model whose answers have n tokens.
func newAnswers(m *spec.Model, n int, dry *dryRun) (model.Chat, error) {
	a := &answers{declared: m, dry: dry, outputTokens: n}
	var err error
	if a.Chat, err = a.mock(strings.TrimSpace(strings.Repeat("word ", n))); err != nil {
		return nil, err
	}
	a.instance, err = a.mock("")
	return a, err
}

// mock returns a mock that answers with a text; with an instance of the schema for an empty one.
func (a *answers) mock(text string) (model.Chat, error) {
	answer := &spec.MockRule{Text: text, Echo: text == ""}
	return mock.New(&spec.Model{ID: a.declared.ID, Provider: "mock", Rules: []*spec.MockRule{answer}}, mock.Options{Replaces: a.declared})
}

// Generate answers.
func (a *answers) Generate(ctx context.Context, req model.Request) iter.Seq2[model.Event, error] {
	chosen := a.Chat
	if d := a.decoderOf(ctx); req.Schema != nil {
		chosen = a.instance
	} else if d != nil {
		made, err := a.decodable(d)
		if err != nil {
			return func(yield func(model.Event, error) bool) { yield(model.Event{}, err) }
		}
		chosen = made
	}
	return (&sized{chosen, a.outputTokens}).Generate(ctx, req)
}

// stepKey is the key of the step that calls a model.
type stepKey struct{}

// decoderOf returns the Decoder that reads an output of the step that calls the model; nil for none.
func (a *answers) decoderOf(ctx context.Context) *spec.Decoder {
	s, _ := ctx.Value(stepKey{}).(*spec.StepPlan)
	if s == nil {
		return nil
	}
	for _, out := range s.Step.Common().Outputs {
		if d := a.dry.decoders[out.To]; d != nil {
			return d
		}
	}
	return nil
}

// decodable returns a mock whose answer a Decoder can read.
func (a *answers) decodable(d *spec.Decoder) (model.Chat, error) {
	var outputs []*spec.Variable
	for _, out := range d.Outputs {
		outputs = append(outputs, out.To)
	}
	schemas := typeschema.New(typeschema.Style{Refs: "#/$defs/"})
	object := schemas.Record(typeschema.Fields(outputs))
	form, err := json.Marshal(append(object, typeschema.Member{Name: "$defs", Value: schemas.Defs()}))
	if err != nil {
		return nil, err
	}
	text, err := mock.Instance(form, "word")
	if err != nil || d.Format != "xml" {
		return a.answering(text, err)
	}
	var fields map[string]any
	if err := json.Unmarshal([]byte(text), &fields); err != nil {
		return nil, err
	}
	return a.answering(asXML(fields), nil)
}

func (a *answers) answering(text string, err error) (model.Chat, error) {
	if err != nil {
		return nil, err
	}
	return a.mock(text)
}

// asXML writes the fields of an answer as the elements of one: a Decoder reads no nested ones.
func asXML(fields map[string]any) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		fmt.Fprintf(&b, "<%s>%v</%[1]s>", name, fields[name])
	}
	return "<answer>" + b.String() + "</answer>"
}

// calling is the span of a step on a row: the models that it calls know the step.
type calling struct {
	step  *spec.StepPlan
	waves *waves       // nil without batches
	calls atomic.Int64 // in batches, of an outermost step
}

// Context returns the context of the step.
func (c *calling) Context(ctx context.Context) context.Context {
	if c.waves != nil && ctx.Value(callsKey{}) == nil {
		ctx = context.WithValue(ctx, callsKey{}, &c.calls)
	}
	return context.WithValue(ctx, stepKey{}, c.step)
}

// End notes how many calls the step has made.
func (c *calling) End(*steps.OperationResult) {
	if c.waves != nil {
		c.waves.ended(c.step.Step.EntityID(), c.calls.Load())
	}
}
