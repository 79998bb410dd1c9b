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

func openShop(t *testing.T) *editor {
	t.Helper()
	e := start(t, nil)
	e.open(app, shopDocument)
	return e
}

func TestHover(t *testing.T) {
	e := openShop(t)
	for _, c := range []struct {
		word string
		into int
		want []string
	}{
		{"token_limit", 3, []string{"**token_limit**", "an integer", "default `100000`", "tokens", "docs/reference/memories.md#memory)"}},
		{"type: LLMInference", 8, []string{"**LLMInference** — step", "docs/reference/steps.md#llminference)"}},
		{"memory: chat_memory", 10, []string{"**chat_memory** — memory", "`token_limit` 20000", "app.qtype.yaml:3", `step "respond"`}},
		{"inputs: [message]", 10, []string{"**message** — variable", "Type `ChatMessage`", "Used in 2 places"}},
		{"list[Line]", 6, []string{"**Line** — type", "title: text"}},
		{"{q} or", 1, []string{"**q** — variable", "Type `text`"}},
		{"flow: inner", 7, []string{"Inputs: `q: text`; outputs: `p: text`"}},
		{"provider: mock", 11, []string{"One of", "`anthropic`"}},
		{"message, type: ChatMessage", 17, []string{"`ChatMessage` — built-in record type"}},
		{"model: assistant", 8, []string{"Provider `mock`"}},
	} {
		var h struct{ Contents struct{ Value string } }
		e.call("textDocument/hover", e.positionOf(app, c.word, 0, c.into), &h)
		for _, want := range c.want {
			if !strings.Contains(h.Contents.Value, want) {
				t.Errorf("hover of %[2]s lacks %[1]q:\n%[3]s", want, c.word, h.Contents.Value)
			}
		}
	}
}

func TestHover_Arguments(t *testing.T) {
	e := start(t, nil)
	e.open(app, shopDocument+"      - {type: DocumentSource, id: e, reader_module: directory, args: {recursive: true}, outputs: [answer]}\n")
	for word, want := range map[string]string{"recursive": "Also reads the files of the folders below.", "directory": "the files of a local folder"} {
		var h struct{ Contents struct{ Value string } }
		e.call("textDocument/hover", e.positionOf(app, word, 0, 2), &h)
		if !strings.Contains(h.Contents.Value, want) {
			t.Errorf("hover of %s: %q", word, h.Contents.Value)
		}
	}
}

// TestModels_Catalogue checks that names of models are described and completed by the catalogue.
func TestModels_Catalogue(t *testing.T) {
	e := start(t, nil)
	e.open(app, "id: shop\nmodels:\n  - {type: Model, id: writer, provider: anthropic, model_id: claude-opus-5-5}\n")
	var h struct{ Contents struct{ Value string } }
	e.call("textDocument/hover", e.positionOf(app, "claude-opus-5-5", 0, 3), &h)
	for _, want := range []string{"**claude-opus-5-5** — anthropic", "Context window 1,000,000, output 128,000 tokens", "input $4", "Status active"} {
		if !strings.Contains(h.Contents.Value, want) {
			t.Errorf("hover lacks %q:\n%s", want, h.Contents.Value)
		}
	}
	var list struct{ Items []struct{ Label string } }
	e.call("textDocument/completion", e.positionOf(app, "claude-opus-5-5", 0, 3), &list)
	labels := map[string]bool{}
	for _, item := range list.Items {
		labels[item.Label] = true
	}
	if !labels["claude-opus-5-5"] || labels["gpt-6-sol"] || labels["claude-3-opus-20240229"] {
		t.Errorf("proposals %v", labels)
	}
}

func TestHover_Diagnostic(t *testing.T) {
	e := start(t, nil)
	e.open(app, shopWith(t, "memory: chat_memory", "memory: chat_memry"))
	var h struct{ Contents struct{ Value string } }
	e.call("textDocument/hover", e.positionOf(app, "chat_memry", 0, 2), &h)
	if !strings.Contains(h.Contents.Value, "**QT202**") {
		t.Errorf("got %q", h.Contents.Value)
	}
}

