package lsp_test

import (
	"slices"
	"strings"
	"testing"
)

// tests and evaluation are files about shopDocument.
const (
	tests      = "app.qtype-test.yaml"
	evaluation = "app.qtype-eval.yaml"
)

// TestKinds_Diagnostics checks that files of tests and of evaluations are checked with the text
// of the application in the editor.
func TestKinds_Diagnostics(t *testing.T) {
	for _, c := range []struct{ name, file, text, want, message string }{
		{"valid tests", tests, "tests:\n  - {name: a, flow: inner, turns: [{input: x, expect: ['p != \"\"']}]}\n", "", ""},
		{"valid evaluation", evaluation, "flow: inner\nmetrics: [{type: exact}]\n", "", ""},
		{"unknown key", tests, "tests:\n  - {name: a, flow: inner, trns: [{input: x}]}\n", "QT103", "turns"},
		{"unknown flow", tests, "tests:\n  - {name: a, flow: iner, turns: [{input: x}]}\n", "QT801", `"inner"`},
		{"unknown input", tests, "tests:\n  - {name: a, flow: inner, turns: [{inputs: {qq: x}}]}\n", "QT801", "input of flow inner"},
		{"unknown tool", tests, "tools: [{id: fnd, result: x}]\ntests:\n  - {name: a, flow: inner, turns: [{input: x}]}\n", "QT801", `"find"`},
		{"wrong type of an input", tests, "tests:\n  - {name: a, flow: inner, turns: [{inputs: {q: [1, 2]}}]}\n", "QT802", "input q:"},
		{"unknown output", evaluation, "flow: inner\nmetrics: [{type: exact, output: pp}]\n", "QT811", "output of flow inner"},
		{"not YAML", tests, "tests: [\n", "QT002", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := start(t, map[string]string{app: "id: other\n"})
			e.open(app, shopDocument)
			e.open(c.file, c.text)
			found := e.diagnostics(c.file)
			if got := codesOf(found); !strings.HasPrefix(got, c.want) || c.want == "" && got != "" {
				t.Fatalf("got %q, want %q: %v", got, c.want, found)
			}
			if len(found) > 0 && !strings.Contains(found[0].Message, c.message) {
				t.Errorf("message %q lacks %q", found[0].Message, c.message)
			}
		})
	}
}

// TestKinds_Application checks that a change of the application changes the diagnostics of its
// tests, and that the application is still checked by itself.
func TestKinds_Application(t *testing.T) {
	e := start(t, map[string]string{app: shopDocument})
	e.open(tests, "tests:\n  - {name: a, flow: inner, turns: [{input: x}]}\n")
	if found := e.diagnostics(tests); len(found) > 0 {
		t.Fatalf("found %v", found)
	}
	e.open(app, strings.ReplaceAll(shopDocument, "inner", "outer"))
	if found := e.diagnostics(tests); codesOf(found) != "QT801" {
		t.Fatalf("after a flow was renamed: %v", found)
	}
	e.replace(app, shopDocument+"modles: []\n")
	found := e.diagnostics(tests)
	for len(found) == 0 || !strings.Contains(found[0].Message, "app.qtype.yaml has errors") {
		found = e.diagnostics(tests)
	}
	var report struct{ Items []diagnostic }
	e.call("textDocument/diagnostic", map[string]any{"textDocument": map[string]any{"uri": e.uri(app)}}, &report)
	if !strings.Contains(codesOf(report.Items), "QT103") {
		t.Errorf("of the application: %v", report.Items)
	}
}

