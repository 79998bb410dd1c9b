// Package evals_test converts configurations of other systems for evaluations, and runs the results.
package evals_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/distribution/converters"
	"github.com/qtype-dev/qtype/internal/convert"
	"github.com/qtype-dev/qtype/internal/eval/evalrun"
	"github.com/qtype-dev/qtype/internal/testkit"
)

var update = flag.Bool("update", false, "rewrite the golden")

// TestConvert converts 20 configurations of promptfoo and 20 of OpenAI, and runs each evaluation without keys and network. The golden
// has what each result has, and what is reported as not converted.
func TestConvert(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "")
	t.Setenv("ANTHROPIC_API_KEY", "")
	ctx := convert.With(t.Context(), converters.Converters())
	for kind, patterns := range map[convert.Kind][]string{convert.PromptFoo: {"promptfoo/*.yaml"}, convert.OpenAIEvals: {"openai-evals/registry/evals/*.yaml", "openai-evals/*.json"}} {
		var files []string
		for _, pattern := range patterns {
			found, err := filepath.Glob(filepath.Join("testdata", pattern))
			testkit.Must(t, err)
			files = append(files, found...)
		}
		if len(files) != 20 {
			t.Errorf("%s: %d files", kind, len(files))
		}
		var golden strings.Builder
		for _, path := range files {
			golden.WriteString(converted(ctx, t, kind, path))
		}
		at := filepath.Join("testdata", string(kind)+".golden.txt")
		if *update {
			testkit.Must(t, os.WriteFile(at, []byte(golden.String()), 0o644))
		}
		if want := testkit.ReadFile(t, at); want != golden.String() {
			t.Errorf("%s differs; got\n%s", at, golden.String())
		}
	}
}

// converted converts a file, runs the evaluation, and describes both.
func converted(ctx context.Context, t *testing.T, kind convert.Kind, path string) string {
	t.Helper()
	document, evaluation, list := convert.Files(ctx, kind, path)
	again, _, _ := convert.Files(ctx, kind, path)
	var b strings.Builder
	fmt.Fprintf(&b, "== %s\n", filepath.Base(path))
	for _, d := range list {
		if d.Span.File == nil || d.Span.Start.Line == 0 {
			t.Errorf("%s: %s has no position", path, d.Error())
		}
		fmt.Fprintf(&b, "%s %d:%d %s\n", d.Code, d.Span.Start.Line, d.Span.Start.Column, d.Message)
	}
	if document == "" || evaluation == nil || document != again {
		t.Fatalf("%s: no evaluation, or another one the second time:\n%s", path, b.String())
	}
	dir := t.TempDir()
	write := func(name, text string) { testkit.Must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600)) }
	write("app.qtype.yaml", document)
	text := evaluation.YAML("app.qtype.yaml", "app.rows.jsonl")
	write("app.qtype-eval.yaml", text)
	write("app.rows.jsonl", evaluation.Lines())
	r, err := qtype.Evaluate(ctx, evalrun.Config{Path: filepath.Join(dir, "app.qtype-eval.yaml"), Workers: 2})
	if err != nil {
		t.Errorf("%s: %s\n%s\n%s", path, err, document, text)
		return b.String()
	}
	for _, v := range r.Variants {
		var metrics []string
		for _, m := range r.Metrics {
			s := v.Metrics[m.ID]
			if s.Errors > 0 {
				t.Errorf("%s: %s has no value: %q\n%s", path, m.ID, r.Violations, evaluation.Lines())
			}
			metrics = append(metrics, fmt.Sprintf("%s of %d", m.ID, s.Count))
		}
		if v.Failed > 0 {
			t.Errorf("%s: %q", path, r.Violations)
		}
		fmt.Fprintf(&b, "%s: %d rows: %s\n", v.ID, r.Rows, strings.Join(metrics, ", "))
	}
	return b.String()
}

