package lsp_test

import (
	"slices"
	"strings"
	"testing"
)

// shop is an application with one of most things.
const shop = `id: shop
memories:
  - id: chat_memory
    token_limit: 20000
auths:
  - {type: api_key, id: key, api_key: "${KEY:-none}"}
models:
  - type: Model
    id: clerk
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
      - {id: said, type: ChatMessage}
      - {id: wanted, type: text}
      - {id: filled, type: text}
      - {id: answer, type: ChatMessage}
    inputs: [said, wanted]
    outputs: [answer, filled]
    steps:
      - type: InvokeFlow
        id: call
        flow: inner
        input_bindings: {q: wanted}
        output_bindings: {p: filled}
      - type: LLMInference
        id: ask
        model: clerk
        memory: chat_memory
        inputs: [said]
        outputs: [answer]
`

// instead is the shop with some text replaced, once.
func instead(t testing.TB, old, text string) string {
	t.Helper()
	if strings.Count(shop, old) != 1 {
		t.Fatalf("%q is %d times in the document", old, strings.Count(shop, old))
	}
	return strings.Replace(shop, old, text, 1)
}

func TestCompletion(t *testing.T) {
	add := func(step string) string { return shop + step }
	for _, c := range []struct {
		name   string
		text   string
		want   []string // all must be proposed
		not    []string // none may be proposed
		exact  bool     // nothing else may be proposed
		insert string   // what the first of want inserts
	}{
		{name: "empty document", text: cursor, want: []string{"id", "memories", "flows"}, insert: "id: "},
		{name: "keys of the application that are not there", text: shop + cursor, want: []string{"indexes", "telemetry"}, not: []string{"flows", "id", "token_limit"}},
		{name: "types of steps", text: instead(t, "type: LLMInference", "type: "+cursor), want: []string{"LLMInference", "Agent", "Echo"}, not: []string{"Model", "APITool"}, insert: "LLMInference"},
		{name: "half a type", text: instead(t, "type: LLMInference", "type: LLM"+cursor), want: []string{"LLMInference"}},
		{name: "only this type's keys", text: instead(t, "        memory: chat_memory\n", "        "+cursor+"\n"), want: []string{"memory", "system_message"}, not: []string{"template", "model", "tools", "type"}, insert: "memory: "},
		{name: "half a key", text: instead(t, "        memory: chat_memory\n", "        mem"+cursor+"\n"), want: []string{"memory"}, insert: "memory: "},
		{name: "a key that has its colon", text: instead(t, "memory: chat_memory", "mem"+cursor+": chat_memory"), want: []string{"memory"}, insert: "memory"},
		{name: "keys of a step without a type", text: add("      - " + cursor), want: []string{"type", "id", "inputs", "$ref"}, not: []string{"template", "memory"}, insert: "type: "},
		{name: "memories", text: instead(t, "memory: chat_memory", "memory: "+cursor), want: []string{"chat_memory"}, exact: true},
		{name: "in the middle of an id", text: instead(t, "memory: chat_memory", "memory: chat"+cursor+"_memory"), want: []string{"chat_memory"}, exact: true, insert: "chat_memory"},
		{name: "models for a step", text: instead(t, "model: clerk", "model: "+cursor), want: []string{"clerk", "vectors"}, exact: true},
		{name: "only embedding models", text: add("      - {type: InvokeEmbedding, id: e, model: " + cursor + "}\n"), want: []string{"vectors"}, exact: true},
		{name: "flows", text: instead(t, "flow: inner", "flow: "+cursor), want: []string{"inner", "talk"}, exact: true},
		{name: "tools", text: add("      - {type: InvokeTool, id: e, tool: " + cursor + "}\n"), want: []string{"find"}, exact: true},
		{name: "tools that a list does not have yet", text: add("      - {type: Agent, id: e, tools: [find, " + cursor + "]}\n"), exact: true},
		{name: "auths", text: instead(t, "    provider: mock\n", "    provider: openai\n    auth: "+cursor+"\n"), want: []string{"key"}, exact: true},
		{name: "variables of this flow", text: instead(t, "inputs: [said]", "inputs: ["+cursor+"]"), want: []string{"said", "wanted", "filled", "answer"}, exact: true},
		{name: "variables in a block list", text: instead(t, "inputs: [said]", "inputs:\n          - "+cursor), want: []string{"said", "wanted", "filled", "answer"}, exact: true},
		{name: "variables behind a bracket that is never closed", text: instead(t, "inputs: [said]", "inputs: [said, "+cursor), want: []string{"wanted"}, not: []string{"said", "q"}},
		{name: "inputs of an invoked flow", text: instead(t, "{q: wanted}", "{"+cursor+"}"), want: []string{"q"}, exact: true, insert: "q: "},
		{name: "outputs of an invoked flow, in a block", text: instead(t, "output_bindings: {p: filled}", "output_bindings:\n          "+cursor), want: []string{"p"}, exact: true, insert: "p: "},
		{name: "variables in a binding", text: instead(t, "{q: wanted}", "{q: "+cursor+"}"), want: []string{"said", "wanted"}},
		{name: "arguments of a tool", text: add("      - type: InvokeTool\n        id: e\n        tool: find\n        input_bindings:\n          " + cursor), want: []string{"number"}, exact: true},
		{name: "results of a tool", text: add("      - type: InvokeTool\n        id: e\n        tool: find\n        output_bindings: {" + cursor), want: []string{"state"}, exact: true},
		{name: "words of an enumeration", text: instead(t, "provider: mock", "provider: "+cursor), want: []string{"openai", "mock", "anthropic"}},
		{name: "a default", text: instead(t, "token_limit: 20000", "token_limit: "+cursor), want: []string{"100000"}, exact: true},
		{name: "types of variables", text: instead(t, "{id: said, type: ChatMessage}", "{id: said, type: "+cursor+"}"), want: []string{"text", "ChatMessage", "Order", "list[text]"}},
		{name: "types in a list", text: instead(t, "lines: list[Line]", "lines: list["+cursor), want: []string{"Line", "int"}, not: []string{"list[text]"}, insert: "Line"},
		{name: "placeholders", text: instead(t, "{q} or", "{"+cursor+"} or"), want: []string{"q"}, exact: true, insert: "q"},
		{name: "placeholders in a block", text: instead(t, `template: "Ask {q} or {q!r}"`, "template: |\n          Ask {"+cursor), want: []string{"q"}, exact: true, insert: "q}"},
		{name: "keys of a memory", text: instead(t, "    token_limit: 20000\n", "    "+cursor+"\n"), want: []string{"chat_history_token_ratio", "token_limit"}, not: []string{"provider"}},
		{name: "keys of a mapping in braces", text: instead(t, "{id: said, type: ChatMessage}", "{id: said, "+cursor+"}"), want: []string{"type", "optional"}, not: []string{"id"}},
		{name: "items of a list", text: instead(t, "memories:\n  - id: chat_memory\n    token_limit: 20000\n", "memories:\n  "+cursor+"\n"), want: []string{"- "}},
		{name: "a section opens below its key", text: "id: x\n" + cursor, want: []string{"models"}, insert: "models:\n  - "},
		{name: "while a quote is open", text: instead(t, "        model: clerk\n", "        system_message: \"You are\n        model: "+cursor+"\n"), want: []string{"clerk"}},
		{name: "while a key before it is broken", text: instead(t, "        model: clerk\n", "        model\n        memory: "+cursor+"\n"), want: []string{"chat_memory"}},
		{name: "while a list before it is broken", text: instead(t, "inputs: [said, wanted]", "inputs: [said, wanted") + "      - {type: Agent, id: x, memory: " + cursor, want: []string{"chat_memory"}},
		{name: "nothing in a comment", text: instead(t, "memory: chat_memory", "memory: chat_memory # "+cursor), exact: true},
		{name: "nothing in a text", text: instead(t, "description: Finds an order.", "description: Finds "+cursor), exact: true},
		{name: "expressions", text: add("      - type: Switch\n        id: s\n        cases:\n          - {when: wanted == " + cursor), want: []string{"wanted", "filled"}},
		{name: "kinds of memory policy", text: instead(t, "token_limit: 20000", "policy: "+cursor), want: []string{"flush", "round_window"}},
		{name: "true and false", text: instead(t, "rules: [{echo: true}]", "rules: [{echo: "+cursor+"}]"), want: []string{"true", "false"}, exact: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := start(t, nil)
			text, at := marked(t, c.text)
			e.open("app.qtype.yaml", text)
			var list struct{ Items []item }
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

// TestAcceptedProposalsFit: what an accepted proposal leaves is the document.
func TestAcceptedProposalsFit(t *testing.T) {
	e := start(t, nil)
	text := instead(t, "memory: chat_memory", "memory: chat"+cursor)
	text, at := marked(t, text)
	e.open("app.qtype.yaml", text)
	var list struct{ Items []item }
	e.call("textDocument/completion", map[string]any{"textDocument": map[string]any{"uri": e.uri("app.qtype.yaml")}, "position": at}, &list)
	if len(list.Items) != 1 {
		t.Fatalf("proposed %v", list.Items)
	}
	if got := apply(t, text, []textEdit{list.Items[0].TextEdit}); got != shop {
		t.Errorf("the accepted proposal makes\n%s", got)
	}
}

// TestDocumentationComesWithProposals reads what stands beside them.
func TestDocumentationComesWithProposals(t *testing.T) {
	e := start(t, nil)
	text, at := marked(t, instead(t, "type: LLMInference", "type: "+cursor))
	e.open("app.qtype.yaml", text)
	var list struct{ Items []item }
	where := map[string]any{"textDocument": map[string]any{"uri": e.uri("app.qtype.yaml")}, "position": at}
	e.call("textDocument/completion", where, &list)
	for _, i := range list.Items {
		if i.Documentation.Value == "" {
			t.Errorf("%s says nothing", i.Label)
		}
	}
	text, at = marked(t, instead(t, "token_limit: 20000", cursor))
	e.replace("app.qtype.yaml", text)
	where["position"] = at
	e.call("textDocument/completion", where, &list)
	for _, i := range list.Items {
		if i.Label == "chat_history_token_ratio" && !strings.Contains(i.Documentation.Value, "default `0.7`") {
			t.Errorf("the default is not told: %q", i.Documentation.Value)
		}
	}
}