// TestServer_HidesSecrets searches all output for secrets of the document and of
// the environment.
func TestServer_HidesSecrets(t *testing.T) {
	t.Setenv("LSP_TEST_SECRET", "hunter2")
	e := start(t, nil)
	e.open(app, strings.NewReplacer(`"${KEY:-none}"`, "hunter2", "localhost/{number}", "localhost/{number}?key=${LSP_TEST_SECRET}",
		"Finds an order.", "Finds an order with ${LSP_TEST_SECRET}.").Replace(shopDocument))
	found := fmt.Sprint(e.diagnostics(app))
	for _, word := range []string{"id: key", "hunter2", "api_key, id", "id: find", "name: find", "description: Finds", "endpoint", "{number}?"} {
		var h any
		e.call("textDocument/hover", e.positionOf(app, word, 0, 5), &h)
		found += fmt.Sprint(h)
	}
	var list any
	e.replace(app, strings.Replace(e.texts[app], "    provider: mock\n", "    provider: mock\n    auth: k\n", 1))
	e.call("textDocument/completion", e.positionOf(app, "auth: k", 0, 7), &list)
	if found += fmt.Sprint(list); strings.Contains(found, "hunter2") {
		t.Errorf("the secret is in %s", found)
	}
}

func TestDefinition(t *testing.T) {
	e := openShop(t)
	for _, c := range []struct{ word, declared string }{
		{"memory: chat_memory", "chat_memory\n    token"}, {"model: assistant", "assistant"}, {"flow: inner", "inner"},
		{"inputs: [message]", "message"}, {"outputs: [answer]", "answer"}, {"bindings: {q", "q, type"}, {"template: \"Ask {q", "q, type"},
		{"type: list[Line", "Line\n    properties"}, {"localhost/{number", "number, type"}, {"q: wanted", "wanted, type"},
	} {
		word := c.word
		if strings.HasPrefix(word, "type: list") {
			word = strings.TrimPrefix(word, "type: ")
		}
		var found []location
		e.call("textDocument/definition", e.positionOf(app, word, 0, len(word)-1), &found)
		want := e.positionOf(app, c.declared, 0, 0)["position"].(position)
		if len(found) != 1 || found[0].Range.Start != want {
			t.Errorf("%q leads to %v, want %v", word, found, want)
		}
	}
}

// TestDefinition_BrokenDocument looks up a declaration from the last valid version.
func TestDefinition_BrokenDocument(t *testing.T) {
	e := openShop(t)
	e.diagnostics(app)
	e.replace(app, shopDocument+"      - {type: Agent, id: x, memory: chat_memory, inputs: [")
	var found []location
	e.call("textDocument/definition", e.positionOf(app, "x, memory: chat_memory", 0, 15), &found)
	if len(found) != 1 || found[0].Range.Start.Line != 2 {
		t.Errorf("found %v", found)
	}
	var h struct{ Contents struct{ Value string } }
	e.call("textDocument/hover", e.positionOf(app, "x, memory: chat_memory", 0, 15), &h)
	if !strings.Contains(h.Contents.Value, "`token_limit` 20000") {
		t.Errorf("got %q", h.Contents.Value)
	}
}

func TestReferencesAndHighlights(t *testing.T) {
	e := openShop(t)
	var found []location
	e.call("textDocument/references", withParam(e.positionOf(app, "{id: q", 0, 5), "context", map[string]any{"includeDeclaration": true}), &found)
	if len(found) != 6 {
		t.Errorf("names of q: %v", found)
	}
	var without []location
	e.call("textDocument/references", withParam(e.positionOf(app, "{id: q", 0, 5), "context", map[string]any{}), &without)
	if len(without) != 5 {
		t.Errorf("without its declaration names of q: %v", without)
	}
	var marks []struct{ Kind int }
	e.call("textDocument/documentHighlight", e.positionOf(app, "{id: q", 0, 5), &marks)
	if len(marks) != 6 {
		t.Errorf("highlighted %v", marks)
	}
	// A variable q of another flow is not the same.
	e.replace(app, shopDocument+"  - id: third\n    variables: [{id: q, type: text}]\n    inputs: [q]\n    outputs: [q]\n    steps: [{type: Echo, id: pass, inputs: [q], outputs: [q]}]\n")
	e.call("textDocument/references", withParam(e.positionOf(app, "{id: q", 0, 5), "context", map[string]any{"includeDeclaration": true}), &found)
	if len(found) != 6 {
		t.Errorf("names of q: %v", found)
	}
}

// renameEdits are the edits of a rename by URI.
type renameEdits struct {
	Changes map[string][]textEdit
}

