package lsp_test

import (
	"slices"
	"strings"
	"testing"
)

// shopDocument is an application with most kinds of entities.
const shopDocument = `id: shop
memories:
  - id: chat_memory
    token_limit: 20000
auths:
  - {type: api_key, id: key, api_key: "${KEY:-none}"}
models:
  - type: Model
    id: assistant
    provider: mock
    rules: [{echo: true}]
  - {type: EmbeddingModel, id: vectors, provider: openai, dimensions: 8}
types:
  - id: Order
    properties:
      number: text
      lines: list[Line]
  - id: Line
    properties: {title: text}
tools:
  - type: APITool
    id: find
    name: find
    description: Finds an order.
    endpoint: http://localhost/{number}
    inputs:
      - {id: number, type: text}
    outputs:
      - {id: state, type: text}
flows:
  - id: inner
    variables:
      - {id: q, type: text}
      - {id: p, type: text}
    inputs: [q]
    outputs: [p]
    steps:
      - type: PromptTemplate
        id: fill
        template: "Ask {q} or {q!r}"
        inputs: [q]
        outputs: [p]
  - id: talk
    variables:
      - {id: message, type: ChatMessage}
      - {id: wanted, type: text}
      - {id: filled, type: text}
      - {id: answer, type: ChatMessage}
    inputs: [message, wanted]
    outputs: [answer, filled]
    steps:
      - type: InvokeFlow
        id: call
        flow: inner
        input_bindings: {q: wanted}
        output_bindings: {p: filled}
      - type: LLMInference
        id: respond
        model: assistant
        memory: chat_memory
        inputs: [message]
        outputs: [answer]
`

// shopWith returns shopDocument with a text replaced that occurs once.
func shopWith(t testing.TB, old, text string) string {
	t.Helper()
	if strings.Count(shopDocument, old) != 1 {
		t.Fatalf("%q is %d times in the document", old, strings.Count(shopDocument, old))
	}
	return strings.Replace(shopDocument, old, text, 1)
}

