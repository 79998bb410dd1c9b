package lsp_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/sourcegraph/jsonrpc2"
)

const app = "app.qtype.yaml"

// openShop opens the shop.
func openShop(t *testing.T) *editor {
	t.Helper()
	e := start(t, nil)
	e.open(app, shop)
	return e
}

func TestHover(t *testing.T) {
	e := openShop(t)
	for _, c := range []struct {
		word string
		into int
		want []string
	}{
		{"token_limit", 3, []string{"**token_limit**", "a whole number", "default `100000`", "tokens"}},
		{"type: LLMInference", 8, []string{"**LLMInference**", "Calls a chat model"}},
		{"memory: chat_memory", 10, []string{"**chat_memory** — memory", "`token_limit` 20000", "app.qtype.yaml:3", `step "ask"`}},
		{"inputs: [said]", 10, []string{"**said** — variable", "Type `ChatMessage`", "Used in 2 places"}},
		{"list[Line]", 6, []string{"**Line** — type", "title: text"}},
		{"{q} or", 1, []string{"**q** — variable", "Type `text`"}},
		{"flow: inner", 7, []string{"Inputs: `q: text`; outputs: `p: text`"}},
		{"provider: mock", 11, []string{"One of", "`anthropic`"}},
		{"said, type: ChatMessage", 14, []string{"`ChatMessage` — built-in record type"}},
		{"model: clerk", 8, []string{"Provider `mock`"}},
	} {
		var h struct{ Contents struct{ Value string } }
		e.call("textDocument/hover", e.at(app, c.word, 0, c.into), &h)
		for _, want := range c.want {
			if !strings.Contains(h.Contents.Value, want) {
				t.Errorf("%q is not said of %s:\n%s", want, c.word, h.Contents.Value)
			}
		}
	}
}

func TestHoverExplainsAFault(t *testing.T) {
	e := start(t, nil)
	e.open(app, instead(t, "memory: chat_memory", "memory: chat_memry"))
	var h struct{ Contents struct{ Value string } }
	e.call("textDocument/hover", e.at(app, "chat_memry", 0, 2), &h)
	if !strings.Contains(h.Contents.Value, "**QT202**") {
		t.Errorf("got %q", h.Contents.Value)
	}
}

// TestSecretsAreNotShown looks for one in everything that an editor may show:
// one that is written in the document, and one of the environment.
func TestSecretsAreNotShown(t *testing.T) {
	t.Setenv("LSP_TEST_SECRET", "hunter2")
	e := start(t, nil)
	e.open(app, strings.NewReplacer(`"${KEY:-none}"`, "hunter2", "localhost/{number}", "localhost/{number}?key=${LSP_TEST_SECRET}",
		"Finds an order.", "Finds an order with ${LSP_TEST_SECRET}.").Replace(shop))
	found := fmt.Sprint(e.diagnostics(app))
	for _, word := range []string{"id: key", "hunter2", "api_key, id", "id: find", "name: find", "description: Finds", "endpoint", "{number}?"} {
		var h any
		e.call("textDocument/hover", e.at(app, word, 0, 5), &h)
		found += fmt.Sprint(h)
	}
	var list any
	e.replace(app, strings.Replace(e.texts[app], "    provider: mock\n", "    provider: mock\n    auth: k\n", 1))
	e.call("textDocument/completion", e.at(app, "auth: k", 0, 7), &list)
	if found += fmt.Sprint(list); strings.Contains(found, "hunter2") {
		t.Errorf("the secret is in %s", found)
	}
}

