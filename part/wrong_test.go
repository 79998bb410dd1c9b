package part_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/part"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/steps"
	"github.com/qtype-dev/qtype/tool"
)

// never is the implementation of steps that no document runs.
type never struct{}

func (never) Make(*steps.Host) (steps.Process, error) { return nil, nil }

type (
	withFunc struct {
		spec.StepBase `doc:"x"`
		never
		F func() `yaml:"f" doc:"x"`
	}
	withInt64 struct {
		spec.StepBase `doc:"x"`
		never
		N []int64 `yaml:"n" doc:"x"`
	}
	withDefault struct {
		spec.StepBase `doc:"x"`
		never
		N int `yaml:"n" default:"many" doc:"x"`
	}
	withRule struct {
		spec.StepBase `doc:"x"`
		never
		N int `yaml:"n" validate:"even" doc:"x"`
	}
	withBound struct {
		spec.StepBase `doc:"x"`
		never
		Flag bool `yaml:"flag" validate:"gte=1" doc:"x"`
	}
	withID struct {
		spec.StepBase `doc:"x"`
		never
		Name string `yaml:"id" doc:"x"`
	}
	withHidden struct {
		spec.StepBase `doc:"x"`
		never
		n int `yaml:"n" doc:"x"` //nolint:unused // the mistake
	}
	withType struct {
		spec.StepBase `doc:"x" in:"exactly 1; txt"`
		never
	}
	withRows struct {
		spec.StepBase `doc:"x" rows:"some"`
		never
	}
	withPointer struct {
		*spec.StepBase `doc:"x"`
		never
	}
	withKey struct {
		spec.StepBase `doc:"x"`
		never
	}
)

// withPanic has rules that depend on what an empty value does not have.
type withPanic struct {
	spec.StepBase `doc:"x"`
	never
}

func (*withPanic) Rules() []spec.PartRule { panic("no value") }

func (*withKey) Rules() []spec.PartRule {
	return []spec.PartRule{{Code: "odd", Title: "x", Doc: "x", Key: "votes", Broken: func() string { return "" }}}
}

// TestWith_Declarations: a declaration that no document can use is an error when the program starts.
func TestWith_Declarations(t *testing.T) {
	for want, p := range map[string]part.Part{
		"part 1 is the zero value":                                              {},
		`store type "none": there is no function that opens a store`:            part.Store("none", "x", nil),
		`provider "none": there is no function that makes models`:               part.Provider(spec.Provider{Name: "none", BaseURL: "http://h"}, nil, nil),
		`the key f has the type func(), which documents cannot set`:             part.Step[withFunc](),
		`the key n has the type []int64, which documents cannot set`:            part.Step[withInt64](),
		`the key n cannot have the default "many"`:                              part.Step[withDefault](),
		`the key n cannot have the rule "even" in the tag validate`:             part.Step[withRule](),
		`the key flag cannot have the rule "gte=1" in the tag validate`:         part.Step[withBound](),
		`the key id exists twice`:                                               part.Step[withID](),
		`the key n is of a field that is not exported`:                          part.Step[withHidden](),
		`the tag in or out demands the type "txt", which there is not`:          part.Step[withType](),
		`the tag rows of the base cannot be "some"`:                             part.Step[withRows](),
		`the base StepBase is not embedded as a struct`:                         part.Step[withPointer](),
		`the rule "odd" is about the key "votes", which the type does not have`: part.Step[withKey](),
		`type "withPanic": Rules panicked: no value`:                            part.Step[withPanic](),
	} {
		if _, err := part.With(t.Context(), p); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// broken is a step with the mistake that its document names.
type broken struct {
	spec.StepBase `doc:"Makes mistakes." in:"question: text; exactly 1" out:"answer: text; exactly 1"`
	Mistake       string `yaml:"mistake" doc:"The mistake."`
}

func (s *broken) Rules() []spec.PartRule {
	return []spec.PartRule{{Code: "rule", Title: "x", Doc: "x", Key: "mistake", Broken: func() string {
		if s.Mistake == "rule" {
			panic("no rule")
		}
		return ""
	}}}
}

func (s *broken) Make(*steps.Host) (steps.Process, error) {
	switch s.Mistake {
	case "make":
		panic("no step")
	case "nothing":
		return nil, nil
	}
	return func(_ context.Context, w *steps.Work) error { return w.Set(0, make(chan int)) }, nil
}

// gone is a tool without a function.
type gone struct {
	spec.ToolBase `doc:"Does nothing."`
}

func (*gone) Make(tool.Host) (tool.ClientHandler, error) { return nil, nil }

// TestWith_Mistakes: a mistake of a part is an error that names the part, and no panic.
func TestWith_Mistakes(t *testing.T) {
	ctx, err := part.With(t.Context(), part.Step[broken](), part.Tool[gone](),
		part.Provider(spec.Provider{Name: "silent", Doc: "x", BaseURL: "http://127.0.0.1:9", Key: spec.OptionalKey}, func(model.Connection) (model.Chat, error) { return nil, nil }, nil),
		part.Store("void", "x", func(string) (store.Store, error) { return nil, nil }))
	testkit.Must(t, err)
	const head = `id: wrong
models: [{type: Model, id: m, provider: silent, model_id: x}]
tools: [{type: gone, id: lost, name: lost, description: x, outputs: [{id: answer, type: text}]}]
`
	const flow = `flows:
  - id: main
    variables: [{id: text, type: text}, {id: answer, type: text}]
    inputs: [text]
    outputs: [answer]
    steps: [{id: work, inputs: [text], outputs: [answer], `
	const void = "stores: [{id: s, type: void, url: 'void:x'}]\nmemories: [{id: talk, store: s}]\n"
	for _, test := range []struct{ document, want string }{
		{head + flow + "type: broken, mistake: rule}]\n", "wrong.qtype.yaml:9:82: the rule panicked: no rule"},
		{head + flow + "type: broken, mistake: make}]\n", "wrong.qtype.yaml:9:13: step work: Make panicked: no step"},
		{head + flow + "type: broken, mistake: nothing}]\n", "step work: its Make returned no function"},
		{head + flow + "type: broken, mistake: value}]\n", "answer: expected text, got something that is not a value"},
		{head + strings.Replace(flow, "inputs: [text], outputs: [answer], ", "", 1) + "type: InvokeTool, tool: lost, input_bindings: {}, output_bindings: {answer: answer}}]\n", "tool lost: its Make returned no function"},
		{head + flow + "type: LLMInference, model: m}]\n", "model m: its provider returned no client"},
		{head + void + flow + "type: LLMInference, model: m, memory: talk}]\n", "store s: its type void returned no store"},
	} {
		if got := runs(ctx, testkit.WriteFile(t, "wrong.qtype.yaml", test.document)); got == nil || !strings.Contains(got.Error(), test.want) {
			t.Errorf("got %v, want %s", got, test.want)
		}
	}
}

// runs returns the first error of a run of one row.
func runs(ctx context.Context, file string) error {
	app, err := qtype.Open(ctx, file)
	if err != nil {
		return err
	}
	defer app.Close(ctx)
	for row, err := range app.Run(ctx, "main", slices.Values([]runtime.Input{{Values: map[string]any{"text": "hello"}}})) {
		if err == nil && row.Err != nil {
			err = row.Err
		}
		return err
	}
	return errors.New("no row")
}
