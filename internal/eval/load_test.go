package eval_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/authoring"
	"github.com/qtype-dev/qtype/internal/eval"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/loader"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
)

const application = `id: app
models: [{type: Model, id: m, provider: mock, rules: [{echo: true}]}]
flows:
  - id: talk
    variables: [{id: q, type: text}, {id: a, type: text}]
    inputs: [q]
    outputs: [a]
    steps: [{type: LLMInference, id: s, model: m, inputs: [q], outputs: [a]}]
  - id: number
    variables: [{id: n, type: float}]
    inputs: [n]
    outputs: [n]
    steps: [{type: Echo, id: same, inputs: [n], outputs: [n]}]
  - id: two
    variables: [{id: q, type: text}, {id: p, type: text}]
    inputs: [q, p]
    outputs: [q, p]
    steps: [{type: Echo, id: e, inputs: [q, p], outputs: [q, p]}]
`

// load loads an evaluation file and returns the codes of its diagnostics with their lines.
func load(t *testing.T, text string) (*eval.Evaluation, []string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "app.qtype-eval.yaml")
	testkit.Must(t, os.WriteFile(filepath.Join(filepath.Dir(path), "app.qtype.yaml"), []byte(application), 0o600))
	testkit.Must(t, os.WriteFile(path, []byte(text), 0o600))
	e, list := eval.Load(t.Context(), eval.Request{Path: path}, loader.Options{}, func(ctx context.Context, path string, change eval.Change) (*spec.Application, diag.List) {
		var o authoring.Options
		o.Change(change)
		p, list := authoring.Check(ctx, path, o)
		return p.Document.Application, list
	})
	var got []string
	for _, d := range list {
		got = append(got, d.Code+" "+strings.TrimSpace(d.Span.File.Line(d.Span.Start.Line)))
	}
	return e, got
}

