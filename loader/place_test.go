package loader_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/source"
)

// covered is the text that a span of one line covers, or its lines.
func covered(s source.Span) string {
	if s.File == nil {
		return "nowhere"
	}
	lines := strings.Split(string(s.File.Text), "\n")
	cutAt := func(line string, column int) string { return string([]rune(line)[column-1:]) }
	first, last := lines[s.Start.Line-1], lines[s.End.Line-1]
	if s.Start.Line == s.End.Line {
		return strings.TrimSuffix(cutAt(first, s.Start.Column), cutAt(first, s.End.Column))
	}
	return cutAt(first, s.Start.Column) + "…" + strings.TrimSuffix(last, cutAt(last, s.End.Column))
}

// TestPlacesCoverTheWord checks the stretch of every way to write a value.
func TestPlacesCoverTheWord(t *testing.T) {
	for written, want := range map[string]string{
		"plain": "plain", "plain words # note": "plain words", "'it''s'": "'it''s'", `"say \"x\""`: `"say \"x\""`, "日本 語": "日本 語",
		"!!str 5": "5", "&a plain": "plain", "!!str &a  'x'": "'x'", "&a !!str x": "x", "! x": "x",
		"two\n  lines": "two…  lines", "two\n\n  lines # note": "two…  lines", "'two\n  lines'": "'two…  lines'", "\"two \\\n  lines\"": "\"two \\…  lines\"",
		"|\n  a\n\n  b\n\n": "|…  b", ">-\n  a\n": ">-…  a", "|2\n   a\n": "|2…   a", "!!str |\n  a\n": "|…  a",
		"${A:-x} y": "${A:-x} y", "\n  next": "next",
	} {
		t.Run(written, func(t *testing.T) {
			result, list := load(t, "id: app\ndescription: "+written+"\nmemories: []\n")
			if len(list) > 0 {
				t.Fatal(list)
			}
			place := result.Document.Application.Position()
			if got := covered(place.Field("description").Span()); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
			if field, _ := place.Lookup("description"); covered(field.Key) != "description" {
				t.Errorf("the key is %q", covered(field.Key))
			}
			if got := covered(place.Field("memories").Span()); got != "[]" {
				t.Errorf("the text after it is %q", got)
			}
		})
	}
}

