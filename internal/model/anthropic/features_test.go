package anthropic_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/citation"
	"github.com/qtype-dev/qtype/internal/model/anthropic"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec/chat"
)

var yes = reply{blocks: `[{"type":"text","text":"Yes."}]`}

func TestRequest_MaxTokens(t *testing.T) {
	for name, want := range map[string]string{"claude-opus-5-5": `"max_tokens":32000`, "claude-haiku-4-5": `"max_tokens":32000`, "claude-3-haiku-20240307": `"max_tokens":4096`, "mine": `"max_tokens":4096`} {
		c := newTalk(t, true, options{name: name}, yes)
		c.must("Hello")
		c.sees([]string{want})
	}
}

// A long answer is streamed, and its caller gets no deltas.
func TestRequest_LongAnswersAreStreamed(t *testing.T) {
	for tokens, streams := range map[int]bool{21333: false, 30000: true} {
		c := newTalk(t, false, options{params: map[string]any{"max_tokens": tokens}}, yes)
		got := c.must("Hello")
		if strings.Contains(c.bodies[0], `"stream":true`) != streams || c.deltas.Len() > 0 || got.Message.Text() != "Yes." {
			t.Errorf("%d tokens: %s, deltas %q", tokens, c.bodies[0], c.deltas.String())
		}
	}
}

// Version 2026-10-21 has no parameters of sampling.
func TestRequest_Version(t *testing.T) {
	for want, with := range map[string]options{"2026-10-21": {}, "2023-06-01": {params: map[string]any{"temperature": 0.2}}, "2023-06-01 ": {change: elsewhere}, "": {vertex: true}} {
		c := newTalk(t, true, with, yes)
		if c.must("Hello"); c.heads[0].Get("Anthropic-Version") != strings.TrimSpace(want) {
			t.Errorf("%+v: the version is %s", with, c.heads[0].Get("Anthropic-Version"))
		}
	}
}

func TestRequest_Betas(t *testing.T) {
	type params = map[string]any
	for want, with := range map[string]params{
		"": {"metadata": params{"user_id": "u"}, "thinking": params{"type": "adaptive"}},
		"compact-2026-01-12,context-management-2025-06-27": {"context_management": params{"edits": []any{params{"type": "clear_tool_uses_20250919"}, params{"type": "compact_20260112"}}}},
		"compact-2026-09-04":                                             {"compaction": params{"type": "summarize"}},
		"server-side-fallback-2026-07-01":                                {"fallbacks": []any{params{"model": "claude-opus-5"}}},
		"task-budgets-2026-03-13,thinking-binding-controls-2026-08-01":   {"output_config": params{"task_budget": params{"type": "tokens", "total": 9}}, "thinking": params{"type": "adaptive", "block_binding": params{}}},
		"fast-mode-2026-02-01":                                           {"speed": "fast"},
		"mcp-client-2025-11-20":                                          {"mcp_servers": []any{}},
		"cache-diagnosis-2026-04-07,thinking-display-updates-2026-08-18": {"diagnostics": params{}, "thinking": params{"type": "adaptive", "display": "updates"}},
	} {
		c := newTalk(t, true, options{params: with}, yes)
		if c.must("Hello"); c.beta() != want {
			t.Errorf("%v: the header is %q, want %q", with, c.beta(), want)
		}
	}
}

// The header of the document and the features that its parameters need are one list.
func TestRequest_BetasOfTheDocument(t *testing.T) {
	headers := func(c *anthropic.Config) {
		c.Headers = http.Header{"Anthropic-Beta": {"new-2027-01-01, compact-2026-09-04"}}
	}
	c := newTalk(t, true, options{params: map[string]any{"speed": "fast", "compaction": map[string]any{"type": "summarize"}}, change: headers}, yes)
	if c.must("Hello"); c.beta() != "fast-mode-2026-02-01,new-2027-01-01, compact-2026-09-04" {
		t.Errorf("the header is %q", c.beta())
	}
}

