package anthropic

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/qtype-dev/qtype/internal/model/wire"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec/chat"
)

// body encodes a request. It returns the beta features that the request needs, and what of the document
// it does not have. Parameters that the document does not set are not sent, except for max_tokens, which is required.
func (p *protocol) body(req model.Request) (fields map[string]any, features []string, dropped string, err error) {
	fields = map[string]any{"max_tokens": p.Info.MaxTokens}
	for name, raw := range p.Encoded {
		fields[name] = raw
	}
	text, rest := p.Split(wire.WithAnswerNotes(req.Messages))
	turns, err := turnsOf(rest, p.passageTools(req))
	if err != nil {
		return nil, nil, "", err
	}
	set, err := p.toolsOf(req.Tools)
	if err != nil {
		return nil, nil, "", err
	}
	features = slices.Concat(p.betas, set.betas)
	var system []part
	if strings.TrimSpace(text) != "" {
		system = []part{{Type: textType, Text: text}}
	}
	mark := cacheMark(p.cache)
	markCache(mark, system, set.tools, turns)
	messages, err := encodeTurns(turns)
	if err != nil {
		return nil, nil, "", err
	}
	fields["model"], fields["messages"] = p.Info.Name, messages
	switch {
	case len(system) > 0 && mark != nil:
		fields["system"] = system
	case len(system) > 0:
		fields["system"] = text
	}
	if len(set.tools) > 0 {
		fields["tools"] = set.tools
		if req.NoCalls {
			fields["tool_choice"] = object{{"type", quote("none")}}
		}
	}
	if len(set.servers) > 0 {
		fields["mcp_servers"] = set.servers
	}
	binds, dropped := p.setThinking(fields, turns)
	if binds {
		features = append(features, bindingBeta)
	}
	if _, set := fields["tool_choice"]; req.MustCall && !set {
		if fields["thinking"] == nil {
			fields["tool_choice"] = map[string]string{"type": "any"}
		} else {
			dropped = "the demand to call a tool, because thinking excludes it"
		}
	}
	if req.Schema != nil {
		if err := requestFormat(fields, req.Schema); err != nil {
			return nil, nil, "", err
		}
	}
	if req.Stream {
		fields["stream"] = true
	}
	return fields, features, dropped, nil
}

// setThinking adapts the parameter thinking to the conversation. It reports whether the request
// sets what happens to thinking that does not belong to it, and why it does not have the parameter.
func (p *protocol) setThinking(fields map[string]any, turns []turn) (binds bool, dropped string) {
	raw, _ := fields["thinking"].(json.RawMessage)
	thinking, _ := parseObject(raw) // nil without the parameter
	kind := thinking.text("type")
	if kind == "enabled" && !thinksFirst(turns) {
		delete(fields, "thinking")
		return false, "the parameter thinking, because an answer of this turn does not begin with thinking, as the one of another model"
	}
	bound := p.official && p.Info.Known != nil && p.Info.Known.Reasoning.BoundToPrefix
	if !bound || kind != "" && kind != "adaptive" || thinking.get("block_binding") != nil || !slices.ContainsFunc(turns, hasThinking) {
		return false, ""
	}
	thinking = slices.Clone(thinking)
	thinking.setText("type", "adaptive")
	thinking.set("block_binding", json.RawMessage(`{"prefix_mismatch_behavior":"drop_block"}`))
	fields["thinking"] = thinking
	return true, ""
}

// hasThinking reports whether a turn has thinking.
func hasThinking(t turn) bool { return slices.ContainsFunc(t.Content, isThinkingPart) }

func isThinkingPart(p part) bool { return p.Type == thinkingType || p.Type == redactedType }

// thinksFirst reports whether all answers of the current turn begin with thinking, as the parameter
// thinking with type enabled requires. Calls of another model, and calls without items, have none.
func thinksFirst(turns []turn) bool {
	for _, t := range slices.Backward(turns) {
		switch {
		case t.Role != userRole:
			if !isThinkingPart(t.Content[0]) {
				return false
			}
		case !slices.ContainsFunc(t.Content, func(p part) bool { return p.Type == "tool_result" }):
			return true
		}
	}
	return true
}

// requestFormat adds the schema of the answer to output_config, whose other fields the
// document may set, unless it sets a format itself.
func requestFormat(fields map[string]any, s *model.Schema) error {
	raw, set := fields["output_config"].(json.RawMessage)
	config, err := parseObject(raw)
	if set && string(raw) != "null" && err != nil {
		return errors.New("inference_params: output_config must be a map")
	}
	if config.get("format") != nil {
		return nil
	}
	config.set("format", object{{"type", quote("json_schema")}, {"schema", ClosedSchema(s.JSON)}}.json())
	fields["output_config"] = config
	return nil
}

