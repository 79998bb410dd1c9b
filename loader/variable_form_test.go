package loader_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/qtype-dev/qtype/loader"
	"github.com/qtype-dev/qtype/spec"
)

// TestVariableForms checks which forms of a variable are errors or warnings, and where, and the text that the
// document has in spite of them.
func TestVariableForms(t *testing.T) {
	for _, c := range []struct{ text, found, value string }{
		{"${A} ${A:-} ${A:-b c} $A {a} $ {", "", "alpha alpha alpha $A {a} $ {"},
		{"${A:-${B:-c}}", "1:6: error: a default cannot contain another variable; the first } ends it: write a text", ""},
		{"x ${A:?need it} ${B}", "1:8: error: ${NAME:?text} is a form of other programs; write ${A}: a run refuses a variable without a value", ""},
		{"http://x\n\n   y ${A:?need\n  it} ${B}", "3:6: error: ${NAME:?text} is a form of other programs; write ${A}: a run refuses a variable without a value", ""},
		{"${A:=b}", "1:6: error: ${NAME:=text} is a form of other programs; write ${A:-…}", ""},
		{"${A:+b}", "1:6: error: ${NAME:+text} is a form of other programs; write ${NAME}, or ${NAME:-text} with a default", ""},
		{"${env:A}", "1:6: error: ${env:NAME} is a form of other programs; write ${A}", ""},
		{"${env:A:secret}", "1:6: error: ${env:NAME} is a form of other programs; write ${A:-…}", ""},
		{"${A and more", "1:6: error: this variable is not closed; write ${A}", ""},
		{"${A ${B}", "1:6: error: this variable is not closed; write ${A}", ""},
		{"${", "1:6: error: this variable is not closed; write ${NAME}, or ${NAME:-text} with a default", ""},
		{"${A:b}", "1:6: warning: a default begins with :-, so this stays as it is written; write ${A:-…}", "${A:b}"},
		{"${}", "1:6: warning: this names no variable, and stays as it is written; write ${NAME}, or ${NAME:-text} with a default", "${}"},
		{"$${A} $${A}", "1:6: warning: $$ is no escape here: this is a $ and the value of A; write ${DOLLAR:-$}{A} for the text ${A} | " +
			"1:12: warning: $$ is no escape here: this is a $ and the value of A; write ${DOLLAR:-$}{A} for the text ${A}", "$alpha $alpha"},
	} {
		result, list := loader.LoadBytes(t.Context(), "app.yaml", []byte("id: '"+c.text+"'\n"), loader.Options{Lookup: env(someEnv), NoDotEnv: true})
		var got []string
		for _, d := range list {
			got = append(got, fmt.Sprintf("%d:%d: %v: %s; %s", d.Span.Start.Line, d.Span.Start.Column, d.Severity, d.Message, d.Hint))
		}
		if joined := strings.Join(got, " | "); joined != c.found {
			t.Errorf("%s: %q, want %q", c.text, joined, c.found)
		}
		if id := result.Document.Application.ID; c.value != "" && id != c.value {
			t.Errorf("%s becomes %q, want %q", c.text, id, c.value)
		}
	}
}

// TestTypedVariables checks the types of environment variables in the parameters of models.
func TestTypedVariables(t *testing.T) {
	text := `- type: Model
  id: m
  provider: openai
  inference_params:
    temperature: ${T:-0.5}
    max_tokens: ${N:-50}
    top_p: "${P:-0.9}"
    user: ${U:-17}
    store: ${S:-no}
    seed: ${N:-50}0
    extra_body: {chat_template_kwargs: {enable_thinking: "${X:-no}"}, top_k: "4"}
    generationConfig: {topP: 0.3}
    nested:
      maxOutputTokens: ${N:-50}
      enable_thinking: ${S:-true}
`
	result, list := load(t, text)
	if err := list.Err(); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"temperature": 0.5, "max_tokens": int64(50), "top_p": "0.9", "user": "17", "store": false, "seed": "500",
		"extra_body": map[string]any{"chat_template_kwargs": map[string]any{"enable_thinking": "no"}, "top_k": "4"}, "generationConfig": map[string]any{"topP": 0.3}, "nested": map[string]any{"maxOutputTokens": int64(50), "enable_thinking": true}}
	if d := cmp.Diff(want, result.Document.Models[0].(*spec.Model).InferenceParams); d != "" {
		t.Error(d)
	}
}