func TestDefinition(t *testing.T) {
	e := openShop(t)
	for _, c := range []struct{ word, declared string }{
		{"memory: chat_memory", "chat_memory\n    token"}, {"model: clerk", "clerk"}, {"flow: inner", "inner"},
		{"inputs: [said]", "said"}, {"outputs: [answer]", "answer"}, {"bindings: {q", "q, type"}, {"template: \"Ask {q", "q, type"},
		{"type: list[Line", "Line\n    properties"}, {"localhost/{number", "number, type"}, {"q: wanted", "wanted, type"},
	} {
		word := c.word
		if strings.HasPrefix(word, "type: list") {
			word = strings.TrimPrefix(word, "type: ")
		}
		var found []location
		e.call("textDocument/definition", e.at(app, word, 0, len(word)-1), &found)
		want := e.at(app, c.declared, 0, 0)["position"].(position)
		if len(found) != 1 || found[0].Range.Start != want {
			t.Errorf("%q leads to %v, want %v", word, found, want)
		}
	}
}

// TestDefinitionWhileTyping finds what was declared before the syntax broke.
func TestDefinitionWhileTyping(t *testing.T) {
	e := openShop(t)
	e.diagnostics(app)
	e.replace(app, shop+"      - {type: Agent, id: x, memory: chat_memory, inputs: [")
	var found []location
	e.call("textDocument/definition", e.at(app, "x, memory: chat_memory", 0, 15), &found)
	if len(found) != 1 || found[0].Range.Start.Line != 2 {
		t.Errorf("found %v", found)
	}
	var h struct{ Contents struct{ Value string } }
	e.call("textDocument/hover", e.at(app, "x, memory: chat_memory", 0, 15), &h)
	if !strings.Contains(h.Contents.Value, "`token_limit` 20000") {
		t.Errorf("got %q", h.Contents.Value)
	}
}

func TestReferencesAndHighlights(t *testing.T) {
	e := openShop(t)
	var found []location
	e.call("textDocument/references", and(e.at(app, "{id: q", 0, 5), "context", map[string]any{"includeDeclaration": true}), &found)
	if len(found) != 6 {
		t.Errorf("q is named at %v", found)
	}
	var without []location
	e.call("textDocument/references", and(e.at(app, "{id: q", 0, 5), "context", map[string]any{}), &without)
	if len(without) != 5 {
		t.Errorf("without its declaration q is named at %v", without)
	}
	var marks []struct{ Kind int }
	e.call("textDocument/documentHighlight", e.at(app, "{id: q", 0, 5), &marks)
	if len(marks) != 6 {
		t.Errorf("highlighted %v", marks)
	}
	// The q of another flow is another one.
	e.replace(app, shop+"  - id: third\n    variables: [{id: q, type: text}]\n    inputs: [q]\n    outputs: [q]\n    steps: [{type: Echo, id: pass, inputs: [q], outputs: [q]}]\n")
	e.call("textDocument/references", and(e.at(app, "{id: q", 0, 5), "context", map[string]any{"includeDeclaration": true}), &found)
	if len(found) != 6 {
		t.Errorf("q is named at %v", found)
	}
}

// edits of a rename by file.
type edits struct {
	Changes map[string][]textEdit
}