// betaHeader is the header in which a request names the features that are not yet general.
const betaHeader = "Anthropic-Beta"

// The beta features that this client uses itself.
const (
	bindingBeta = "thinking-binding-controls-2026-08-01"
	mcpBeta     = "mcp-client-2025-11-20"
)

// betas are the features that parameters need: by the name of the parameter and, where only a part
// of its values needs the feature, by a text in its JSON.
var betas = [...]struct{ parameter, text, feature string }{
	{"context_management", `"type":"clear_`, "context-management-2025-06-27"},
	{"context_management", `"type":"compact_`, "compact-2026-01-12"},
	{"compaction", "", "compact-2026-09-04"},
	{"fallbacks", "", "server-side-fallback-2026-07-01"},
	{"mcp_servers", "", mcpBeta},
	{"diagnostics", "", "cache-diagnosis-2026-04-07"},
	{"speed", `"fast"`, "fast-mode-2026-02-01"},
	{"thinking", `"block_binding"`, bindingBeta},
	{"thinking", `"display":"updates"`, "thinking-display-updates-2026-08-18"},
	{"output_config", `"task_budget"`, "task-budgets-2026-03-13"},
}

// betasOf returns the features that the parameters of a document need.
func betasOf(params map[string]json.RawMessage) []string {
	var list []string
	for _, b := range betas {
		if raw, ok := params[b.parameter]; ok && string(raw) != "null" && strings.Contains(string(raw), b.text) && !slices.Contains(list, b.feature) {
			list = append(list, b.feature)
		}
	}
	return list
}

// The lifetimes of the prompt cache.
const (
	cacheNone    = "none" // requests have no markers
	cacheDefault = "auto" // the provider's lifetime
)

// cacheMark returns the marker of the end of a part of the prompt that the provider caches, nil for
// none.
func cacheMark(lifetime string) json.RawMessage {
	mark := object{{"type", quote("ephemeral")}}
	switch lifetime {
	case cacheNone:
		return nil
	case "", cacheDefault:
	default:
		mark.setText("ttl", lifetime)
	}
	return mark.json()
}

// markCache marks the parts of a prompt that later calls begin with: the tools and the
// system message, which are the same in all calls of a step, and a conversation that goes
// on. The provider ignores markers of short prompts.
func markCache(mark json.RawMessage, system []part, tools []object, turns []turn) {
	if mark == nil {
		return
	}
	if len(system) > 0 {
		system[len(system)-1].Cache = mark
	}
	for i := len(tools) - 1; i >= 0; i-- {
		if tools[i].get("defer_loading") == nil { // a tool that is loaded later cannot have a marker
			tools[i].set("cache_control", mark)
			break
		}
	}
	if len(turns) < 2 && len(tools) == 0 {
		return
	}
	for i := len(turns) - 1; i >= 0; i-- {
		if turns[i].Role == userRole { // answers go back unchanged
			content := turns[i].Content
			content[len(content)-1].Cache = mark
			return
		}
	}
}

// maxWhole is the largest max_tokens of a request whose answer is not streamed. A longer answer
// may take more than ten minutes, and networks close connections that are idle for so long.
const maxWhole = 128000 / 6

// maxPauses is how often an answer that the provider paused is continued.
const maxPauses = 20

// Generate sends a request, and continues the answer as long as the provider pauses it.
func (c *Client) Generate(ctx context.Context, req model.Request) iter.Seq2[model.Event, error] {
	return wire.Generate(ctx, func(ctx context.Context, emit wire.Emit) (*model.Response, error) {
		if !req.Stream && !c.batched && c.Info().MaxTokens > maxWhole {
			req.Stream, emit = true, func(model.Event) bool { return true }
		}
		answer, err := ask(ctx, c.Chat, req, emit)
		for pauses := 0; err == nil && answer.Finish == finishPause; pauses++ {
			if pauses == maxPauses {
				return nil, &model.Error{Model: c.Info().ID, Endpoint: c.Info().Endpoint, Message: fmt.Sprintf("the provider paused the answer %d times", maxPauses+1)}
			}
			next := req
			next.Messages = append(slices.Clip(req.Messages), answer.Message)
			var more *model.Response
			if more, err = ask(ctx, c.paused, next, emit); err == nil {
				answer = joined(answer, more)
			}
		}
		return answer, err
	})
}

// joined returns an answer with its continuation. A refused answer is discarded as a whole.
func joined(answer, more *model.Response) *model.Response {
	sum := *more
	sum.Usage = answer.Usage
	sum.Usage.Join(more.Usage)
	sum.Dropped = slices.Concat(answer.Dropped, more.Dropped)
	if more.Finish == "content_filter" {
		return &sum
	}
	sum.Message = answer.Message
	sum.Message.Blocks = joinedBlocks(answer.Message.Blocks, more.Message.Blocks)
	if sum.Message.Origin == nil {
		sum.Message.Origin = more.Message.Origin
	}
	if sum.Finish == "stop" && sum.Message.HasCalls() {
		sum.Finish = "tool_calls"
	}
	return &sum
}