func TestCompletion(t *testing.T) {
	add := func(step string) string { return shopDocument + step }
	for _, c := range []struct {
		name   string
		text   string
		want   []string // must be proposed
		not    []string // must not be proposed
		exact  bool     // nothing else may be proposed
		insert string   // the text that the first of want inserts
	}{
		{name: "empty document", text: cursor, want: []string{"id", "memories", "flows"}, insert: "id: "},
		{name: "missing keys of the application", text: shopDocument + cursor, want: []string{"indexes", "telemetry"}, not: []string{"flows", "id", "token_limit"}},
		{name: "types of steps", text: shopWith(t, "type: LLMInference", "type: "+cursor), want: []string{"LLMInference", "Agent", "Echo"}, not: []string{"Model", "APITool"}, insert: "LLMInference"},
		{name: "half a type", text: shopWith(t, "type: LLMInference", "type: LLM"+cursor), want: []string{"LLMInference"}},
		{name: "only the keys of the type", text: shopWith(t, "        memory: chat_memory\n", "        "+cursor+"\n"), want: []string{"memory", "system_message"}, not: []string{"template", "model", "tools", "type"}, insert: "memory: "},
		{name: "half a key", text: shopWith(t, "        memory: chat_memory\n", "        mem"+cursor+"\n"), want: []string{"memory"}, insert: "memory: "},
		{name: "a key with a colon", text: shopWith(t, "memory: chat_memory", "mem"+cursor+": chat_memory"), want: []string{"memory"}, insert: "memory"},
		{name: "keys of a step without a type", text: add("      - " + cursor), want: []string{"type", "id", "inputs", "$ref"}, not: []string{"template", "memory"}, insert: "type: "},
		{name: "memories", text: shopWith(t, "memory: chat_memory", "memory: "+cursor), want: []string{"chat_memory"}, exact: true},
		{name: "in the middle of an id", text: shopWith(t, "memory: chat_memory", "memory: chat"+cursor+"_memory"), want: []string{"chat_memory"}, exact: true, insert: "chat_memory"},
		{name: "models for a step", text: shopWith(t, "model: assistant", "model: "+cursor), want: []string{"assistant", "vectors"}, exact: true},
		{name: "only embedding models", text: add("      - {type: InvokeEmbedding, id: e, model: " + cursor + "}\n"), want: []string{"vectors"}, exact: true},
		{name: "flows", text: shopWith(t, "flow: inner", "flow: "+cursor), want: []string{"inner", "talk"}, exact: true},
		{name: "tools", text: add("      - {type: InvokeTool, id: e, tool: " + cursor + "}\n"), want: []string{"find"}, exact: true},
		{name: "tools that the list does not contain", text: add("      - {type: Agent, id: e, tools: [find, " + cursor + "]}\n"), exact: true},
		{name: "auths", text: shopWith(t, "    provider: mock\n", "    provider: openai\n    auth: "+cursor+"\n"), want: []string{"key"}, exact: true},
		{name: "variables of this flow", text: shopWith(t, "inputs: [message]", "inputs: ["+cursor+"]"), want: []string{"message", "wanted", "filled", "answer"}, exact: true},
		{name: "variables in a block list", text: shopWith(t, "inputs: [message]", "inputs:\n          - "+cursor), want: []string{"message", "wanted", "filled", "answer"}, exact: true},
		{name: "variables after an unclosed bracket", text: shopWith(t, "inputs: [message]", "inputs: [message, "+cursor), want: []string{"wanted"}, not: []string{"message", "q"}},
		{name: "inputs of an invoked flow", text: shopWith(t, "{q: wanted}", "{"+cursor+"}"), want: []string{"q"}, exact: true, insert: "q: "},
		{name: "outputs of an invoked flow, in a block", text: shopWith(t, "output_bindings: {p: filled}", "output_bindings:\n          "+cursor), want: []string{"p"}, exact: true, insert: "p: "},
		{name: "variables in a binding", text: shopWith(t, "{q: wanted}", "{q: "+cursor+"}"), want: []string{"message", "wanted"}},
		{name: "arguments of a tool", text: add("      - type: InvokeTool\n        id: e\n        tool: find\n        input_bindings:\n          " + cursor), want: []string{"number"}, exact: true},
		{name: "results of a tool", text: add("      - type: InvokeTool\n        id: e\n        tool: find\n        output_bindings: {" + cursor), want: []string{"state"}, exact: true},
		{name: "enumeration values", text: shopWith(t, "provider: mock", "provider: "+cursor), want: []string{"openai", "mock", "anthropic"}},
		{name: "a default", text: shopWith(t, "token_limit: 20000", "token_limit: "+cursor), want: []string{"100000"}, exact: true},
		{name: "types of variables", text: shopWith(t, "{id: message, type: ChatMessage}", "{id: message, type: "+cursor+"}"), want: []string{"text", "ChatMessage", "Order", "list[text]"}},
		{name: "types in a list", text: shopWith(t, "lines: list[Line]", "lines: list["+cursor), want: []string{"Line", "int"}, not: []string{"list[text]"}, insert: "Line"},
		{name: "placeholders", text: shopWith(t, "{q} or", "{"+cursor+"} or"), want: []string{"q"}, exact: true, insert: "q"},
		{name: "placeholders in a block", text: shopWith(t, `template: "Ask {q} or {q!r}"`, "template: |\n          Ask {"+cursor), want: []string{"q"}, exact: true, insert: "q}"},
		{name: "keys of a memory", text: shopWith(t, "    token_limit: 20000\n", "    "+cursor+"\n"), want: []string{"chat_history_token_ratio", "token_limit"}, not: []string{"provider"}},
		{name: "keys of a mapping in braces", text: shopWith(t, "{id: message, type: ChatMessage}", "{id: message, "+cursor+"}"), want: []string{"type", "optional"}, not: []string{"id"}},
		{name: "items of a list", text: shopWith(t, "memories:\n  - id: chat_memory\n    token_limit: 20000\n", "memories:\n  "+cursor+"\n"), want: []string{"- "}},
		{name: "a section opens below its key", text: "id: x\n" + cursor, want: []string{"models"}, insert: "models:\n  - "},
		{name: "while a quote is open", text: shopWith(t, "        model: assistant\n", "        system_message: \"You are\n        model: "+cursor+"\n"), want: []string{"assistant"}},
		{name: "while a key before it is broken", text: shopWith(t, "        model: assistant\n", "        model\n        memory: "+cursor+"\n"), want: []string{"chat_memory"}},
		{name: "while a list before it is broken", text: shopWith(t, "inputs: [message, wanted]", "inputs: [message, wanted") + "      - {type: Agent, id: x, memory: " + cursor, want: []string{"chat_memory"}},
		{name: "nothing in a comment", text: shopWith(t, "memory: chat_memory", "memory: chat_memory # "+cursor), exact: true},
		{name: "nothing in a text", text: shopWith(t, "description: Finds an order.", "description: Finds "+cursor), exact: true},
		{name: "expressions", text: add("      - type: Switch\n        id: s\n        cases:\n          - {when: wanted == " + cursor), want: []string{"wanted", "filled"}},
		{name: "kinds of memory policy", text: shopWith(t, "token_limit: 20000", "policy: "+cursor), want: []string{"flush", "round_window"}},
		{name: "true and false", text: shopWith(t, "rules: [{echo: true}]", "rules: [{echo: "+cursor+"}]"), want: []string{"true", "false"}, exact: true},
		{name: "readers", text: add("      - {type: DocumentSource, id: e, reader_module: " + cursor + "}\n"), want: []string{"directory", "sitemap"}, not: []string{"embedded"}},
		{name: "arguments of a reader", text: add("      - type: DocumentSource\n        id: e\n        reader_module: directory\n        args:\n          " + cursor),
			want: []string{"input_dir", "encoding"}, not: []string{"sitemap_url", "reader_module"}, insert: "input_dir: "},
		{name: "arguments in braces", text: add("      - {type: DocumentSource, id: e, reader_module: sitemap, args: {sitemap_url: x, " + cursor + "}}\n"), want: []string{"filter"}, not: []string{"sitemap_url", "input_dir"}},
		{name: "arguments of the default splitter", text: add("      - type: DocumentSplitter\n        id: e\n        args: {" + cursor + "}\n"), want: []string{"paragraph_separator"}, not: []string{"tags"}},
		{name: "values of an argument", text: add("      - type: DocumentSource\n        id: e\n        reader_module: directory\n        args: {recursive: " + cursor + "}\n"), want: []string{"true", "false"}, exact: true},
		{name: "arguments of an unknown reader", text: add("      - type: DocumentSource\n        id: e\n        reader_module: other\n        args: {" + cursor + "}\n"), exact: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := start(t, nil)
			text, at := cutCursor(t, c.text)
			e.open("app.qtype.yaml", text)
			var list struct{ Items []completionItem }
			e.call("textDocument/completion", map[string]any{"textDocument": map[string]any{"uri": e.uri("app.qtype.yaml")}, "position": at}, &list)
			var labels []string
			for _, i := range list.Items {
				labels = append(labels, i.Label)
			}
			for _, label := range c.want {
				if !slices.Contains(labels, label) {
					t.Errorf("%q is not among %q", label, labels)
				}
			}
			for _, label := range c.not {
				if slices.Contains(labels, label) {
					t.Errorf("%q is among %q", label, labels)
				}
			}
			if c.exact && len(labels) != len(c.want) {
				t.Errorf("proposed %q, want %q", labels, c.want)
			}
			for _, i := range list.Items {
				if c.insert != "" && i.Label == c.want[0] && i.TextEdit.NewText != c.insert {
					t.Errorf("%q inserts %q, want %q", i.Label, i.TextEdit.NewText, c.insert)
				}
			}
		})
	}
}

