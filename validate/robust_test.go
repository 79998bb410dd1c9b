package validate_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/loader"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/validate"
)

// checkedBy is like checked, for tests without a testing.TB.
func checkedBy(t interface{ Fatalf(string, ...any) }, text string) (*spec.Application, diag.List) {
	loaded, found := loader.LoadBytes(context.Background(), "app.qtype.yaml", []byte(text), emptyEnvironment())
	if found.Errors() > 0 {
		t.Fatalf("loading: %v\n%s", found.Err(), text)
	}
	return loaded.Document.Application, validate.Check(loaded.Document)
}

// TestCheck_WithoutPositions checks documents that are created by programs, with nil
// entities and without positions.
func TestCheck_WithoutPositions(t *testing.T) {
	step := func(id, model string) *spec.LLMInference {
		s := &spec.LLMInference{}
		s.ID, s.Model.ID = id, model
		return s
	}
	app := &spec.Application{ID: "app", Models: []spec.ModelEntity{nil, &spec.Model{ID: "writer", Provider: "mock"}},
		Memories: []*spec.Memory{nil, {}, {ID: "m"}, {ID: "m"}}, Types: []*spec.CustomType{nil, {}},
		Flows: []*spec.Flow{nil, {ID: "f", Steps: []*spec.StepItem{nil, {}, {Step: step("s", "writter")}, {Step: step("s2", "writer")}}}}}
	found := validate.Check(&spec.Document{Application: app})
	if got := fmt.Sprint(codes(found, diag.Error)); got != "[QT201 QT202 QT322 QT911]" {
		t.Errorf("got %v: %v", got, found)
	}
	if len(validate.Check(nil))+len(validate.Check(&spec.Document{})) > 0 {
		t.Error("an empty document has diagnostics")
	}
	for _, u := range spec.Unions() {
		for _, c := range u.Cases {
			doc := &spec.Document{Application: &spec.Application{ID: "app", Flows: []*spec.Flow{{ID: "f"}}}}
			switch n := c.New().(type) {
			case spec.Step:
				doc.Application.Flows[0].Steps = []*spec.StepItem{{Step: n}}
			case spec.Tool:
				doc.Tools = []spec.Tool{n}
			case spec.ModelEntity:
				doc.Models = []spec.ModelEntity{n}
			case spec.Index:
				doc.Application.Indexes = []spec.Index{n}
			case spec.Auth:
				doc.Auths = []spec.Auth{n}
			}
			validate.Check(doc) // must not panic on an empty entity
		}
	}
}

// TestCheck_LinksEverything checks that all references of a valid document are linked.
func TestCheck_LinksEverything(t *testing.T) {
	for _, rule := range validate.Rules() {
		loaded, found := checked(t, rule.Right)
		if found.Errors() > 0 || loaded.Document.Application == nil {
			continue
		}
		for _, f := range loaded.Document.Application.Flows {
			for _, item := range f.Steps {
				if item.Step == nil {
					t.Fatalf("%s: a step of flow %s is not linked", rule.Code, f.ID)
				}
				s := item.Step.Common()
				for _, r := range append(s.DerivedInputs, s.DerivedOutputs...) {
					if r.To == nil {
						t.Errorf("%s: %s of step %s is not linked", rule.Code, r.ID, s.ID)
					}
				}
			}
		}
		openRefs(reflect.ValueOf(loaded.Document), func(id string) { t.Errorf("%s: %q is not linked", rule.Code, id) })
	}
}

// openRefs calls report for every reference below v that is not empty and not linked.
func openRefs(v reflect.Value, report func(id string)) {
	switch v.Kind() {
	case reflect.Interface:
		openRefs(v.Elem(), report)
	case reflect.Pointer:
		if !v.IsNil() && v.Type() != reflect.TypeFor[*spec.Position]() {
			openRefs(v.Elem(), report)
		}
	case reflect.Slice:
		for i := range v.Len() {
			openRefs(v.Index(i), report)
		}
	case reflect.Struct:
		if ref, ok := v.Addr().Interface().(spec.Reference); ok {
			if id, _ := spec.Target(ref); id != "" && ref.Entity() == nil {
				report(id)
			}
			return
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() && v.Field(i).Kind() != reflect.Map && v.Type() != reflect.TypeFor[spec.Type]() {
				openRefs(v.Field(i), report)
			}
		}
	}
}

// TestCheck_DiamondInclude checks the hint for a file that is included twice.
func TestCheck_DiamondInclude(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"app.qtype.yaml": "id: app\nreferences:\n  - !include models.yaml\n  - !include models.yaml\n",
		"models.yaml":    "- {type: Model, id: writer, provider: mock}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	loaded, found := loader.Load(context.Background(), filepath.Join(dir, "app.qtype.yaml"), emptyEnvironment())
	found = append(found, validate.Check(loaded.Document)...)
	if len(found) != 1 || found[0].Code != "QT201" || !strings.Contains(found[0].Hint, "included twice") {
		t.Errorf("got %v", found)
	}
}