// joinedBlocks appends blocks to others: text to a text, and citations at the end.
func joinedBlocks(first, next []chat.Block) []chat.Block {
	var blocks, citations []chat.Block
	for _, b := range slices.Concat(first, next) {
		n := len(blocks) - 1
		switch {
		case b.IsCitation():
			citations = append(citations, b)
		case b.Type == textType && b.Text == "":
		case n >= 0 && b.Type == textType && blocks[n].Type == textType:
			segments := append(segmentsOf(blocks[n]), segmentsOf(b)...)
			blocks[n].Text += b.Text
			if item, ok := segmentsItem(segments); ok {
				blocks[n].Item = &item
			}
		default:
			blocks = append(blocks, b)
		}
	}
	return append(blocks, citations...)
}

// ask sends a request and emits the deltas of the answer.
func ask(ctx context.Context, to wire.Chat, req model.Request, emit wire.Emit) (answer *model.Response, err error) {
	for ev, err := range to.Generate(ctx, req) {
		switch {
		case err != nil:
			return nil, err
		case ev.Response != nil:
			answer = ev.Response
		case !emit(ev):
			return nil, context.Canceled // the reader has stopped
		}
	}
	return answer, nil
}

// thinkingRefusal are words of a server that refuses thinking which it or another one has made.
var thinkingRefusal = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile("(?i)invalid `?signature`? in `?thinking`?|thinking`? blocks? .*cannot be modified|bound to a different")
})

// RefusesReasoning reports whether a server refused the thinking in a request, because what precedes
// it has changed.
func (p *protocol) RefusesReasoning(failure *model.Error) bool {
	return failure.Status == http.StatusBadRequest && thinkingRefusal().MatchString(failure.Message)
}

// IsReasoning reports whether a block has thinking.
func (p *protocol) IsReasoning(b *chat.Block) bool { return isThinking(b) }

// schemaKeywords are the keywords of schemas that the provider has for the form of an answer. Others
// become a part of the description.
var schemaKeywords = strings.Fields(`$ref $defs definitions type anyOf oneOf allOf description title enum const
	properties additionalProperties required items minItems format pattern`)

// schemaFormats are the formats of texts that the provider has.
var schemaFormats = strings.Fields("date-time time date duration email hostname uri ipv4 ipv6 uuid")

// ClosedSchema returns a schema in the form that Anthropic's models are bound to, also in Bedrock: without keywords that the provider
// refuses, and with closed objects. A schema that the provider refuses as a whole stays refused:
// a recursive one, or one of an object without declared properties.
func ClosedSchema(raw json.RawMessage) json.RawMessage {
	s, err := parseObject(raw)
	if err != nil {
		return raw // true or false
	}
	var moved []string
	var out object
	for _, m := range s {
		if m.name == "$schema" || m.name == "$id" || m.name == "$comment" { // restrict nothing
			continue
		}
		if !accepted(m) {
			moved = append(moved, m.name+": "+string(m.value))
			continue
		}
		switch m.name {
		case "properties", "$defs", "definitions":
			m.value = closedMembers(m.value)
		case "items", "additionalProperties":
			m.value = ClosedSchema(m.value)
		case "anyOf", "oneOf", "allOf":
			m.value = closedList(m.value)
		}
		out = append(out, m)
	}
	if s.get("properties") != nil {
		out.set("additionalProperties", json.RawMessage("false"))
	}
	if len(moved) > 0 {
		text := "{" + strings.Join(moved, ", ") + "}"
		if before := out.text("description"); before != "" {
			text = before + "\n\n" + text
		}
		out.setText("description", text)
	}
	return out.json()
}

// accepted reports whether the provider has a keyword with its value.
func accepted(m member) bool {
	switch m.name {
	case "minItems":
		return string(m.value) == "0" || string(m.value) == "1"
	case "format":
		var format string
		return json.Unmarshal(m.value, &format) == nil && slices.Contains(schemaFormats, format)
	}
	return slices.Contains(schemaKeywords, m.name)
}

// closedMembers applies ClosedSchema to the members of an object.
func closedMembers(raw json.RawMessage) json.RawMessage {
	o, err := parseObject(raw)
	if err != nil {
		return raw
	}
	for i := range o {
		o[i].value = ClosedSchema(o[i].value)
	}
	return o.json()
}

// closedList applies ClosedSchema to the elements of a list.
func closedList(raw json.RawMessage) json.RawMessage {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		return raw
	}
	for i := range list {
		list[i] = ClosedSchema(list[i])
	}
	return array(list)
}
