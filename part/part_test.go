package part_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/part"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
	"github.com/qtype-dev/qtype/steps"
	"github.com/qtype-dev/qtype/tool"
)

func own(name string) part.Part {
	return part.Store(name, "a store", func(string) (store.Store, error) { return memory.NewInProcess(), nil })
}

func open(ctx context.Context, file string) (*runtime.App, error) {
	ctx, err := part.With(ctx, own("shelf"))
	if err != nil {
		return nil, err
	}
	return qtype.Open(ctx, file)
}

// bell is a tool whose type documents name.
type bell struct {
	spec.ToolBase `doc:"Rings."`
	Times         int `yaml:"times" doc:"How often it rings."`
}

func (*bell) Make(tool.Host) (tool.ClientHandler, error) {
	return func(context.Context, tool.Request) (any, error) { return nil, nil }, nil
}

// silent has a key without a description.
type silent struct {
	spec.ToolBase `doc:"Does nothing."`
	Times         int `yaml:"times"`
}

func (*silent) Make(tool.Host) (tool.ClientHandler, error) { return nil, nil }

// twice asks its model twice and declares one call.
type twice struct {
	spec.StepBase `doc:"Asks twice." in:"question: text; exactly 1; text" out:"answer: text; exactly 1; text"`
	Model         spec.Ref[spec.ModelEntity] `yaml:"model" jsonschema:"required" calls:"1" doc:"The model."`
}

func (s *twice) Make(h *steps.Host) (steps.Process, error) {
	m, err := h.Model(s.Model.To, nil)
	return func(ctx context.Context, w *steps.Work) error {
		question, _ := w.Input(0).(string)
		for range 2 {
			if _, err := m.Ask(ctx, w, chat.Text(chat.User, question)); err != nil {
				return err
			}
		}
		return w.Set(0, "never")
	}, err
}

// secret calls a model without saying how often.
type secret struct {
	spec.StepBase `doc:"Asks."`
	Model         spec.Ref[spec.ModelEntity] `yaml:"model" doc:"The model."`
}

func (*secret) Make(*steps.Host) (steps.Process, error) { return nil, nil }

// TestStep_Calls: a step cannot call its model more often than it declares, which is what the worst case of a run counts.
func TestStep_Calls(t *testing.T) {
	ctx, err := part.With(t.Context(), part.Step[twice]())
	testkit.Must(t, err)
	app, err := qtype.Open(ctx, testkit.WriteFile(t, "twice.qtype.yaml", `id: twice
models: [{type: Model, id: m, provider: mock}]
flows:
  - id: main
    variables: [{id: text, type: text}, {id: answer, type: text}]
    inputs: [text]
    outputs: [answer]
    steps: [{type: twice, id: ask, model: m, inputs: [text], outputs: [answer]}]
`), qtype.WithEphemeral())
	testkit.Must(t, err)
	defer app.Close(ctx)
	usages := 0
	counted := runtime.WithEvents(func(steps.Event) { usages++ }, steps.EventUsage)
	for row, err := range app.Run(ctx, "main", slices.Values([]runtime.Input{{Values: map[string]any{"text": "hello"}}}), counted) {
		testkit.Must(t, err)
		if row.Err == nil || !strings.Contains(row.Err.Error(), "step ask calls its models more than 1 times") {
			t.Errorf("got %v", row.Err)
		}
	}
	if usages != 1 {
		t.Errorf("%d usages, want 1", usages)
	}
}

// TestWith reads a document with a part, and without.
func TestWith(t *testing.T) {
	const document = `id: own
stores: [{id: mine, type: shelf, url: "shelf:a"}]
memories: [{id: talk, store: mine}]
models: [{type: Model, id: m, provider: mock}]
flows:
  - id: main
    variables: [{id: text, type: text}, {id: answer, type: text}]
    inputs: [text]
    outputs: [answer]
    steps: [{type: LLMInference, id: ask, model: m, memory: talk, inputs: [text], outputs: [answer]}]
`
	file := testkit.WriteFile(t, "own.qtype.yaml", document)
	app, err := open(t.Context(), file)
	testkit.Must(t, err)
	testkit.Must(t, app.Close(t.Context()))
	if _, err := qtype.Open(t.Context(), file); err == nil || !strings.Contains(err.Error(), `"type" cannot be "shelf"`) {
		t.Errorf("without the part: %v", err)
	}
}

// TestWith_Names: a name that is taken, or that no document can have, is an error.
func TestWith_Names(t *testing.T) {
	for _, test := range []struct {
		parts []part.Part
		want  string
	}{
		{[]part.Part{own("sqlite")}, `store type "sqlite": the store type sqlite has the name or the scheme already`},
		{[]part.Part{own("rediss")}, `store type "rediss": the store type redis has the name or the scheme already`},
		{[]part.Part{own("shelf"), own("shelf")}, `store type "shelf": the store type shelf has`},
		{[]part.Part{part.Provider(spec.Provider{Name: "openai", BaseURL: "http://h"}, nil, nil)}, `provider "openai": there is a provider of the name already`},
		{[]part.Part{part.Provider(spec.Provider{Name: "mine"}, nil, nil)}, `provider "mine": the row has no BaseURL`},
		{[]part.Part{part.Tool[bell](), part.Tool[bell]()}, `type "bell": there is a tool of the type already`},
		{[]part.Part{part.Tool[silent]()}, `type "silent": the key times has no description in the tag doc`},
		{[]part.Part{part.Step[secret]()}, `type "secret": the key model needs the tag calls`},
		{[]part.Part{own("My store")}, `store type "My store": a name has lower-case letters and digits`},
	} {
		if _, err := part.With(t.Context(), test.parts...); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("got %v, want %s", err, test.want)
		}
	}
}