// TestCompletion_Accepted checks the document after a proposal was accepted.
func TestCompletion_Accepted(t *testing.T) {
	e := start(t, nil)
	text := shopWith(t, "memory: chat_memory", "memory: chat"+cursor)
	text, at := cutCursor(t, text)
	e.open("app.qtype.yaml", text)
	var list struct{ Items []completionItem }
	e.call("textDocument/completion", map[string]any{"textDocument": map[string]any{"uri": e.uri("app.qtype.yaml")}, "position": at}, &list)
	if len(list.Items) != 1 {
		t.Fatalf("proposed %v", list.Items)
	}
	if got := applyEdits(t, text, []textEdit{list.Items[0].TextEdit}); got != shopDocument {
		t.Errorf("the accepted proposal makes\n%s", got)
	}
}

func TestCompletion_Documentation(t *testing.T) {
	e := start(t, nil)
	text, at := cutCursor(t, shopWith(t, "type: LLMInference", "type: "+cursor))
	e.open("app.qtype.yaml", text)
	var list struct{ Items []completionItem }
	params := map[string]any{"textDocument": map[string]any{"uri": e.uri("app.qtype.yaml")}, "position": at}
	e.call("textDocument/completion", params, &list)
	for _, i := range list.Items {
		if i.Documentation.Value == "" {
			t.Errorf("%s has no documentation", i.Label)
		}
	}
	text, at = cutCursor(t, shopWith(t, "token_limit: 20000", cursor))
	e.replace("app.qtype.yaml", text)
	params["position"] = at
	e.call("textDocument/completion", params, &list)
	for _, i := range list.Items {
		if i.Label == "chat_history_token_ratio" && !strings.Contains(i.Documentation.Value, "default `0.7`") {
			t.Errorf("the default is missing: %q", i.Documentation.Value)
		}
	}
}
