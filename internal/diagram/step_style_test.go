package diagram

import (
	"reflect"
	"testing"

	"github.com/qtype-dev/qtype/spec"
)

// TestStepStyle checks that the style of each type of step follows from its
// declaration.
func TestStepStyle(t *testing.T) {
	flow := spec.Ref[*spec.Flow]{ID: "f", To: &spec.Flow{ID: "f"}}
	calls := map[string]spec.Step{ // steps that are drawn by the flows that they run
		"InvokeFlow": &spec.InvokeFlow{Flow: flow}, "Loop": &spec.Loop{Flow: flow},
		"Parallel": &spec.Parallel{Flows: []spec.Ref[*spec.Flow]{flow}}, "Switch": &spec.Switch{Cases: []*spec.SwitchCase{{Flow: flow}}},
	}
	styles := map[string]stepStyle{
		"Agent":          {"hex", "🤖", "model-call"},
		"LLMInference":   {"rounded", "✨", "model-call"},
		"Reranker":       {"rounded", "✨", "model-call"},
		"PromptTemplate": {"doc", "📄", "local"},
		"Decoder":        {"lean-r", "🔍", "local"},
		"VectorSearch":   {"cyl", "🔎", "external"},
		"DocumentSearch": {"cyl", "📚", "external"},
		"IndexUpsert":    {"rect", "💾", "external"},
		"InvokeFlow":     {"subproc", "🔄", "flow-call"},
		"Switch":         {"subproc", "🔄", "flow-call"},
		"Loop":           {"subproc", "🔄", "flow-call"},
		"Parallel":       {"subproc", "🔄", "flow-call"},
	}
	for _, name := range []string{"InvokeEmbedding", "DocumentEmbedder", "DocumentSplitter", "BedrockReranker"} {
		styles[name] = stepStyle{"rect", "⚙️", "model-call"}
	}
	for _, name := range []string{"InvokeTool", "FileSource", "FileWriter", "SQLSource", "DocumentSource"} {
		styles[name] = stepStyle{"rect", "⚙️", "external"}
	}
	for _, step := range spec.StepTypes() {
		name := spec.TypeName(step)
		if s := calls[name]; s != nil {
			step = s
		}
		if d, ok := step.(*spec.Decoder); ok {
			d.Format = "json"
		}
		want, ok := styles[name]
		if !ok {
			want = stepStyle{"rect", "⚙️", "local"}
		}
		if got := stepStyleOf(spec.PlanStep(step)); got != want {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
}

// TestResourceStyles checks that each kind of entity that an application declares
// has a style.
func TestResourceStyles(t *testing.T) {
	app := reflect.TypeFor[spec.Application]()
	for i := range app.NumField() {
		f := app.Field(i).Type
		if f.Kind() == reflect.Slice {
			f = f.Elem()
		}
		for _, u := range spec.Unions() {
			if u.Type == f {
				f = reflect.TypeOf(u.Cases[0].New())
			}
		}
		if f.Kind() != reflect.Pointer {
			continue
		}
		e, ok := reflect.New(f.Elem()).Interface().(spec.Entity)
		if ok && isResource(e.Kind()) && kindRank(e.Kind()) == len(resourceStyles()) {
			t.Errorf("kind %q has no row in resourceStyles", e.Kind())
		}
	}
}