// TestCheck_IDOfApplication checks that the id of the application is a warning elsewhere,
// that references with it are linked, and that two others with it still conflict.
func TestCheck_IDOfApplication(t *testing.T) {
	const flows = `id: shop
flows:
  - {id: shop, variables: [{id: a, type: text}], inputs: [a], outputs: [a], steps: [{type: Echo, id: e, inputs: [a], outputs: [a]}]}
  - id: outer
    variables: [{id: b, type: text}, {id: c, type: text}]
    inputs: [b]
    outputs: [c]
    steps: [{type: InvokeFlow, id: call, flow: shop, input_bindings: {a: b}, output_bindings: {a: c}}]
`
	for more, want := range map[string]string{
		"": "[] [QT201]",
		"memories: [{id: shop, token_limit: 100}]\n": "[QT201] [QT201]",
	} {
		_, found := checked(t, flows+more)
		unused := func(d diag.Diagnostic) bool { return d.Code != "QT201" && d.Severity == diag.Warning }
		found = slices.DeleteFunc(found, unused)
		if got := fmt.Sprint(codes(found, diag.Error), codes(found, diag.Warning)); got != want {
			t.Errorf("%q: got %s, want %s\n%v", more, got, want, found)
		}
	}
}

// TestTemplate_Positions checks that the position is that of the placeholder.
func TestTemplate_Positions(t *testing.T) {
	for _, c := range []struct{ template, want string }{
		{`"{name} {name!r:>8} {{fine}}"`, ""},
		{`"Hello {nmae}"`, `11:26 "nmae" is not an input of the step; did you mean "{name}"?`},
		{"|\n          {name}\n          é {person}", `13:13 "person" is not an input of the step`},
		{`"{0}"`, "11:20 the placeholder {0} has no name"},
		{`"{}"`, "11:20 the placeholder {} has no name"},
		{`"{name }"`, `11:20 the placeholder {name } has spaces around its name; did you mean "{name}"?`},
		{`"{name.first}"`, `11:20 the placeholder {name.first} reads a part of "name", which templates do not support`},
		{`"{name} and { open"`, "11:31 unclosed {"},
		{`"{{fine}}} ends {name}"`, "11:28 unmatched }"},
		{`"{{fine}} {name"`, "11:29 unclosed {"},
		{`"\x7b0}"`, "11:19 the placeholder {0} has no name"}, // with an escape the position is that of the whole text
	} {
		text := "id: shop\nflows:\n  - id: main\n    variables: [{id: name, type: text}, {id: prompt, type: text}]\n" +
			"    inputs: [name]\n    outputs: [prompt]\n    steps:\n      - type: PromptTemplate\n        id: prompt_it\n" +
			"        inputs: [name]\n        template: " + c.template + "\n        outputs: [prompt]\n"
		_, found := checked(t, text)
		var got []string
		for _, d := range found {
			_, message, _ := strings.Cut(d.Error(), `step "prompt_it": `)
			got = append(got, fmt.Sprintf("%d:%d %s", d.Span.Start.Line, d.Span.Start.Column, message))
		}
		if all := strings.Join(got, "\n"); c.want == "" && all != "" || !strings.HasPrefix(all, c.want) || len(found) > 1 {
			t.Errorf("%s: got %q, want %q", c.template, all, c.want)
		}
	}
}

func FuzzCheck(f *testing.F) {
	for _, rule := range validate.Rules() {
		f.Add(rule.Wrong)
	}
	f.Fuzz(func(t *testing.T, text string) {
		loaded, _ := loader.LoadBytes(context.Background(), "app.qtype.yaml", []byte(text), emptyEnvironment())
		for _, d := range validate.Check(loaded.Document) {
			if d.Code == "" || d.Message == "" || strings.ContainsAny(d.Message, "\n") {
				t.Errorf("%q: %#v", text, d)
			}
		}
	})
}

// BenchmarkCheck checks a document of about 5,000 lines with 500 steps.
func BenchmarkCheck(b *testing.B) {
	text := large(500)
	loaded, found := loader.LoadBytes(context.Background(), "app.qtype.yaml", []byte(text), emptyEnvironment())
	if found.Errors() > 0 {
		b.Fatal(found.Err())
	}
	b.ReportMetric(float64(strings.Count(text, "\n")), "lines")
	b.ReportAllocs()
	for b.Loop() {
		if list := validate.Check(loaded.Document); len(list) > 0 {
			b.Fatal(list)
		}
	}
}

// large returns a document with n steps, ten in each flow.
func large(n int) string {
	var b strings.Builder
	b.WriteString("id: large\nmodels:\n  - {type: Model, id: writer, provider: mock}\nmemories:\n  - id: chat_memory\nflows:\n")
	for i := range n {
		if i%10 == 0 {
			fmt.Fprintf(&b, "  - id: flow_%d\n    inputs: [v0]\n    outputs: [v10]\n    variables:\n", i)
			for v := range 11 {
				fmt.Fprintf(&b, "      - id: v%d\n        type: text\n", v)
			}
			b.WriteString("    steps:\n")
		}
		fmt.Fprintf(&b, "      - type: LLMInference\n        id: step_%d\n        model: writer\n        memory: chat_memory\n"+
			"        system_message: Be brief.\n        inputs:\n          - v%d\n        outputs: [v%d]\n", i, i%10, i%10+1)
	}
	return b.String()
}
