package e2e_test

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/spec/diag"
)

const facadeDocument = `id: echo
flows:
  - id: main
    variables: [{id: text, type: text}]
    inputs: [text]
    outputs: [text]
    steps: [{type: Echo, id: pass, inputs: [text], outputs: [text]}]
`

const facadeTests = `tests:
  - {name: passes, turns: [{input: hello, expect: ['text == "hello"']}]}
  - {name: fails, turns: [{input: hello, expect: ['text == "bye"']}]}
`

// writeFiles writes files to a new directory and returns it.
func writeFiles(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestFacade_Diff(t *testing.T) {
	dir := writeFiles(t, map[string]string{
		"old.qtype.yaml":    facadeDocument,
		"new.qtype.yaml":    strings.ReplaceAll(facadeDocument, "id: text, type: text", "id: text, type: int"),
		"broken.qtype.yaml": strings.ReplaceAll(facadeDocument, "type: Echo", "type: Eco"),
	})
	before := filepath.Join(dir, "old.qtype.yaml")
	if changes, err := qtype.Diff(t.Context(), before, before); err != nil || len(changes) > 0 || qtype.IsBreaking(changes) {
		t.Errorf("equal documents: %v, %v", changes, err)
	}
	changes, err := qtype.Diff(t.Context(), before, filepath.Join(dir, "new.qtype.yaml"))
	if err != nil || !qtype.IsBreaking(changes) {
		t.Errorf("another type of an input: %v, %v", changes, err)
	}
	_, err = qtype.Diff(t.Context(), before, filepath.Join(dir, "broken.qtype.yaml"))
	if diag.FromError(err).Errors() == 0 {
		t.Errorf("a document with errors: %v", err)
	}
}

func TestFacade_Draw(t *testing.T) {
	dir := writeFiles(t, map[string]string{"app.qtype.yaml": facadeDocument})
	for format, want := range map[qtype.DrawFormat]string{qtype.DrawMermaid: "flowchart", qtype.DrawSVG: "<svg", qtype.DrawHTML: "<html"} {
		var out strings.Builder
		if err := qtype.Draw(t.Context(), &out, filepath.Join(dir, "app.qtype.yaml"), format); err != nil || !strings.Contains(out.String(), want) {
			t.Errorf("%s: %v, no %s", format, err, want)
		}
	}
	if err := qtype.Draw(t.Context(), &strings.Builder{}, filepath.Join(dir, "none.yaml"), qtype.DrawSVG); err == nil {
		t.Error("a file that does not exist is drawn")
	}
}

func TestFacade_Convert(t *testing.T) {
	if kinds := qtype.ConvertKinds(); len(kinds) != 9 {
		t.Errorf("kinds: %v", kinds)
	}
	const workflow = `{"id": "w", "start": "A", "states": [{"name": "A", "type": "inject", "data": {"x": 1}, "end": true}]}`
	options := qtype.ConvertOptions{Kind: qtype.ConvertXFlow, Path: "w.json", From: strings.NewReader(workflow)}
	if text, list := qtype.Convert(t.Context(), options); text != "" || !strings.Contains(list.Error(), "the distribution has it") {
		t.Errorf("the core converts xFlow: %v\n%s", list, text)
	}
}

func TestFacade_Test(t *testing.T) {
	dir := writeFiles(t, map[string]string{"app.qtype.yaml": facadeDocument, "app.qtype-test.yaml": facadeTests})
	var events []string
	reports, err := qtype.Test(t.Context(), []string{dir}, qtype.TestOptions{
		Started:  func(r *qtype.TestReport) { events = append(events, filepath.Base(r.Path)) },
		Finished: func(o *qtype.TestOutcome) { events = append(events, o.Name) },
	})
	if err != nil || len(reports) != 1 || strings.Join(events, " ") != "app.qtype-test.yaml passes fails" {
		t.Fatalf("%v, %v, events %q", reports, err, events)
	}
	for i, passed := range []bool{true, false} {
		if o := reports[0].Outcomes[i]; o.Passed() != passed {
			t.Errorf("test %q: passed %v", o.Name, o.Passed())
		}
	}
	reports, err = qtype.Test(t.Context(), []string{dir}, qtype.TestOptions{Names: regexp.MustCompile("^pass")})
	if err != nil || len(reports[0].Outcomes) != 1 {
		t.Errorf("only one test: %v, %v", reports, err)
	}
	if _, err := qtype.Test(t.Context(), []string{filepath.Join(dir, "none")}, qtype.TestOptions{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a path that does not exist: %v", err)
	}
}
