package eval_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/qtype-dev/qtype/internal/authoring"
	"github.com/qtype-dev/qtype/internal/eval"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/loader"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
)

const places = `# A comment.
id: app
models:
  - {type: Model, id: writer, provider: mock} # the writer
flows:
  - id: talk
    variables: [{id: q, type: text}, {id: a, type: text}, {id: b, type: text}, {id: c, type: text}, {id: d, type: text}, {id: e, type: text}]
    inputs: [q]
    outputs: [e]
    steps:
      - type: LLMInference
        id: plain # one
        model: writer
        system_message: Be kind. # two
        inputs: [q]
        outputs: [a]
      - type: LLMInference
        id: block
        model: writer
        # three
        system_message: |- # four
          Be kind.

            And brief, über alles.
        inputs: [a]
        outputs: [b]
      - {type: LLMInference, id: flow, model: writer, system_message: "Be \"kind\".", inputs: [b], outputs: [c]}
      - type: LLMInference
        id: included
        model: writer
        system_message: !include_raw prompt.txt
        inputs: [c]
        outputs: [d]
      - type: LLMInference
        model: writer
        inputs: [d]
        outputs: [e]
        id: last
`

// TestTexts_ReplaceValues writes different texts and values to each kind of place: the document then has them, its comments
// remain, and all other lines are as they were.
func TestTexts_ReplaceValues(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "app.qtype.yaml")
	testkit.Must(t, os.WriteFile(path, []byte(places), 0o600))
	testkit.Must(t, os.WriteFile(filepath.Join(dir, "prompt.txt"), []byte("Be kind."), 0o600))
	long := strings.Repeat("Write about the sea and the sky. ", 12)
	for _, text := range []string{"Be brief.", "One.\nTwo: {q}\n\n  three # no comment", " leading", "trailing ", "end\n", "two ends\n\n", "a\tb \\ \"quoted\" 'single'", "yes", "- dash", "# not a comment", strings.TrimSpace(long), long, "Ü 日本 🎉", "|-\n  x", "&a *b !c", "a: b"} {
		for _, address := range []string{"plain.system_message", "block.system_message", "flow.system_message", "included.system_message", "last.system_message"} {
			e, list := eval.Load(t.Context(), eval.Request{Path: path, Optimize: true, Metrics: []string{"is_json"}}, loader.Options{}, opener)
			if e == nil {
				t.Fatal(list)
			}
			p, err := eval.FindPlace(e.App, address)
			if err != nil {
				t.Fatal(err)
			}
			texts, err := eval.Texts(map[*eval.Place]any{p: text})
			if err != nil {
				t.Fatal(err)
			}
			app, list := opener(t.Context(), path, eval.Change{Texts: texts})
			if list.Errors() > 0 {
				t.Fatalf("%s = %q: %v\n%s", address, text, list, texts)
			}
			id, _, _ := strings.Cut(address, ".")
			for _, item := range app.Flows[0].Steps {
				if s := item.Step.(*spec.LLMInference); s.ID == id && s.SystemMessage != text {
					t.Errorf("%s: got %q, want %q", address, s.SystemMessage, text)
				}
			}
			for name, written := range texts {
				if strings.HasSuffix(name, "prompt.txt") {
					continue
				}
				before, after := strings.Split(places, "\n"), strings.Split(string(written), "\n")
				for _, line := range []string{before[0], before[3], "        # three", "# four"} {
					if !strings.Contains(string(written), line) {
						t.Errorf("%s = %q: the line %q is lost:\n%s", address, text, line, written)
					}
				}
				if d := cmp.Diff(before[len(before)-4:len(before)-2], after[len(after)-4:len(after)-2]); d != "" && id != "last" {
					t.Errorf("%s = %q: %s", address, text, d)
				}
			}
		}
	}
}

// TestTexts_InsertsKeys writes keys that the document does not have.
func TestTexts_InsertsKeys(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.qtype.yaml")
	testkit.Must(t, os.WriteFile(path, []byte(strings.Replace(places, "!include_raw prompt.txt", "x", 1)), 0o600))
	app, list := opener(t.Context(), path, eval.Change{})
	if list.Errors() > 0 {
		t.Fatal(list)
	}
	values := map[*eval.Place]any{}
	for address, v := range map[string]any{"writer.inference_params.temperature": 0.5, "plain.timeout": "3s", "last.timeout": "4s", "flow.timeout": "5s"} {
		p, err := eval.FindPlace(app, address)
		if err != nil {
			t.Fatal(err)
		}
		values[p] = v
	}
	texts, err := eval.Texts(values)
	testkit.Must(t, err)
	for _, text := range texts {
		for _, want := range []string{
			"  - {type: Model, id: writer, inference_params: {temperature: 0.5}, provider: mock} # the writer\n",
			"        id: plain # one\n        timeout: \"3s\"\n        model: writer\n",
			"        id: last\n        timeout: \"4s\"\n", "id: flow, timeout: \"5s\", model: writer",
		} {
			if !strings.Contains(string(text), want) {
				t.Errorf("%q is not in\n%s", want, text)
			}
		}
	}
}

// opener reads documents.
var opener eval.Opener = func(ctx context.Context, path string, change eval.Change) (*spec.Application, diag.List) {
	var o authoring.Options
	o.Change(change)
	p, list := authoring.Check(ctx, path, o)
	return p.Document.Application, list
}