func TestKinds_Completion(t *testing.T) {
	for _, c := range []struct {
		name, file, text string
		want             []string
		exact            bool
		insert           string
	}{
		{"keys of a file", tests, cursor, []string{"tests", "app", "models"}, false, "tests:\n  - "},
		{"keys of a turn", tests, "tests:\n  - name: a\n    turns:\n      - " + cursor, []string{"input", "inputs", "expect", "fails"}, false, ""},
		{"flows", tests, "tests:\n  - name: a\n    flow: " + cursor + "\n    turns: []\n", []string{"inner", "talk"}, true, "inner"},
		{"inputs of the flow", tests, "tests:\n  - name: a\n    flow: talk\n    turns:\n      - inputs: {" + cursor + "}\n", []string{"message", "wanted"}, true, "message: "},
		{"inputs in a block", tests, "tests:\n  - name: a\n    flow: inner\n    turns:\n      - inputs:\n          " + cursor, []string{"q"}, true, "q: "},
		{"outputs in a condition", tests, "tests:\n  - name: a\n    flow: talk\n    turns:\n      - expect: ['" + cursor + "']\n", []string{"answer", "filled"}, true, "answer"},
		{"tools to mock", tests, "tools: [{id: " + cursor + "}]\n", []string{"find"}, true, "find"},
		{"models to mock", tests, "models:\n  - id: " + cursor, []string{"assistant"}, false, "assistant"},
		{"rules of a mock", tests, "models:\n  - id: assistant\n    rules:\n      - " + cursor, []string{"echo", "match"}, false, ""},
		{"memories", tests, "tests:\n  - turns:\n      - memory: [{id: " + cursor + "}]\n", []string{"chat_memory"}, true, ""},
		{"flows of an evaluation", evaluation, "flow: " + cursor, []string{"inner", "talk"}, true, ""},
		{"types of metrics", evaluation, "metrics:\n  - type: " + cursor, []string{"exact", "judge"}, false, "exact"},
		{"outputs to evaluate", evaluation, "flow: talk\nmetrics:\n  - {type: exact, output: " + cursor + "}\n", []string{"answer", "filled"}, true, ""},
		{"prompts of a variant", evaluation, "variants:\n  - id: short\n    prompts: {" + cursor + "}\n", []string{"fill", "respond"}, false, "fill: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := start(t, map[string]string{app: shopDocument})
			text, at := cutCursor(t, c.text)
			e.open(c.file, text)
			var list struct{ Items []completionItem }
			e.call("textDocument/completion", map[string]any{"textDocument": map[string]any{"uri": e.uri(c.file)}, "position": at}, &list)
			var labels []string
			for _, i := range list.Items {
				if labels = append(labels, i.Label); c.insert != "" && i.Label == c.want[0] && i.TextEdit.NewText != c.insert {
					t.Errorf("%q inserts %q, want %q", i.Label, i.TextEdit.NewText, c.insert)
				}
			}
			for _, label := range c.want {
				if !slices.Contains(labels, label) || c.exact && len(labels) != len(c.want) {
					t.Errorf("proposed %q, want %q", labels, c.want)
				}
			}
		})
	}
}

func TestKinds_Hover(t *testing.T) {
	e := start(t, map[string]string{app: shopDocument})
	e.open(tests, "tools: [{id: find, result: x}]\ntests:\n  - {name: a, flow: talk, turns: [{inputs: {wanted: 1}}]}\n  - {name: b, flow: iner, turns: [{input: x}]}\n")
	for _, c := range []struct{ word, want string }{
		{"turns: [{inputs", "Run one after the other."},
		{"talk", "**talk** — flow"},
		{"find", "`GET http://localhost/{number}`"},
		{"wanted", "**wanted** — variable"},
		{"iner", "unknown name in a test"},
	} {
		var h struct{ Contents struct{ Value string } }
		e.call("textDocument/hover", e.positionOf(tests, c.word, 0, 2), &h)
		if !strings.Contains(h.Contents.Value, c.want) {
			t.Errorf("hover of %s lacks %q:\n%s", c.word, c.want, h.Contents.Value)
		}
	}
}