func TestPlacesOfPartsAndReferences(t *testing.T) {
	result, list := load(t, `id: app
flows:
  - id: main
    inputs: [a, {$ref: b}]
    steps:
      - id: call
        type: InvokeTool
        tool: {$ref: "tool"}   # note
        inputs: [ a , b ]
        input_bindings: {x: c,
          y: a}
        output_bindings: {}
`)
	if len(list) > 0 {
		t.Fatal(list)
	}
	flow := result.Document.Application.Flows[0]
	step := flow.Steps[0].Step.(*spec.InvokeTool)
	refs := []spec.Reference{&flow.Inputs[0], &flow.Inputs[1], &step.Tool, &step.Inputs[1], &step.InputBindings[0].Var, &step.InputBindings[1].Var}
	var got []string
	for _, r := range refs {
		id, span := spec.Target(r)
		got = append(got, fmt.Sprintf("%s %d:%d %s", id, span.Start.Line, span.Start.Column, covered(span)))
	}
	want := []string{"a 4:14 a", "b 4:24 b", `tool 8:22 "tool"`, "b 9:23 b", "c 10:29 c", "a 11:14 a"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	got = nil
	for _, p := range []*spec.Position{flow.Position(), flow.Position().Field("inputs"), flow.Position().Field("steps").Index(0),
		step.Position().Field("inputs"), step.Position().Field("inputs").Index(1), step.Position().Field("input_bindings"), step.Position().Field("input_bindings").Field("y"), step.Position().Field("nothing")} {
		got = append(got, covered(p.Span()))
	}
	want = []string{"id: main…        output_bindings: {}", "[a, {$ref: b}]", "id: call…        output_bindings: {}",
		"[ a , b ]", "b", "{x: c,…          y: a}", "a", "id: call…        output_bindings: {}"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// TestPositions_MissingKey: the diagnostic is where the key would be.
func TestPositions_MissingKey(t *testing.T) {
	_, list := load(t, "id: app\nmemories:\n  - token_limit: 5\n  - {token_limit: 5}\n  - {}\n  -   # note\n    token_limit: 5\n")
	var got []string
	for _, d := range list {
		got = append(got, fmt.Sprintf("%s %d:%d-%d", d.Code, d.Span.Start.Line, d.Span.Start.Column, d.Span.End.Column))
	}
	if d := cmp.Diff([]string{"QT104 3:5-6", "QT104 4:6-7", "QT104 5:5-6", "QT104 7:5-6"}, got); d != "" {
		t.Error(d)
	}
}

func TestLinesThatOnlyYAMLEnds(t *testing.T) {
	_, list := load(t, "# a\u2028# b\u0085# c\rid: app\nmemories:\n- id: 5\n")
	if len(list) != 1 || list[0].Span.String() != "app.yaml:3:7" || covered(list[0].Span) != "5" {
		t.Errorf("got %v", list)
	}
}

func TestMergesAndAliases(t *testing.T) {
	result, list := load(t, `
id: app
memories:
  - &base {id: a, token_limit: 5, token_flush_size: 1}
  - {<<: *base, id: b}
  - {id: c, <<: [{token_limit: 7}, *base]}
  - <<: *base
    <<: {chat_history_token_ratio: 0.5}
    id: d
`)
	if len(list) > 0 {
		t.Error(list)
	}
	var got []string
	for _, m := range result.Document.Application.Memories {
		got = append(got, fmt.Sprint(m.ID, m.TokenLimit, m.TokenFlushSize, m.ChatHistoryTokenRatio))
	}
	if d := cmp.Diff([]string{"a5 1 0.7", "b5 1 0.7", "c7 1 0.7", "d5 1 0.5"}, got); d != "" {
		t.Error(d)
	}
	for text, message := range map[string]string{
		"id: a\n<<: 5": "not a number", "id: a\n<<: [[a: b]]": "not a list", "? [a]\n: 1\nid: x": "a key must be a text",
		"id: &a x\nreferences: [*b]": "the alias *b has no anchor", "<<: *x\nid: &x {}": "the alias *x has no anchor",
	} {
		if _, list := load(t, text); len(list) != 1 || list[0].Code != "QT002" || !strings.Contains(list[0].Message, message) {
			t.Errorf("%q: got %v", text, list)
		}
	}
	if _, list := load(t, "id: a\nmemories:\n- &m {id: x, token_limit: 0}\n- *m\n- *m\n"); len(list) != 1 {
		t.Errorf("a found behind an alias is one found: %v", list)
	}
}

func TestDerivedVariables(t *testing.T) {
	result, list := load(t, `
id: app
flows:
  - id: f
    steps:
      - {id: a, type: Construct, inputs: [x], field_bindings: {p: x, q: y, r: y, s: z}, outputs: [o]}
      - {id: b, type: InvokeFlow, flow: g, input_bindings: {p: y}, output_bindings: {q: o, r: n}, outputs: [o]}
      - {id: c, type: InvokeTool, tool: t, input_bindings: {p: y}, output_bindings: {q: o}}
      - {id: d, type: FileSource, path: where, outputs: [o]}
      - {id: e, type: FileWriter, path: {uri: x.csv}}
      - {id: f, type: FileWriter, path: {$ref: where}, inputs: [where]}
`)
	if len(list) > 0 {
		t.Fatal(list)
	}
	var got []string
	for _, item := range result.Document.Application.Flows[0].Steps {
		base := item.Step.Common()
		line := base.ID + ":"
		for _, r := range base.DerivedInputs {
			line += " " + r.ID
		}
		line += " →"
		for _, r := range base.DerivedOutputs {
			line += " " + r.ID
		}
		got = append(got, line)
	}
	if d := cmp.Diff([]string{"a: y z →", "b: y → n", "c: y → o", "d: where →", "e: →", "f: →"}, got); d != "" {
		t.Error(d)
	}
	construct := result.Document.Application.Flows[0].Steps[0].Step.(*spec.Construct)
	if construct.DerivedInputs[0] != &construct.FieldBindings[1].Var {
		t.Error("a derived input is the binding's own reference, so that linking one links both")
	}
}

func TestDefaults(t *testing.T) {
	result, list := load(t, "id: app\nmemories: [{id: m}]\nflows:\n- {id: f, interface: {}, feedback: {type: category, categories: [a]}, steps: [{id: s, type: VectorSearch, index: i}, {id: t, type: VectorSearch, index: i, default_top_k: ~}, {id: d, type: Decoder}]}\n")
	if len(list) > 0 {
		t.Fatal(list)
	}
	app := result.Document.Application
	flow := app.Flows[0]
	search, none, decoder := flow.Steps[0].Step.(*spec.VectorSearch), flow.Steps[1].Step.(*spec.VectorSearch), flow.Steps[2].Step.(*spec.Decoder)
	got := []any{app.Memories[0].TokenLimit, app.Memories[0].ChatHistoryTokenRatio, flow.Type, flow.Interface.Type,
		flow.Feedback.(*spec.CategoryFeedback).AllowMultiple, *search.DefaultTopK, none.DefaultTopK == nil, decoder.Format}
	if d := cmp.Diff([]any{100000, 0.7, "Flow", "Complete", true, 10, true, "json"}, got); d != "" {
		t.Error(d)
	}
}

// TestDecode_KeepsValidParts: later checks see the valid parts of an entity.
func TestDecode_KeepsValidParts(t *testing.T) {
	result, list := load(t, `
id: app
memories: [{id: m, token_limit: 0, token_flush_size: 5}, nonsense, {id: n, token_limit: x}]
models: [{id: a, type: Modle, provider: openai}, {id: b, type: Model, provider: mock, retry: {max_attempts: x, max_delay: 1m}}]
flows:
  - id: f
    interface: {type: Conversational, session_input: [a]}
    steps: [{id: s, type: LLMInferense, model: a, outputs: [o]}, 5, {$ref: s}]
`)
	if got := strings.Join(codes(list), " "); got != "QT108 QT105 QT105 QT106 QT105 QT103 QT106 QT105" {
		t.Error(list)
	}
	app := result.Document.Application
	flow, retry := app.Flows[0], app.Models[1].Base().Retry
	got := []any{len(app.Memories), app.Memories[0].TokenLimit, app.Memories[0].TokenFlushSize, app.Memories[1].TokenLimit, app.Models[0].EntityID(),
		retry.MaxAttempts, time.Duration(retry.MaxDelay), flow.Interface.Type, len(flow.Steps), flow.Steps[0].Step.(*spec.LLMInference).Model.ID, flow.Steps[1].Ref.ID}
	if d := cmp.Diff([]any{2, 100000, 5, 100000, "a", 3, time.Minute, "Conversational", 2, "a", "s"}, got); d != "" {
		t.Error(d)
	}
}

// TestDuplicateKey_OfItem checks that a key of a list item which is not indented far enough is
// reported as such.
func TestDuplicateKey_OfItem(t *testing.T) {
	for text, want := range map[string]bool{
		"id: app\nflows:\n  - id: f\n    steps:\n    - type: Echo\n    id: e\n":     true,
		"id: app\nflows:\n  - id: f\n    steps:\n      - type: Echo\n    id: e\n":   false,
		"id: app\nflows:\n  - id: f\n    steps: [{type: Echo, id: s}]\n    id: e\n": false,
	} {
		_, list := load(t, text)
		for _, d := range list {
			if d.Code == "QT010" && strings.Contains(d.Hint, "indent it by two more spaces") != want {
				t.Errorf("%q: got %v", text, d)
			}
		}
		if !slices.Contains(codes(list), "QT010") {
			t.Errorf("%q: got %v", text, list)
		}
	}
}
