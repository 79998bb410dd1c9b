package conformance_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/model/modeltest/conformance"
	"github.com/qtype-dev/qtype/internal/testkit"
)

// example is a request that a rule accepts, and one that it refuses.
type example struct {
	rule         string
	at           rawClient              // the server, the wire and the model
	scenario     string                 // tool is the default
	good         object                 // the request without the conversation
	bad          object                 // the same, refused; equal to good if nil
	header       http.Header            // of the good request only
	broken       http.Header            // of the bad request only
	turns        int                    // of the conversation, 1 is the default
	change       func(list []any) []any // what the bad client does to an answer before it sends it back
	before       func(p *rawClient)     // what the bad client does before the last turn
	tools        bool                   // declares find_order
	withoutTools bool                   // declares it in the first request only
	forgets      bool                   // the bad client does so
	text         string                 // the error of the provider; what the server notices if it refuses nothing
	where        func(status int) bool  // of the bad request; 400 if nil
}

var (
	completions = rawClient{name: "openai", wire: "chat", model: "gpt-6-sol"}
	responses   = rawClient{name: "openai", wire: "responses", model: "gpt-6-sol"}
	opus        = rawClient{name: "anthropic", wire: "messages", model: "claude-opus-5-5"}
	sonnet      = rawClient{name: "anthropic", wire: "messages", model: "claude-sonnet-4-6"}
	gemini      = rawClient{name: "google", wire: "gemini", model: "gemini-4-argon"}
	bedrock     = rawClient{name: "bedrock", wire: "converse", model: "us.anthropic.claude-opus-5"}
	deepseek    = rawClient{name: "deepseek", wire: "chat", model: "deepseek-v4-pro"}
	mistral     = rawClient{name: "mistral", wire: "chat", model: "mistral-large-4"}
)

// of returns the same rawClient with another model.
func (p rawClient) of(model string) rawClient { p.model = model; return p }

// at returns the same rawClient at another server.
func (p rawClient) at(name, model string) rawClient { p.name, p.model = name, model; return p }

// opaque reports whether a part of an answer is reasoning, in any wire.
func opaque(v any) bool {
	o, ok := v.(object)
	kind, _ := o["type"].(string)
	return ok && (slices.Contains([]string{"reasoning", "thinking", "redacted_thinking", "compaction", "quantum_search_call", "web_search_tool_result"}, kind) || o["reasoningContent"] != nil)
}

// lose drops reasoning: parts, or fields of a message.
func lose(list []any) []any {
	list = slices.DeleteFunc(list, opaque)
	for _, v := range list {
		o := v.(object)
		for _, name := range []string{"reasoning_content", "reasoning", "reasoning_details", "thinking", "thoughtSignature", "phase"} {
			delete(o, name)
		}
		if content, ok := o["content"].([]any); ok {
			o["content"] = slices.DeleteFunc(content, opaque)
		}
		if text, ok := o["content"].(string); ok {
			if _, rest, found := strings.Cut(text, "</think>"); found {
				o["content"] = rest
			}
		}
		calls, _ := o["tool_calls"].([]any)
		for _, c := range calls {
			delete(c.(object), "extra_content")
		}
	}
	return list
}

// blank empties the reasoning of a message.
func blank(list []any) []any {
	for _, v := range list {
		v.(object)["reasoning_content"] = ""
	}
	return list
}

// alter changes what is opaque.
func alter(list []any) []any {
	return edit(list, func(s string) string { return strings.Replace(s, "cWMxC", "cWMxD", 1) }).([]any)
}

// edit changes all texts within a value.
func edit(v any, change func(string) string) any {
	switch v := v.(type) {
	case string:
		return change(v)
	case []any:
		for i := range v {
			v[i] = edit(v[i], change)
		}
	case object:
		for k := range v {
			v[k] = edit(v[k], change)
		}
	}
	return v
}

// reverse changes the order of an answer.
func reverse(list []any) []any { slices.Reverse(list); return list }

// unanswered lets the client forget the results.
func unanswered(p *rawClient) { p.list = slices.DeleteFunc(p.list, isResult) }

// orphaned lets the client forget the first answer, and keep its results.
func orphaned(p *rawClient) {
	p.list = slices.DeleteFunc(p.list, func(v any) bool {
		raw, err := json.Marshal(v)
		return err == nil && (strings.Contains(string(raw), `"tool_use"`) || strings.Contains(string(raw), `"function_call"`))
	})
}

func isResult(v any) bool {
	raw, err := json.Marshal(v)
	return err == nil && (strings.Contains(string(raw), `"function_call_output"`) || strings.Contains(string(raw), `"role":"tool"`) || strings.Contains(string(raw), `tool_result`) ||
		strings.Contains(string(raw), `"toolResult"`) || strings.Contains(string(raw), `"functionResponse"`))
}

// foreign replaces the conversation by one with another server.
func foreign(other rawClient) func(p *rawClient) {
	return func(p *rawClient) {
		q := other
		q.t, q.server, q.scenario, q.tools = p.t, p.server, "tool", true
		q.turn("Where is order 7?")
		raw, err := json.Marshal(q.list)
		testkit.Must(p.t, err)
		var tokens []string
		for word := range strings.FieldsFuncSeq(string(raw), func(r rune) bool { return strings.ContainsRune(`"() `, r) }) {
			if strings.HasPrefix(word, "cWMxC") {
				tokens = append(tokens, word)
			}
		}
		p.list = edit(p.list, func(s string) string {
			if at := strings.Index(s, "cWMxC"); at >= 0 {
				return s[:at] + tokens[0] + strings.TrimLeft(s[at:], "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz+/=")
			}
			return s
		}).([]any)
	}
}

