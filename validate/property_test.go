package validate_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/validate"
)

// TestCheck_RandomErrors adds errors to a document at random. Each must be reported
// once, with its line.
func TestCheck_RandomErrors(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text, want := randomDocument(t)
		loaded, found := checkedBy(t, text)
		var got []string
		for _, d := range found {
			if d.Severity == diag.Error {
				got = append(got, fmt.Sprintf("%s:%d", d.Code, d.Span.Start.Line))
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("got %v, want %v\n%s", got, want, text)
		}
		for _, item := range loaded.Flows[0].Steps {
			step := item.Step.(*spec.LLMInference)
			if linked := strings.HasPrefix(step.Memory.ID, "memory_"); linked != (step.Memory.To != nil) || linked && step.Memory.To.ID != step.Memory.ID {
				t.Fatalf("the memory %q is linked to %v", step.Memory.ID, step.Memory.To)
			}
		}
	})
}

// randomDocument returns a document with random errors, and their codes and lines.
func randomDocument(t *rapid.T) (text string, want []string) {
	var b strings.Builder
	line := 0
	write := func(format string, args ...any) {
		line++
		fmt.Fprintf(&b, format+"\n", args...)
	}
	broken := func(code string) { want = append(want, fmt.Sprintf("%s:%d", code, line)) }
	write("id: app")
	write("models: [{type: Model, id: writer, provider: mock}]")
	write("memories:")
	memories := rapid.IntRange(1, 5).Draw(t, "memories")
	for i := range memories {
		write("  - id: memory_%d", i)
		if rapid.Bool().Draw(t, "duplicate") {
			write("  - id: memory_%d", i)
			broken("QT201")
		}
	}
	write("flows:")
	write("  - id: main")
	write("    variables: [{id: question, type: ChatMessage}]")
	write("    inputs: [question]")
	write("    steps:")
	for i := range rapid.IntRange(1, 6).Draw(t, "steps") {
		write("      - type: LLMInference")
		write("        id: step_%d", i)
		write("        inputs: [question]")
		write("        outputs: [question]")
		switch rapid.IntRange(0, 3).Draw(t, "error") {
		case 0:
			write("        memory: memry_%d", rapid.IntRange(0, 9).Draw(t, "n"))
			broken("QT202")
		case 1:
			write("        memory: {$ref: writer}")
			broken("QT203")
		default:
			write("        memory: memory_%d", rapid.IntRange(0, memories-1).Draw(t, "n"))
		}
		if rapid.IntRange(0, 3).Draw(t, "no model") == 0 {
			write("        model: unknown")
			broken("QT202")
		} else {
			write("        model: writer")
		}
	}
	return b.String(), want
}

// TestCheck_Twice checks documents with and without errors again.
func TestCheck_Twice(t *testing.T) {
	for _, rule := range validate.Rules() {
		loaded, _ := checked(t, rule.Wrong)
		first, second := validate.Check(loaded.Document), validate.Check(loaded.Document)
		if first.Err() == nil != (second.Err() == nil) || len(first) != len(second) {
			t.Errorf("%s: first %v, then %v", rule.Code, first, second)
		}
	}
}