func TestRename(t *testing.T) {
	for _, c := range []struct{ word, old, name string }{
		{"{id: q", "q", "question"}, {"id: chat_memory", "chat_memory", "conversation"}, {"id: clerk", "clerk", "boss"},
		{"id: Line", "Line", "Row"}, {"id: inner", "inner", "inside"}, {"id: find", "find", "look_up"},
		{"{id: number", "number", "order_number"}, {"id: ask", "ask", "answer_it"}, {"id: key", "key", "secret"}, {"id: wanted", "wanted", "order_number"},
	} {
		t.Run(c.old, func(t *testing.T) {
			e := openShop(t)
			var w edits
			e.call("textDocument/rename", and(e.at(app, c.word, 0, len(c.word)-1), "newName", c.name), &w)
			got := apply(t, shop, w.Changes[e.uri(app)])
			if got == shop {
				t.Fatal("nothing changed")
			}
			before := e.diagnostics(app)
			e.replace(app, got)
			if after := e.diagnostics(app); codes(after) != codes(before) {
				t.Errorf("renamed, the document has %v:\n%s", after, got)
			}
			// Renamed back it is the old one.
			var back edits
			word := strings.Replace(c.word, c.old, c.name, 1)
			e.call("textDocument/rename", and(e.at(app, word, 0, len(word)-1), "newName", c.old), &back)
			if d := cmp.Diff(shop, apply(t, got, back.Changes[e.uri(app)])); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestRenameThroughIncludes(t *testing.T) {
	e := start(t, map[string]string{
		app:                   instead(t, "memories:\n  - id: chat_memory\n    token_limit: 20000\n", "memories: !include parts/memories.yaml\n"),
		"parts/memories.yaml": "- id: chat_memory\n  token_limit: 20000\n",
	})
	e.openFile("parts/memories.yaml")
	var w edits
	e.call("textDocument/rename", and(e.at("parts/memories.yaml", "chat_memory", 0, 3), "newName", "talks"), &w)
	if len(w.Changes[e.uri(app)]) != 1 || len(w.Changes[e.uri("parts/memories.yaml")]) != 1 {
		t.Errorf("got %v", w)
	}
	var found []location
	e.openFile(app)
	e.call("textDocument/definition", e.at(app, "memory: chat_memory", 0, 10), &found)
	if len(found) != 1 || found[0].URI != e.uri("parts/memories.yaml") {
		t.Errorf("found %v", found)
	}
	e.call("textDocument/definition", e.at(app, "parts/memories", 0, 3), &found)
	if len(found) != 1 || found[0].URI != e.uri("parts/memories.yaml") {
		t.Errorf("the include leads to %v", found)
	}
}

func TestRenameRefuses(t *testing.T) {
	e := openShop(t)
	for _, c := range []struct{ word, name, reason string }{
		{"{id: q", "p", "already taken"},
		{"id: chat_memory", "clerk", "already taken"},
		{"id: chat_memory", "two words", "cannot be an id"},
		{"id: chat_memory", "true", "cannot be an id"},
		{"id: chat_memory", "", "cannot be an id"},
		{"provider: mock", "x", "not the id"},
		{"id: Line", "text", "cannot be renamed"}, // a built-in type
	} {
		err := e.ask("textDocument/rename", and(e.at(app, c.word, 0, len(c.word)-1), "newName", c.name), nil)
		if err == nil || !strings.Contains(err.Error(), c.reason) {
			t.Errorf("renaming at %q to %q: %v, want %q", c.word, c.name, err, c.reason)
		}
	}
	e.replace(app, shop+"      - [")
	err := e.ask("textDocument/prepareRename", e.at(app, "id: clerk", 0, 5), nil)
	if err == nil || !strings.Contains(err.Error(), "syntax") {
		t.Errorf("in a broken document: %v", err)
	}
}

type documentSymbol struct {
	Name     string
	Detail   string
	Range    textRange
	Children []documentSymbol
}

func TestSymbols(t *testing.T) {
	e := openShop(t)
	var tree []documentSymbol
	e.call("textDocument/documentSymbol", map[string]any{"textDocument": map[string]any{"uri": e.uri(app)}}, &tree)
	var flat []string
	var walk func([]documentSymbol, string)
	walk = func(list []documentSymbol, above string) {
		for _, s := range list {
			flat = append(flat, above+s.Name+" "+s.Detail)
			walk(s.Children, above+s.Name+"/")
		}
	}
	walk(tree, "")
	for _, want := range []string{"shop application", "shop/chat_memory memory", "shop/find APITool", "shop/talk flow", "shop/talk/ask LLMInference", "shop/talk/said ChatMessage", "shop/find/number text"} {
		if !slices.Contains(flat, want) {
			t.Errorf("%q is not among %q", want, flat)
		}
	}
}

func TestQuickFix(t *testing.T) {
	e := start(t, nil)
	e.open(app, instead(t, "memory: chat_memory", "memory: chat_memry"))
	var actions []struct {
		Title string
		Kind  string
		Edit  edits
	}
	at := e.at(app, "chat_memry", 0, 1)["position"].(position)
	params := map[string]any{"textDocument": map[string]any{"uri": e.uri(app)}, "range": textRange{at, at}, "context": map[string]any{"diagnostics": []any{}}}
	e.call("textDocument/codeAction", params, &actions)
	if len(actions) != 1 || actions[0].Kind != "quickfix" || !strings.Contains(actions[0].Title, "chat_memory") {
		t.Fatalf("got %v", actions)
	}
	if d := cmp.Diff(shop, apply(t, e.texts[app], actions[0].Edit.Changes[e.uri(app)])); d != "" {
		t.Error(d)
	}
	params["context"] = map[string]any{"diagnostics": []any{}, "only": []string{"refactor"}}
	if e.call("textDocument/codeAction", params, &actions); len(actions) != 0 {
		t.Errorf("asked for something else, got %v", actions)
	}
}

// TestIgnoring silences a warning where it stands.
func TestIgnoring(t *testing.T) {
	e := start(t, nil)
	e.open(app, strings.Replace(shop, "memories:\n", "memories:\n  - id: spare\n", 1))
	found := e.diagnostics(app)
	i := slices.IndexFunc(found, func(d diagnostic) bool { return d.Severity == 2 })
	if i < 0 {
		t.Fatalf("an unused memory is no warning: %v", found)
	}
	var actions []struct {
		Title string
		Edit  edits
	}
	e.call("textDocument/codeAction", map[string]any{"textDocument": map[string]any{"uri": e.uri(app)}, "range": found[i].Range,
		"context": map[string]any{"diagnostics": []any{}}}, &actions)
	for _, a := range actions {
		if strings.HasPrefix(a.Title, "Ignore "+found[i].Code) {
			e.replace(app, apply(t, e.texts[app], a.Edit.Changes[e.uri(app)]))
			if after := e.diagnostics(app); len(after) != len(found)-1 {
				t.Errorf("%d findings are left of %d in\n%s", len(after), len(found), e.texts[app])
			}
			return
		}
	}
	t.Errorf("nothing ignores it: %v", actions)
}

func TestSemanticTokens(t *testing.T) {
	e := openShop(t)
	var tokens struct{ Data []int }
	e.call("textDocument/semanticTokens/full", map[string]any{"textDocument": map[string]any{"uri": e.uri(app)}}, &tokens)
	types := []string{"variable", "function", "class", "type", "property", "parameter", "enumMember", "namespace"}
	var got []string
	lines := strings.Split(shop, "\n")
	line, column := 0, 0
	for i := 0; i+5 <= len(tokens.Data); i += 5 {
		if tokens.Data[i] > 0 {
			column = 0
		}
		line, column = line+tokens.Data[i], column+tokens.Data[i+1]
		got = append(got, lines[line][column:column+tokens.Data[i+2]]+" "+types[tokens.Data[i+3]])
	}
	for _, want := range []string{"chat_memory namespace", "LLMInference class", "said variable", "list[Line] type", "q parameter", "mock enumMember", "number parameter", "inner function"} {
		if !slices.Contains(got, want) {
			t.Errorf("%q is not among %q", want, got)
		}
	}
	if strings.Count(strings.Join(got, ","), "q parameter") != 3 { // two placeholders and a binding
		t.Errorf("tokens are %q", got)
	}
}

// TestFormatting asks for it over the protocol; what it does has tests of its own.
func TestFormatting(t *testing.T) {
	e := start(t, nil)
	untidy := "id:   x   \n\n\n\nmemories:\n-   id: m # the memory\n    token_limit:  5\n"
	e.open(app, untidy)
	var made []textEdit
	params := map[string]any{"textDocument": map[string]any{"uri": e.uri(app)}, "options": map[string]any{"tabSize": 2, "insertSpaces": true}}
	e.call("textDocument/formatting", params, &made)
	if d := cmp.Diff("id: x\n\nmemories:\n  - id: m # the memory\n    token_limit: 5\n", apply(t, untidy, made)); d != "" {
		t.Error(d)
	}
	e.replace(app, "id: [")
	var failed *jsonrpc2.Error
	if err := e.ask("textDocument/formatting", params, nil); !errors.As(err, &failed) {
		t.Errorf("formatting broken YAML: %v", err)
	}
}