func TestRequest_HostedTools(t *testing.T) {
	tools := []model.Tool{{Hosted: "web_search", Settings: json.RawMessage(`{"max_uses":3}`)}, {Hosted: "code_execution", Settings: json.RawMessage(`{"type":"code_execution_20260120"}`)},
		{Hosted: "mcp", Name: "shop", Settings: json.RawMessage(`{"url":"https://shop.example/mcp","authorization_token":"t","default_config":{"enabled":true}}`)}}
	for name, version := range map[string]string{"claude-opus-5": "web_search_20260318", "claude-haiku-4-5": "web_search_20250305"} {
		c := newTalk(t, true, options{name: name}, yes)
		c.must("Hello", tools...)
		c.sees([]string{`{"type":"` + version + `","name":"web_search","max_uses":3}`, `{"type":"code_execution_20260120","name":"code_execution"}`,
			`{"type":"mcp_toolset","default_config":{"enabled":true},"mcp_server_name":"shop","cache_control":{"type":"ephemeral"}}`,
			`"mcp_servers":[{"type":"url","name":"shop","url":"https://shop.example/mcp","authorization_token":"t"}]`})
		if c.beta() != "mcp-client-2025-11-20" {
			t.Errorf("the header is %q", c.beta())
		}
	}
	c := newTalk(t, false, options{}, yes)
	if _, err := c.say("Hello", model.Tool{Hosted: "file_search"}); err == nil || !strings.Contains(err.Error(), "invalid request: anthropic has no hosted tool file_search, only advisor, code_execution, mcp, tool_search, web_fetch, web_search") {
		t.Errorf("got %v", err)
	}
}

// A deferred tool needs the search of tools, and has no marker of the cache.
func TestRequest_DeferredTools(t *testing.T) {
	later := findOrder
	later.Deferred = true
	c := newTalk(t, true, options{name: "claude-opus-5"}, yes)
	c.must("Hello", findOrder, later)
	c.sees([]string{`"defer_loading":true}`, `{"type":"tool_search_tool_bm25_20251119","name":"tool_search_tool_bm25","cache_control":{"type":"ephemeral"}}`})
	c = newTalk(t, true, options{name: "deepseek", change: elsewhere}, yes)
	c.must("Hello", later)
	c.sees([]string{"find_order"}, "defer_loading", "tool_search")
}

// A strict tool has a closed schema, at Claude only.
func TestRequest_StrictTools(t *testing.T) {
	bound := model.Tool{Name: "find", Strict: true, Parameters: json.RawMessage(`{"type":"object","properties":{"n":{"type":"string","minLength":2}}}`)}
	for name, strict := range map[string]bool{"claude-opus-5-5": true, "claude-3-haiku-20240307": false, "deepseek": false} {
		with := options{name: name}
		if name == "deepseek" {
			with.change = elsewhere
		}
		c := newTalk(t, true, with, yes)
		c.must("Hello", bound)
		if strict {
			c.sees([]string{`"input_schema":{"type":"object","properties":{"n":{"type":"string","description":"{minLength: 2}"}},"additionalProperties":false},"strict":true`})
		} else {
			c.sees([]string{`"minLength":2`}, `"strict"`)
		}
	}
}

// Newer models keep a system message within the conversation, after the message of the user; others
// get all of them first.
func TestRequest_SystemWithin(t *testing.T) {
	list := []chat.Message{chat.Text(chat.System, "Be brief."), chat.Text(chat.User, "Hello"), chat.Text(chat.Assistant, "Hi"), chat.Text(chat.System, "It is Friday."), chat.Text(chat.User, "Day?")}
	for name, want := range map[string]string{
		"claude-opus-5-5":  `[{"role":"user","content":[{"type":"text","text":"Hello"}]},{"role":"assistant","content":[{"type":"text","text":"Hi"}]},{"role":"user","content":[{"type":"text","text":"Day?"}]},{"role":"system","content":[{"type":"text","text":"It is Friday."}]}],"model"`,
		"claude-sonnet-5":  `{"role":"user","content":[{"type":"text","text":"Day?"}]}],"model":"claude-sonnet-5","stream":true,"system":"Be brief.\n\nIt is Friday."`,
		"claude-haiku-4-5": `"system":"Be brief.\n\nIt is Friday."`,
	} {
		c := newTalk(t, true, options{name: name, change: func(c *anthropic.Config) { c.Cache = "none" }}, yes)
		c.list = list[:4]
		c.must("Day?")
		c.sees([]string{want})
	}
}

const passages = `[{"number": 1, "title": "memory.md:3", "heading": "Memory", "text": "Windows are cut.", "source_id": "c1"}, {"number": 2, "title": "b.md", "text": "Kept.", "source_id": "c2"}]`

