package lsp_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// lensesOf returns the code lenses of a document as text.
func lensesOf(e *editor, name string) []string {
	e.t.Helper()
	var lenses []struct {
		Range   textRange
		Command struct {
			Title, Command string
			Arguments      []struct {
				Args   []string
				Cwd    string
				Inputs []struct{ Name, Type string }
			}
		}
	}
	e.call("textDocument/codeLens", map[string]any{"textDocument": map[string]any{"uri": e.uri(name)}}, &lenses)
	found := []string{}
	for _, l := range lenses {
		a := l.Command.Arguments[0]
		if l.Command.Command != "qtype.runInTerminal" || a.Cwd != e.dir {
			e.t.Errorf("command %s in %s", l.Command.Command, a.Cwd)
		}
		found = append(found, fmt.Sprintf("%d %s: %s %v", l.Range.Start.Line, l.Command.Title, strings.ReplaceAll(strings.Join(a.Args, " "), e.dir+"/", ""), a.Inputs))
	}
	return found
}

// TestCodeLenses checks the commands above flows, also of an included file, and above tests. The program of the test has no
// command eval.
func TestCodeLenses(t *testing.T) {
	e := start(t, map[string]string{"main.qtype.yaml": "id: main\nflows: !include part.yaml\n"})
	e.open(app, `id: shop
flows:
  - id: batch
    variables: [{id: q, type: text}, {id: n, type: "int?"}, {id: a, type: text}]
    inputs: [q, n]
    outputs: [a]
  - id: talk
    interface: {type: Conversational}
    variables: [{id: message, type: ChatMessage}, {id: tags, type: "list[text]"}]
    inputs: [message, tags]
`)
	e.open("part.yaml", "- id: inner\n")
	e.open("app.qtype-test.yaml", "tests:\n  - {name: one (a), flow: batch, turns: []}\n")
	e.open("app.qtype-eval.yaml", "flow: batch\n")
	for name, want := range map[string][]string{
		app:                   {"2 Run: run app.qtype.yaml --flow batch [{q text}]", "6 Chat: chat app.qtype.yaml --flow talk [{tags list[text]}]"},
		"part.yaml":           {"0 Run: run main.qtype.yaml --flow inner []"},
		"app.qtype-test.yaml": {"0 Run test: test app.qtype-test.yaml []", `1 Run this test: test app.qtype-test.yaml --run ^one \(a\)$ []`},
		"app.qtype-eval.yaml": {},
	} {
		if d := cmp.Diff(want, lensesOf(e, name)); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

// TestInlayHints checks that limits that the document does not set are shown after the names of models and memories.
func TestInlayHints(t *testing.T) {
	e := start(t, nil)
	e.open(app, `id: shop
models:
  - {type: Model, id: writer, provider: anthropic, model_id: claude-opus-5-5}
  - {type: Model, id: claude-opus-5-5, provider: anthropic, context_window: 1000}
  - {type: Model, id: own, provider: mock}
memories:
  - id: long
    token_limit: 20000
  - {id: rounds, policy: round_window, n_rounds: 2}
  - {id: all, policy: unbounded}
`)
	hints := func(from, to int) []string {
		var list []struct {
			Position position
			Label    string
		}
		e.call("textDocument/inlayHint", map[string]any{"textDocument": map[string]any{"uri": e.uri(app)},
			"range": textRange{position{from, 0}, position{to, 0}}}, &list)
		var got []string
		for _, h := range list {
			got = append(got, fmt.Sprintf("%d:%d %s", h.Position.Line, h.Position.Character, h.Label))
		}
		return got
	}
	want := []string{"2:76 context 1,000,000, output 128,000", "3:37 output 128,000",
		"6:12 chat_history_token_ratio 0.7, token_flush_size 3000", "8:15 max_context 10000"}
	if d := cmp.Diff(want, hints(0, 11)); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(want[2:3], hints(6, 8)); d != "" {
		t.Error(d)
	}
}
