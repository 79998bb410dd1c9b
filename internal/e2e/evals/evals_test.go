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
	"github.com/qtype-dev/qtype/internal/convert"
	"github.com/qtype-dev/qtype/internal/convert/systems"
	"github.com/qtype-dev/qtype/internal/eval/evalrun"
	"github.com/qtype-dev/qtype/internal/testkit"
)

var update = flag.Bool("update", false, "rewrite the golden")

// TestConvert converts 20 configurations of promptfoo and 20 of OpenAI, and runs each evaluation without keys and network. The golden
// has what each result has, and what is reported as not converted.
func TestConvert(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "")
	t.Setenv("ANTHROPIC_API_KEY", "")
	ctx := convert.With(t.Context(), systems.Converters())
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