// TestConvert_Malformed converts what is no configuration, or a wrong one: the result is an error or a document that can be evaluated.
func TestConvert_Malformed(t *testing.T) {
	ctx := convert.With(t.Context(), converters.Converters())
	for kind, texts := range map[convert.Kind][]string{
		convert.PromptFoo: {"[]", "a: 1", "prompts: 3", "prompts: [{}, [x], {raw: null}]", "tests: {a: 1}", "tests: [[1], 3, {path: null}, ../x.csv, 'file:///etc/passwd']",
			"providers: {'openai:gpt-4o': 1}", "providers: [[], {}, {id: 3}, 'openai:', ':', {id: openai:gpt-4o, config: {temperature: [1], apiBaseUrl: x}}]",
			"scenarios: [1, {config: 3, tests: 4}]", "tests: [{vars: 3, assert: 5}, {assert: [{}, [], 3, {type: contains}, {type: contains, value: []}, {type: similar, value: x, threshold: 7}]}]",
			"tests: [{assert: [{type: is-json, value: 'file://gone.json'}, {type: g-eval, value: x, threshold: x}, {type: assert-set}, {type: latency}, {$ref: x}]}]",
			"prompts: ['{{', '}}{%', '[{\"role\": 1}]', '']\ntests: [{vars: {'a-b': 1, 'if': 2, answer: 3, '{}': 4}}]", "tests: [{vars: {a: []}}]\nevaluateOptions: {repeat: 99999}",
			"defaultTest: 3\ntests: [{vars: {a: x}}]", "prompts: ['{{a}} {{answer}} {{prompt}} {{question}}']\ntests: [{vars: {a: x, answer: y, prompt: z}}]"},
		convert.OpenAIEvals: {"[]", "a: 1", "testing_criteria: 5", "eval: 3", "x: {class: 'a:Match'}", "x: {class: 'evals:Match', args: {samples_jsonl: gone.jsonl}}", "x: {class: [], args: {samples_jsonl: []}}",
			"testing_criteria: [{}, 3, {type: string_check, operation: eq}, {type: label_model}, {type: score_model, range: [3, 3]}, {type: multi, graders: {a: 1}}, {type: text_similarity, evaluation_metric: bleu, pass_threshold: x, input: '{{sample.output_text}}', reference: a}]\n" +
				"data_source: {model: 3, sampling_params: {temperature: hot}, input_messages: {type: template, template: [3, {role: user}, {role: user, content: [3, {text: a}]}]}, source: {type: file_content, content: [3, {item: 4}, {item: {a: null, b: {c: [1]}}}]}}",
			"testing_criteria: []\nruns: [{data_source: {source: 3}}, 4, {data_source: {input_messages: {type: item_reference}}}]"},
	} {
		for _, text := range texts {
			path := filepath.Join(t.TempDir(), "file.yaml")
			testkit.Must(t, os.WriteFile(path, []byte(text), 0o600))
			document, evaluation, list := convert.Files(ctx, kind, path)
			if document == "" {
				if list.Errors() == 0 {
					t.Errorf("%s: no document and no error", text)
				}
				continue
			}
			dir := t.TempDir()
			testkit.Must(t, os.WriteFile(filepath.Join(dir, "app.qtype.yaml"), []byte(document), 0o600))
			written := evaluation.YAML("app.qtype.yaml", "app.rows.jsonl")
			testkit.Must(t, os.WriteFile(filepath.Join(dir, "app.qtype-eval.yaml"), []byte(written), 0o600))
			testkit.Must(t, os.WriteFile(filepath.Join(dir, "app.rows.jsonl"), []byte(evaluation.Lines()), 0o600))
			if _, err := qtype.Evaluate(ctx, evalrun.Config{Path: filepath.Join(dir, "app.qtype-eval.yaml")}); err != nil {
				t.Errorf("%s: %s\n%s\n%s", text, err, document, written)
			}
		}
	}
}

// TestConvert_RowsOfRuns reports the rows of a further run, unless they are those of the first one.
func TestConvert_RowsOfRuns(t *testing.T) {
	const content = `{"type": "file_content", "content": [{"item": {"q": "%s", "a": "x"}}]}`
	for second, reported := range map[string]bool{
		fmt.Sprintf(content, "one"):                      false,
		fmt.Sprintf(content, "two"):                      true,
		`{"type": "file_content", "content": []}`:        false,
		`{"type": "file_id", "id": "file-two"}`:          true,
		`{"type": "stored_completions", "model": "gpt"}`: true,
	} {
		path := testkit.WriteFile(t, "eval.json", `{"testing_criteria": [{"type": "string_check", "name": "is", "operation": "eq", "input": "{{sample.output_text}}", "reference": "{{item.a}}"}],
  "runs": [{"data_source": {"type": "completions", "model": "gpt-4o", "source": `+fmt.Sprintf(content, "one")+`}},
    {"data_source": {"type": "completions", "model": "gpt-4o-mini", "source": `+second+`}}]}`)
		_, evaluation, list := convert.Files(convert.With(t.Context(), converters.Converters()), convert.OpenAIEvals, path)
		got := strings.Contains(fmt.Sprint(list), "a run has other rows than the first one")
		if got != reported || len(evaluation.Rows) != 1 {
			t.Errorf("%s: reported %t, want %t, with %d rows: %v", second, got, reported, len(evaluation.Rows), list)
		}
	}
}