// TestLoad_ReportsAllErrors checks that errors of form and of meaning are reported together, and
// none that only follows from another.
func TestLoad_ReportsAllErrors(t *testing.T) {
	for text, want := range map[string][]string{
		"dta: rows.csv\nmetrics:\n- {type: exact, ignore_case: perhaps}\n- {type: regexp, patern: x, id: p}\n- {type: similr}\n- {type: regexp, pattern: '('}\n" +
			"- {type: contains, output: [x]}\n- {type: numeric, output: b}\nvariants:\n- {id: a, models: {n: m}}\n- {id: b, models: [x]}\n- {id: c, promts: {s: x}}\n- {id: d, inputs: {z: 1}}\n": {
			"QT103 dta: rows.csv", "QT105 - {type: exact, ignore_case: perhaps}", "QT103 - {type: regexp, patern: x, id: p}", "QT811 - {type: similr}", "QT812 - {type: regexp, pattern: '('}",
			"QT105 - {type: contains, output: [x]}", "QT811 - {type: numeric, output: b}", "QT811 - {id: a, models: {n: m}}", "QT105 - {id: b, models: [x]}",
			"QT103 - {id: c, promts: {s: x}}", "QT811 - {id: d, inputs: {z: 1}}"},
		"flow: number\nvariants: [{id: a, inputs: {n: 5}},\n{id: b, inputs: {n: x}}]\n":           {"QT812 {id: b, inputs: {n: x}}]"},
		"flow: [two]\nmetrics: [{type: similr}]\n":                                                {"QT105 flow: [two]"},
		"flow: two\nmetrics: 3\n":                                                                 {"QT105 metrics: 3"},
		"app: [x]\nmetrics: [{type: similr}]\n":                                                   {"QT105 app: [x]"},
		"app: other.qtype.yaml\nmetrics: [{type: similr}]\n":                                      {"QT811 app: other.qtype.yaml"},
		"flow: two\nmetrics: [{type: exact, output: [x]}]\n":                                      {"QT105 metrics: [{type: exact, output: [x]}]"},
		"flow: number\nmetrics:\n- {type: exact, min: .nan}\n- {type: exact, id: m, max: .inf}\n": {"QT108 - {type: exact, min: .nan}", "QT108 - {type: exact, id: m, max: .inf}"},
		"metrics:\n- {type: judge, rubric: good}\n- {type: judge, id: b, model: m, judges: [m], rubric: x}\n- {type: judge, id: c, judges: [m, m], rubric: x}\n- {type: judge, id: d, model: m, rubric: x, labels: {one: 1}}\n" +
			"- {type: judge, id: e, model: m, rubric: x, labels: {a: 1, b: 2}}\n- {type: judge, id: f, model: m, rubric: x, check: {data: x.csv, min_kappa: 0.6}}\n- {type: relevance, model: m, check: {data: x.csv}}\n- {type: faithfulness, model: n}\n- {type: source_recall, sources: b}\n- {type: checks}\n- {type: preference, model: m}\n": {
			"QT812 - {type: judge, rubric: good}", "QT812 - {type: judge, id: b, model: m, judges: [m], rubric: x}", "QT812 - {type: judge, id: c, judges: [m, m], rubric: x}", "QT812 - {type: judge, id: d, model: m, rubric: x, labels: {one: 1}}",
			"QT812 - {type: judge, id: e, model: m, rubric: x, labels: {a: 1, b: 2}}", "QT812 - {type: judge, id: f, model: m, rubric: x, check: {data: x.csv, min_kappa: 0.6}}", "QT812 - {type: relevance, model: m, check: {data: x.csv}}", "QT812 - {type: faithfulness, model: n}",
			"QT811 - {type: source_recall, sources: b}", "QT812 - {type: checks}", "QT812 - {type: preference, model: m}"},
		"data: x.csv\nstate: {a: []}\nusers:\n- {id: a, rules: [{text: x}]}\n- {id: a, rules: [{text: x}]}\n- {id: b}\n- {id: c, model: m}\n- {id: d, model: n, goal: x}\n- {id: e, rules: [{match: '('}]}\n- {id: f, model: m, goal: x, inputs: {q: x}}\n- {id: g, model: m, goal: x, inputs: {z: x}}\n" +
			"- {id: h, model: m, goal: x, checks: {state: [{table: b}], expect: [x]}}\n- {id: i, model: m, goal: x, max_turns: 0}\nmetrics: [{type: exact}]\n": {
			"QT812 data: x.csv", "QT811 - {id: a, rules: [{text: x}]}", "QT812 - {id: b}", "QT812 - {id: c, model: m}", "QT811 - {id: d, model: n, goal: x}", "QT812 - {id: e, rules: [{match: '('}]}", "QT812 - {id: f, model: m, goal: x, inputs: {q: x}}", "QT811 - {id: g, model: m, goal: x, inputs: {z: x}}",
			"QT801 - {id: h, model: m, goal: x, checks: {state: [{table: b}], expect: [x]}}", "QT425 - {id: h, model: m, goal: x, checks: {state: [{table: b}], expect: [x]}}", "QT108 - {id: i, model: m, goal: x, max_turns: 0}", "QT812 metrics: [{type: exact}]"},
		"state: {a: []}\n": {"QT812 state: {a: []}"},
		"users:\n- {id: a, rules: null}\n- {id: b, rules: []}\n": {"QT812 - {id: a, rules: null}", "QT812 - {id: b, rules: []}"},
		"flow: number\nusers: [{id: a, rules: [{text: x}]}]\n":   {"QT812 users: [{id: a, rules: [{text: x}]}]", "QT812 users: [{id: a, rules: [{text: x}]}]"},
		"recordings: x.yaml\n":                                   {"QT812 recordings: x.yaml"},
		"metrics: [{type: exact}, {type: exact\n":                {"QT002"},
	} {
		e, got := load(t, text)
		if len(got) == 1 && strings.HasPrefix(got[0], "QT002") {
			got[0] = "QT002"
		}
		if e != nil || !slices.Equal(got, want) {
			t.Errorf("%s: got\n%s\nwant\n%s", text, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}