// TestKinds_Definition checks that the names in files of tests and evaluations lead to their
// declarations, and that they are renamed there.
func TestKinds_Definition(t *testing.T) {
	e := start(t, map[string]string{app: shopDocument})
	e.open(app, shopDocument)
	e.open(tests, "tests:\n  - {name: a, flow: inner, turns: [{input: x}]}\n")
	e.open(evaluation, "flow: inner\nmetrics: [{type: exact}]\n")
	for _, file := range []string{tests, evaluation} {
		var found []location
		at := e.positionOf(file, "flow: inner", 0, 7)
		e.call("textDocument/definition", at, &found)
		if len(found) != 1 || found[0].URI != e.uri(app) {
			t.Errorf("%s: found %v", file, found)
		}
		err := e.tryCall("textDocument/rename", withParam(at, "newName", "outer"), nil)
		if err == nil || !strings.Contains(err.Error(), `rename "inner" in app.qtype.yaml:`) {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// TestRename_Kinds checks that a rename also edits the files of tests and evaluations about the document: open
// ones, those of the folder, and only where they name what is renamed.
func TestRename_Kinds(t *testing.T) {
	const inFolder, ofOther = "more/other.qtype-test.yaml", "more/unrelated.qtype-test.yaml"
	texts := map[string]string{
		tests: "models: [{id: assistant, rules: [{echo: true}]}]\ntools: [{id: find, result: {state: find}}]\ntests:\n" +
			"  - name: inner\n    flow: inner\n    turns:\n      - inputs: {q: q, \"p\": q}\n        expect: ['p != \"p\" and len(p) > 0 and x.p == \"\"']\n" +
			"  - name: talk\n    flow: talk\n    turns: [{inputs: {message: q, wanted: {q: wanted}}, expect: [filled == 'q'], memory: [{id: chat_memory, contains: [q]}]}]\n",
		inFolder:   "app: ../app.qtype.yaml\ntests:\n  - {name: a, flow: 'inner', turns: [{input: q, expect: [p == q]}]}\n",
		ofOther:    "app: unrelated.qtype.yaml\ntests:\n  - {name: a, flow: inner, turns: [{inputs: {q: x}}]}\n",
		evaluation: "flow: inner\nmetrics: [{type: exact, output: p}, {type: judge, id: j, model: assistant, prompt: p}]\nvariants: [{id: fill, prompts: {fill: fill}, models: {assistant: assistant}, inputs: {q: assistant}}]\n",
	}
	for _, c := range []struct {
		word, old string
		want      map[string]string // replaced parts, old by new; the name is new
	}{
		{"id: inner", "inner", map[string]string{tests: "flow: new", inFolder: "flow: 'new'", evaluation: "flow: new\n"}},
		{"{id: q", "q", map[string]string{tests: "inputs: {new: q, ", inFolder: "[p == new]", evaluation: "inputs: {new: assistant}"}},
		{"{id: p", "p", map[string]string{tests: `expect: ['new != "p" and len(new) > 0 and x.p == ""']`, inFolder: "[new == q]", evaluation: "output: new}"}},
		{"{id: wanted", "wanted", map[string]string{tests: "new: {q: wanted}"}},
		{"id: find", "find", map[string]string{tests: "tools: [{id: new, result: {state: find}}]"}},
		{"id: assistant", "assistant", map[string]string{tests: "models: [{id: new, ", evaluation: "model: new, prompt: p}]\nvariants: [{id: fill, prompts: {fill: fill}, models: {new: new}, inputs: {q: assistant}"}},
		{"id: fill", "fill", map[string]string{evaluation: "{id: fill, prompts: {new: fill}"}},
		{"id: chat_memory", "chat_memory", map[string]string{tests: "memory: [{id: new, "}},
	} {
		t.Run(c.old, func(t *testing.T) {
			files := map[string]string{"more/unrelated.qtype.yaml": shopDocument}
			for name, text := range texts {
				files[name] = text
			}
			e := start(t, files)
			e.open(app, shopDocument)
			e.open(tests, texts[tests])
			var w renameEdits
			e.call("textDocument/rename", withParam(e.positionOf(app, c.word, 0, len(c.word)-1), "newName", "new"), &w)
			for name, text := range texts {
				got := applyEdits(t, text, w.Changes[e.uri(name)])
				if part := c.want[name]; part == "" && got != text || !strings.Contains(got, part) {
					t.Errorf("%s has no %q:\n%s", name, part, got)
				}
			}
			if n := len(w.Changes); n != len(c.want)+1 {
				t.Errorf("%d files are edited", n)
			}
		})
	}
}

// TestRename_ShortNames checks names that some YAML parsers read as truth values.
func TestRename_ShortNames(t *testing.T) {
	e := openShop(t)
	for _, name := range []string{"n", "y"} {
		if err := e.tryCall("textDocument/rename", withParam(e.positionOf(app, "{id: q", 0, 5), "newName", name), nil); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