func TestRename(t *testing.T) {
	for _, c := range []struct{ word, old, name string }{
		{"{id: q", "q", "question"}, {"id: chat_memory", "chat_memory", "conversation"}, {"id: assistant", "assistant", "other_model"},
		{"id: Line", "Line", "Row"}, {"id: inner", "inner", "inside"}, {"id: find", "find", "look_up"},
		{"{id: number", "number", "order_number"}, {"id: respond", "respond", "reply"}, {"id: key", "key", "secret"}, {"id: wanted", "wanted", "order_number"},
	} {
		t.Run(c.old, func(t *testing.T) {
			e := openShop(t)
			var w renameEdits
			e.call("textDocument/rename", withParam(e.positionOf(app, c.word, 0, len(c.word)-1), "newName", c.name), &w)
			got := applyEdits(t, shopDocument, w.Changes[e.uri(app)])
			if got == shopDocument {
				t.Fatal("nothing changed")
			}
			before := e.diagnostics(app)
			e.replace(app, got)
			if after := e.diagnostics(app); codesOf(after) != codesOf(before) {
				t.Errorf("renamed, the document has %v:\n%s", after, got)
			}
			// Renaming back restores the document.
			var back renameEdits
			word := strings.Replace(c.word, c.old, c.name, 1)
			e.call("textDocument/rename", withParam(e.positionOf(app, word, 0, len(word)-1), "newName", c.old), &back)
			if d := cmp.Diff(shopDocument, applyEdits(t, got, back.Changes[e.uri(app)])); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestRename_Includes(t *testing.T) {
	e := start(t, map[string]string{
		app:                   shopWith(t, "memories:\n  - id: chat_memory\n    token_limit: 20000\n", "memories: !include parts/memories.yaml\n"),
		"parts/memories.yaml": "- id: chat_memory\n  token_limit: 20000\n",
	})
	e.openFile("parts/memories.yaml")
	var w renameEdits
	e.call("textDocument/rename", withParam(e.positionOf("parts/memories.yaml", "chat_memory", 0, 3), "newName", "talks"), &w)
	if len(w.Changes[e.uri(app)]) != 1 || len(w.Changes[e.uri("parts/memories.yaml")]) != 1 {
		t.Errorf("got %v", w)
	}
	var found []location
	e.openFile(app)
	e.call("textDocument/definition", e.positionOf(app, "memory: chat_memory", 0, 10), &found)
	if len(found) != 1 || found[0].URI != e.uri("parts/memories.yaml") {
		t.Errorf("found %v", found)
	}
	e.call("textDocument/definition", e.positionOf(app, "parts/memories", 0, 3), &found)
	if len(found) != 1 || found[0].URI != e.uri("parts/memories.yaml") {
		t.Errorf("the include leads to %v", found)
	}
}

func TestRename_Rejected(t *testing.T) {
	e := openShop(t)
	for _, c := range []struct{ word, name, reason string }{
		{"{id: q", "p", "already taken"},
		{"id: chat_memory", "assistant", "already taken"},
		{"id: chat_memory", "two words", "invalid id"},
		{"id: chat_memory", "true", "invalid id"},
		{"id: chat_memory", "", "invalid id"},
		{"{id: q", "yes", "invalid id"},
		{"provider: mock", "x", "no id that can be renamed"},
		{"id: Line", "text", "cannot rename"}, // a built-in type
	} {
		err := e.tryCall("textDocument/rename", withParam(e.positionOf(app, c.word, 0, len(c.word)-1), "newName", c.name), nil)
		if err == nil || !strings.Contains(err.Error(), c.reason) {
			t.Errorf("renaming at %q to %q: %v, want %q", c.word, c.name, err, c.reason)
		}
	}
	e.replace(app, shopDocument+"      - [")
	err := e.tryCall("textDocument/prepareRename", e.positionOf(app, "id: assistant", 0, 5), nil)
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
	for _, want := range []string{"shop application", "shop/chat_memory memory", "shop/find APITool", "shop/talk flow", "shop/talk/respond LLMInference", "shop/talk/message ChatMessage", "shop/find/number text"} {
		if !slices.Contains(flat, want) {
			t.Errorf("%q is not among %q", want, flat)
		}
	}
}

func TestCodeAction_QuickFix(t *testing.T) {
	e := start(t, nil)
	e.open(app, shopWith(t, "memory: chat_memory", "memory: chat_memry"))
	var actions []struct {
		Title string
		Kind  string
		Edit  renameEdits
	}
	at := e.positionOf(app, "chat_memry", 0, 1)["position"].(position)
	params := map[string]any{"textDocument": map[string]any{"uri": e.uri(app)}, "range": textRange{at, at}, "context": map[string]any{"diagnostics": []any{}}}
	e.call("textDocument/codeAction", params, &actions)
	if len(actions) != 1 || actions[0].Kind != "quickfix" || !strings.Contains(actions[0].Title, "chat_memory") {
		t.Fatalf("got %v", actions)
	}
	if d := cmp.Diff(shopDocument, applyEdits(t, e.texts[app], actions[0].Edit.Changes[e.uri(app)])); d != "" {
		t.Error(d)
	}
	params["context"] = map[string]any{"diagnostics": []any{}, "only": []string{"refactor"}}
	if e.call("textDocument/codeAction", params, &actions); len(actions) != 0 {
		t.Errorf("requested another kind, got %v", actions)
	}
}

// TestCodeAction_Ignore applies the action that suppresses a warning.
func TestCodeAction_Ignore(t *testing.T) {
	e := start(t, nil)
	e.open(app, strings.Replace(shopDocument, "memories:\n", "memories:\n  - id: spare\n", 1))
	found := e.diagnostics(app)
	i := slices.IndexFunc(found, func(d diagnostic) bool { return d.Severity == 2 })
	if i < 0 {
		t.Fatalf("an unused memory is no warning: %v", found)
	}
	var actions []struct {
		Title string
		Edit  renameEdits
	}
	e.call("textDocument/codeAction", map[string]any{"textDocument": map[string]any{"uri": e.uri(app)}, "range": found[i].Range,
		"context": map[string]any{"diagnostics": []any{}}}, &actions)
	for _, a := range actions {
		if strings.HasPrefix(a.Title, "Ignore "+found[i].Code) {
			e.replace(app, applyEdits(t, e.texts[app], a.Edit.Changes[e.uri(app)]))
			if after := e.diagnostics(app); len(after) != len(found)-1 {
				t.Errorf("%d diagnostics are left of %d in\n%s", len(after), len(found), e.texts[app])
			}
			return
		}
	}
	t.Errorf("no action ignores it: %v", actions)
}

func TestSemanticTokens(t *testing.T) {
	e := openShop(t)
	var tokens struct{ Data []int }
	e.call("textDocument/semanticTokens/full", map[string]any{"textDocument": map[string]any{"uri": e.uri(app)}}, &tokens)
	types := []string{"variable", "function", "class", "type", "property", "parameter", "enumMember", "namespace"}
	var got []string
	lines := strings.Split(shopDocument, "\n")
	line, column := 0, 0
	for i := 0; i+5 <= len(tokens.Data); i += 5 {
		if tokens.Data[i] > 0 {
			column = 0
		}
		line, column = line+tokens.Data[i], column+tokens.Data[i+1]
		got = append(got, lines[line][column:column+tokens.Data[i+2]]+" "+types[tokens.Data[i+3]])
	}
	for _, want := range []string{"chat_memory namespace", "LLMInference class", "message variable", "list[Line] type", "q parameter", "mock enumMember", "number parameter", "inner function"} {
		if !slices.Contains(got, want) {
			t.Errorf("%q is not among %q", want, got)
		}
	}
	if strings.Count(strings.Join(got, ","), "q parameter") != 3 { // two placeholders and a binding
		t.Errorf("tokens are %q", got)
	}
}

func TestFormatting(t *testing.T) {
	e := start(t, nil)
	unformatted := "id:   x   \n\n\n\nmemories:\n-   id: m # the memory\n    token_limit:  5\n"
	e.open(app, unformatted)
	var made []textEdit
	params := map[string]any{"textDocument": map[string]any{"uri": e.uri(app)}, "options": map[string]any{"tabSize": 2, "insertSpaces": true}}
	e.call("textDocument/formatting", params, &made)
	if d := cmp.Diff("id: x\n\nmemories:\n  - id: m # the memory\n    token_limit: 5\n", applyEdits(t, unformatted, made)); d != "" {
		t.Error(d)
	}
	e.replace(app, "id: [")
	var failed *jsonrpc2.Error
	if err := e.tryCall("textDocument/formatting", params, nil); !errors.As(err, &failed) {
		t.Errorf("formatting broken YAML: %v", err)
	}
}
