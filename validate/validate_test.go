package validate_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/qtype-dev/qtype/internal/testkit/diagtest"
	"github.com/qtype-dev/qtype/loader"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/validate"
)

// emptyEnvironment returns options without environment variables and .env files.
func emptyEnvironment() loader.Options {
	return loader.Options{NoDotEnv: true, Lookup: func(string) (string, bool) { return "", false }}
}

// checked loads and checks a text and returns all diagnostics.
func checked(t testing.TB, text string) (*loader.Result, diag.List) {
	t.Helper()
	loaded, found := loader.LoadBytes(context.Background(), "app.qtype.yaml", []byte(text), emptyEnvironment())
	found = append(found, validate.Check(loaded.Document)...)
	found.Sort()
	return loaded, found
}

// checkedOn is checked on a day: the examples of some rules depend on it.
func checkedOn(t testing.TB, text string) diag.List {
	t.Helper()
	opts := emptyEnvironment()
	opts.Day = time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	loaded, found := loader.LoadBytes(context.Background(), "app.qtype.yaml", []byte(text), opts)
	return append(found, validate.Check(loaded.Document)...)
}

func codes(list diag.List, severity diag.Severity) []string {
	var all []string
	for _, d := range list {
		if d.Severity == severity {
			all = append(all, d.Code)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func TestDocuments(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.qtype.yaml")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no documents: %v", err)
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			loaded, found := loader.Load(context.Background(), path, emptyEnvironment())
			found = append(found, validate.Check(loaded.Document)...)
			diagtest.Check(t, loaded.Files, found)
		})
	}
}

// TestWrongKind_HasNoFix checks that an id of another kind is not replaced by a similar one:
// it is not misspelled.
func TestWrongKind_HasNoFix(t *testing.T) {
	_, list := checked(t, `id: app
models: [{type: Model, id: m, provider: mock}, {type: EmbeddingModel, id: em, provider: mock, dimensions: 4}]
memories: [{id: mem}]
flows:
  - id: main
    variables: [{id: a, type: text}, {id: b, type: text}]
    inputs: [a]
    outputs: [b]
    steps: [{type: LLMInference, id: s, model: mem, memory: mem, inputs: [a], outputs: [b]}]
`)
	for _, d := range list {
		if d.Code == "QT203" && len(d.Fixes) == 0 {
			return
		}
	}
	t.Errorf("got %v", list)
}

// unavailableCode is the code of what this version does not run, which has no example.
const unavailableCode = "QT482"

func TestRules_Examples(t *testing.T) {
	for _, rule := range validate.Rules() {
		if rule.Code == unavailableCode {
			continue // this version runs the whole language
		}
		t.Run(rule.Code, func(t *testing.T) {
			wrong, right := checkedOn(t, rule.Wrong), checkedOn(t, rule.Right)
			if got := codes(wrong, diag.Error); rule.Severity == diag.Error && !slices.Equal(got, []string{rule.Code}) {
				t.Errorf("errors of the wrong example: %v\n%s\n%v", got, rule.Wrong, wrong)
			}
			if rule.Severity == diag.Warning && (wrong.Errors() > 0 || !slices.Contains(codes(wrong, diag.Warning), rule.Code)) {
				t.Errorf("diagnostics of the wrong example: %v\n%s", wrong, rule.Wrong)
			}
			if right.Errors() > 0 || slices.Contains(codes(right, rule.Severity), rule.Code) {
				t.Errorf("diagnostics of the right example: %v\n%s", right, rule.Right)
			}
			for _, d := range wrong {
				if d.Span.Start.Line == 0 {
					t.Errorf("%s has no position", d.Error())
				}
			}
		})
	}
}

// TestRules_UncachedSteps: the text about caches lists the types of steps that work on groups of rows.
func TestRules_UncachedSteps(t *testing.T) {
	var names []string
	for _, s := range spec.StepTypes() {
		if spec.RowsOf(s) == spec.RowsBatch {
			names = append(names, spec.TypeName(s))
		}
	}
	rule, err := diag.FindRule(validate.Rules(), "QT916")
	if list := "groups of rows (" + strings.Join(names, ", ") + ")"; err != nil || !strings.Contains(rule.Doc, list) {
		t.Errorf("the text of QT916 does not have %q: %s (%v)", list, rule.Doc, err)
	}
}

func TestRules_Unique(t *testing.T) {
	last := ""
	for _, rule := range validate.Rules() {
		if rule.Code <= last {
			t.Errorf("%s is listed after %s", rule.Code, last)
		}
		last = rule.Code
		if isComplete := rule.Wrong != "" && rule.Right != "" && rule.Wrong != rule.Right; rule.Title == "" || rule.Doc == "" || isComplete == (rule.Code == unavailableCode) {
			t.Errorf("%s is incomplete", rule.Code)
		}
	}
	for _, rule := range loader.Rules() {
		if slices.ContainsFunc(validate.Rules(), func(r diag.Rule) bool { return r.Code == rule.Code }) {
			t.Errorf("%s is also declared by the loader", rule.Code)
		}
	}
}

func TestSummary(t *testing.T) {
	text, err := os.ReadFile("testdata/clean.qtype.yaml")
	if err != nil {
		t.Fatal(err)
	}
	loaded, found := checked(t, string(text))
	if len(found) > 0 {
		t.Fatal(found)
	}
	if got, want := validate.Summarise(loaded.Document).String(), "2 flows, 4 steps, 2 memories, 2 models, 1 tool, 1 type, 1 auth"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := validate.Summarise(nil).String(); got != "nothing declared" {
		t.Errorf("got %q for no document", got)
	}
}