// What a search has found is sent as search results, whose citations go back while they are at their place.
func TestRequest_SearchResults(t *testing.T) {
	everyWay(t, func(t *testing.T, stream bool) {
		search := model.Tool{Name: "search", Passages: true}
		quoted := `{"type":"text","text":"They are cut","citations":[{"type":"search_result_location","cited_text":"Windows are cut.","source":"c1","title":"[1] memory.md:3 (Memory)","search_result_index":0,"start_block_index":0,"end_block_index":1}]}`
		c := newTalk(t, stream, options{name: "claude-opus-5", params: map[string]any{"max_tokens": 1000}}, reply{blocks: `[` + quoted + `,{"type":"text","text":" [1]."}]`}, yes)
		question := []chat.Message{chat.Text(chat.User, "Old?"), {Role: chat.Assistant, Blocks: []chat.Block{chat.CallBlock(chat.ToolCall{ID: "1", Name: "search", Arguments: "{}"})}}}
		result := chat.Message{Role: chat.Tool, Name: "search", ToolCallID: "1", Blocks: []chat.Block{{Type: "text", Text: passages}}}
		c.list = append(question, result)
		got, err := c.next(search)
		if err != nil {
			t.Fatal(err)
		}
		c.sees([]string{`"tool_use_id":"1","content":[{"type":"search_result","source":"c1","title":"[1] memory.md:3 (Memory)","content":[{"type":"text","text":"Windows are cut."}],"citations":{"enabled":true}},{"type":"search_result","source":"c2","title":"[2] b.md",`})
		if last := got.Message.Blocks[len(got.Message.Blocks)-1]; got.Message.Text() != "They are cut [1]." || last.Type != "citation_document" || !strings.Contains(last.Text, `"source_id":"c1"`) || !strings.Contains(last.Text, "Windows are cut.") {
			t.Errorf("the answer is %+v", got.Message.Blocks)
		}
		c.must("And?", search)
		c.sees([]string{quoted})
		c.list = append([]chat.Message{question[0]}, c.list[3:]...) // a memory has dropped the search
		c.must("Why?", search)
		c.sees([]string{`{"type":"text","text":"They are cut"}`}, "search_result_location")
	})
	for name, with := range map[string]options{"other servers": {name: "deepseek", change: elsewhere}, "a schema": {params: map[string]any{"output_config": map[string]any{"format": map[string]any{"type": "json_schema"}}}}} {
		c := newTalk(t, true, with, yes)
		c.list = []chat.Message{chat.Text(chat.User, "Old?"), {Role: chat.Assistant, Blocks: []chat.Block{chat.CallBlock(chat.ToolCall{ID: "1", Name: "search", Arguments: "{}"})}},
			{Role: chat.Tool, Name: "search", ToolCallID: "1", Blocks: []chat.Block{{Type: "text", Text: passages}}}}
		if _, err := c.next(model.Tool{Name: "search", Passages: true}); err != nil {
			t.Fatal(err)
		}
		t.Log(name)
		c.sees([]string{`\"Windows are cut.\"`}, `"search_result"`)
	}
}