const (
	chatTools   = "Function tools with reasoning_effort are not supported for gpt-6-sol in /v1/chat/completions. To use function tools, use /v1/responses or set reasoning_effort to 'none'."
	unverified  = "The encrypted content could not be verified. Reason: Encrypted content could not be decrypted or parsed."
	temperature = "`temperature` is deprecated for this model."
	forced      = `tool_choice: type "tool" and "any" are not supported for this model.`
	fromBedrock = "The model returned the following errors: "
	unsigned    = "Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, and missing thought_signature may lead to degraded model performance. Additional data, function call `default_api:find_order`, position 2. Please refer to https://ai.google.dev/gemini-api/docs/thought-signatures for more details."
	modified    = "`thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified. These blocks must remain as they were in the original response."
)

func format(schema string) object {
	return object{"output_config": object{"format": object{"type": "json_schema", "schema": json.RawMessage(schema)}}}
}

// longID replaces the first id of a call.
func longID(p *rawClient) func(string) string {
	id := p.list[1].(object)["tool_calls"].([]any)[0].(object)["id"].(string)
	return func(s string) string { return strings.Replace(s, id, "call_1", 1) }
}

// textFormat is a request for an answer of a form.
func textFormat(schema any) object {
	return object{"outputConfig": object{"textFormat": object{"type": "json_schema", "structure": object{"jsonSchema": object{"name": "f", "schema": schema}}}}}
}

// withMedia adds an image to the results of the conversation, within the response or after it.
func withMedia(field string) func(p *rawClient) {
	image := object{"inlineData": object{"mimeType": "image/png", "data": "AAAA"}}
	return func(p *rawClient) {
		for _, v := range p.list {
			parts := v.(object)["parts"].([]any)
			if f, ok := parts[0].(object)["functionResponse"].(object); ok && field != "" {
				f[field] = []any{image}
			} else if ok {
				v.(object)["parts"] = append(parts, image)
			}
		}
	}
}

// send has the conversation of an example; the last request is the one that counts.
func (e example) send(t *testing.T, bad bool) (status int, text string, found []conformance.Violation) {
	p := e.at
	p.t, p.server, p.tools, p.scenario = t, conformance.New(t), e.tools, e.scenario
	if p.scenario == "" || p.scenario == "prefill" {
		p.scenario = "tool"
	}
	p.body, p.header = e.good, e.header
	if bad {
		p.change, p.header = e.change, e.broken
		if e.bad != nil {
			p.body = e.bad
		}
	}
	p.forget = e.withoutTools || e.forgets && bad
	var answer object
	for i := range max(e.turns, 1) {
		if bad && e.before != nil && i == e.turns-1 {
			e.before(&p)
			p.server.Reset()
		}
		if status, answer = p.last(e, bad && i == e.turns-1); status != http.StatusOK {
			break
		}
	}
	for _, v := range p.server.Verdicts() {
		for _, f := range v.Violations {
			if f.Rule == e.rule {
				found = append(found, f)
			}
		}
	}
	return status, message(answer), found
}

// last has a turn, or ends with the answer that the client has begun.
func (p *rawClient) last(e example, now bool) (int, object) {
	if e.scenario == "prefill" && now {
		_, status, answer := p.call()
		return status, answer
	}
	return p.turn("Where are order 7 and 8?")
}

// TestRules: each rule accepts a request and refuses another one, with the error of the provider.
func TestRules(t *testing.T) {
	covered := map[string]bool{"vertex-version": true} // TestRules_VertexVersion
	for _, e := range examples() {
		covered[e.rule] = true
		t.Run(e.rule, func(t *testing.T) {
			if status, text, found := e.send(t, false); status != http.StatusOK || len(found) > 0 {
				t.Errorf("the request that follows the rule got %d: %s, %v", status, text, found)
			}
			status, text, found := e.send(t, true)
			if len(found) == 0 {
				t.Fatalf("the request that breaks the rule got %d: %s", status, text)
			}
			if !strings.Contains(found[0].Text, e.text) {
				t.Errorf("got  %s\nwant %s", found[0].Text, e.text)
			}
			switch {
			case !found[0].Refused && status != http.StatusOK:
				t.Errorf("refused with %d: %s", status, text)
			case found[0].Refused && (status/100 != 4 || e.where != nil && !e.where(status) || !strings.Contains(text, e.text)):
				t.Errorf("got %d: %s", status, text)
			}
		})
	}
	for _, r := range conformance.Rules().Rules {
		if r.Check.Name != "" && !covered[r.ID] {
			t.Errorf("rule %s has no example", r.ID)
		}
	}
}

// TestRules_VertexVersion: the version is a field of the request on Vertex AI.
func TestRules_VertexVersion(t *testing.T) {
	p := opus.at("vertex", "claude-opus-5-5")
	p.t, p.server, p.scenario = t, conformance.New(t), "answer"
	p.say("Hello.")
	body := p.request()
	delete(body, "anthropic_version")
	if status, answer := p.post(body); status != http.StatusBadRequest || message(answer) != "anthropic_version: Field required" {
		t.Errorf("got %d: %v", status, answer)
	}
}