// What a step gives as sources is sent as search results before its question, in each request of the turn. The
// system message is the same for all questions.
func TestRequest_Passages(t *testing.T) {
	everyWay(t, func(t *testing.T, stream bool) {
		quoted := `{"type":"text","text":"They are cut","citations":[{"type":"search_result_location","cited_text":"Windows are cut.","source":"c1","title":"[1] memory.md","search_result_index":0,"start_block_index":0,"end_block_index":1}]}`
		c := newTalk(t, stream, options{name: "claude-opus-5-5"}, reply{blocks: `[` + quoted + `]`}, yes)
		ask := func(with *model.Schema, messages ...chat.Message) *model.Response {
			text := chat.Message{Role: chat.System, Blocks: []chat.Block{{Type: "text", Text: "Passages: [1] memory.md"}}}
			newest := messages[0].ID
			for _, m := range messages {
				if m.Role == chat.User && m.Text() != "(cut)" {
					newest = m.ID
				}
			}
			list := append([]chat.Message{chat.Text(chat.System, "Be brief."), text}, messages...)
			got, err := model.Call(t.Context(), c.client, model.Request{Stream: stream, Schema: with, Messages: list, Passages: &model.Passages{Text: text.Text(), Question: newest,
				Sources: []citation.Source{{Number: 1, ID: "c1", Title: "memory.md", Text: "Windows are cut."}, {Number: 2, ID: "c2", Title: "b.md", Text: "Kept."}}}}, nil)
			testkit.Must(t, err)
			return got
		}
		question := chat.Text(chat.User, "Old?")
		first := `"content":[{"type":"search_result","source":"c1","title":"[1] memory.md","content":[{"type":"text","text":"Windows are cut."}],"citations":{"enabled":true}},{"type":"search_result","source":"c2",`
		before := `"citations":{"enabled":true}},{"type":"text","text":"Old?"`
		system := `"text":"Be brief.\n\nThe search results before the newest question are passages. Answer from these passages`
		got := ask(nil, question)
		c.sees([]string{`"messages":[{"role":"user",` + first, before, system}, "Passages:")
		if last := got.Message.Blocks[len(got.Message.Blocks)-1]; !last.IsCitation() || !strings.Contains(last.Text, `"source_id":"c1"`) {
			t.Errorf("the answer is %+v", got.Message.Blocks)
		}
		ask(nil, question, got.Message, chat.Text(chat.User, "(cut)")) // the answer was cut off
		c.sees([]string{`"messages":[{"role":"user",` + first, before, quoted, system})
		ask(nil, question, got.Message, chat.Text(chat.User, "And?"))
		c.sees([]string{`"messages":[{"role":"user","content":[{"type":"text","text":"Old?"}]}`, `{"role":"user",` + first, system})
		ask(&model.Schema{Name: "s", JSON: []byte(`{"type":"object","properties":{}}`)}, question)
		c.sees([]string{`"text":"Be brief.\n\nPassages: [1] memory.md"`}, `"search_result"`)
	})
}

func TestRequest_CacheLifetime(t *testing.T) {
	for lifetime, want := range map[string]string{"": `"cache_control":{"type":"ephemeral"}`, "1h": `"cache_control":{"type":"ephemeral","ttl":"1h"}`} {
		for _, vertex := range []bool{false, true} {
			c := newTalk(t, true, options{vertex: vertex, change: func(c *anthropic.Config) { c.Cache = lifetime }}, yes)
			c.must("Hello", findOrder)
			c.sees([]string{`"text":"Hello",` + want, `}},` + want})
		}
	}
}

// A schema has only what the provider accepts; the rest is described.
func TestRequest_Schema(t *testing.T) {
	c := newTalk(t, true, options{params: map[string]any{"output_config": map[string]any{"effort": "low"}}}, yes)
	schema := `{"$schema":"x","type":"object","properties":{"name":{"type":"string","minLength":2,"description":"A <name>"},"tags":{"type":"array","items":{"type":"object","properties":{"at":{"type":"string","format":"x-date"}}},"minItems":1,"maxItems":3},"any":{"anyOf":[{"type":"integer","minimum":0},{"type":"null"}]}},"required":["name"]}`
	_, err := model.Call(t.Context(), c.client, model.Request{Stream: true, Messages: []chat.Message{chat.Text(chat.User, "x")}, Schema: &model.Schema{Name: "n", JSON: json.RawMessage(schema)}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	c.sees([]string{`"output_config":{"effort":"low","format":{"type":"json_schema","schema":{"type":"object","properties":{"name":{"type":"string","description":"A <name>\n\n{minLength: 2}"},` +
		`"tags":{"type":"array","items":{"type":"object","properties":{"at":{"type":"string","description":"{format: \"x-date\"}"}},"additionalProperties":false},"minItems":1,"description":"{maxItems: 3}"},` +
		`"any":{"anyOf":[{"type":"integer","description":"{minimum: 0}"},{"type":"null"}]}},"required":["name"],"additionalProperties":false}}}`})
}

// Servers with the protocol leave parts of it out.
func TestStream_IncompleteProtocol(t *testing.T) {
	c := newTalk(t, true, options{change: elsewhere}, reply{blocks: `[{"type":"thinking","thinking":"Hm."},{"type":"text","text":"Yes."}]`})
	if got := c.must("Hello"); got.Message.Text() != "Yes." {
		t.Errorf("got %+v", got.Message)
	}
	c.must("And?")
	c.sees([]string{`{"type":"thinking","thinking":"Hm."}`})
}
