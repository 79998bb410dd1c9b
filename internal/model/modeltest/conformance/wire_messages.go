package conformance

import (
	"encoding/json"
	"fmt"
	"strings"
)

// messagesWire is Anthropic's Messages API, also as Vertex AI and Bedrock's gateway serve it.
func messagesWire() *wireFormat {
	return &wireFormat{name: "messages", toolsField: "tools", effort: []string{"thinking.type"},
		read: readMessages, whole: wholeMessages, records: messagesRecords, frame: namedSSE, kind: "text/event-stream", form: messagesForm, refusal: anthropicRefusal}
}

func anthropicRefusal(_ *conversation, e Refusal, text string) object {
	kind := e.Type
	if kind == "" {
		kind = "invalid_request_error"
	}
	return object{"type": "error", "error": object{"type": kind, "message": text}, "request_id": "req_conformance"}
}

func readMessages(c *conversation) {
	c.model, c.stream = c.body.at("model").text(), c.body.at("stream").text() == "true"
	if at := strings.LastIndex(c.path, "/models/"); at >= 0 {
		name, method, _ := strings.Cut(c.path[at+len("/models/"):], ":")
		c.model, c.stream = name, method == "streamRawPredict"
	}
	for _, t := range c.body.at("tools").items() {
		if kind := t.at("type").text(); kind == "" || kind == "custom" {
			c.tools = append(c.tools, t.at("name").text())
		}
	}
	c.forbids = c.body.at("tool_choice.type").text() == "none"
	if s := c.body.at("system"); s.exists() {
		c.add(part{role: system, kind: "text", text: contentText(s), json: s, where: "system"})
	}
	for i, m := range c.body.at("messages").items() {
		role, content, at := m.at("role").text(), m.at("content"), fmt.Sprintf("messages.%d", i)
		if content.isText() {
			c.add(part{role: role, kind: "text", text: content.text(), json: content, where: at})
			continue
		}
		results := false
		for _, b := range content.items() {
			results = results || b.at("type").text() == "tool_result"
		}
		if results { // a text next to results does not begin a turn
			role = tool
		}
		for k, b := range content.items() {
			c.add(messagesPart(role, b, fmt.Sprintf("%s.content.%d", at, k)))
		}
	}
}

// messagesPart reads a content block.
func messagesPart(role string, b node, at string) part {
	p := part{role: role, json: b, where: at, kind: "media"}
	switch kind := b.at("type").text(); kind {
	case "text":
		p.kind, p.text = "text", b.at("text").text()
	case "thinking":
		p.kind, p.text, p.token = "reasoning", b.at("thinking").text(), b.at("signature").text()
	case "redacted_thinking":
		p.kind, p.token = "redacted", b.at("data").text()
	case "tool_use":
		p.kind, p.id, p.name, p.text = "call", b.at("id").text(), b.at("name").text(), b.at("input").canonical()
	case "tool_result":
		p.kind, p.id, p.text = "result", b.at("tool_use_id").text(), b.at("content").canonical()
	case "server_tool_use":
		p.kind, p.id, p.name = "server-call", b.at("id").text(), b.at("name").text()
	case "compaction":
		p.kind, p.text, p.token = "compaction", b.at("content").text(), b.at("encrypted_content").text()
	default:
		if role == assistant {
			p.kind, p.name, p.token = "unknown", kind, b.at("payload").text()
		}
		if strings.HasSuffix(kind, "_tool_result") {
			p.kind, p.token = "server", b.at("content.0.encrypted_content").text()
		}
	}
	return p
}

// messagesForm is a block that must come back unchanged.
func messagesForm(_ *conversation, a answer, i int) object {
	switch item := a.items[i]; item.Kind {
	case "reasoning":
		text := item.Text
		if item.Omitted {
			text = ""
		}
		return object{"type": "thinking", "thinking": text, "signature": a.seal(i)}
	case "redacted":
		return object{"type": "redacted_thinking", "data": a.seal(i)}
	case "compaction":
		return object{"type": "compaction", "content": item.Text, "encrypted_content": a.seal(i)}
	case "unknown":
		return object{"type": item.Name, "id": "uk_" + a.ref(i), "payload": a.seal(i), "parts": array{1, "two", object{"three": nil}}}
	case "server":
		return object{"type": item.Name + "_tool_result", "tool_use_id": "srvtoolu_" + a.ref(i),
			"content": array{object{"type": "web_search_result", "url": "https://example.com/orders/7", "title": "Order 7", "encrypted_content": a.seal(i), "page_age": nil}}}
	}
	return nil
}

// messagesBlocks returns the blocks of an answer.
func messagesBlocks(c *conversation, a answer) array {
	blocks := array{}
	for i, item := range a.items {
		switch item.Kind {
		case "text", "commentary":
			blocks = append(blocks, object{"type": "text", "text": item.Text})
		case "call":
			blocks = append(blocks, object{"type": "tool_use", "id": "toolu_" + a.ref(i), "name": item.Name, "input": json.RawMessage(item.Arguments)})
		case "server":
			blocks = append(blocks, object{"type": "server_tool_use", "id": "srvtoolu_" + a.ref(i), "name": item.Name, "input": json.RawMessage(item.Arguments)}, messagesForm(c, a, i))
		default:
			blocks = append(blocks, messagesForm(c, a, i))
		}
	}
	return blocks
}

// messagesStops returns the words for the end of an answer.
func messagesStops() map[string]string {
	return map[string]string{"end": "end_turn", "calls": "tool_use", "length": "max_tokens", "filter": "refusal", "refusal": "refusal",
		"window": "model_context_window_exceeded", "pause": "pause_turn", "malformed": "end_turn", "continuation": "max_tokens"}
}

func wholeMessages(c *conversation, a answer) object {
	out := object{"id": "msg_" + a.Nonce, "type": "message", "role": assistant, "model": c.model, "content": messagesBlocks(c, a),
		"stop_reason": a.stop(messagesStops()), "stop_sequence": nil, "usage": messagesUsage(a)}
	if details := messagesDetails(a); details != nil {
		out["stop_details"] = details
	}
	if len(c.dropped) > 0 {
		out["input_transformations"] = c.dropped
	}
	return out
}

// messagesDetails is why a request was refused.
func messagesDetails(a answer) object {
	if a.Stop != "refusal" {
		return nil
	}
	return object{"type": "refusal", "category": "cyber", "explanation": "The request was flagged."}
}

func messagesUsage(a answer) object {
	u := a.Usage
	tier := a.Tier
	if tier == "" {
		tier = "standard"
	}
	return object{"input_tokens": u.Input - u.Cached - u.WriteShort - u.WriteLong, "cache_read_input_tokens": u.Cached, "cache_creation_input_tokens": u.WriteShort + u.WriteLong,
		"cache_creation": object{"ephemeral_5m_input_tokens": u.WriteShort, "ephemeral_1h_input_tokens": u.WriteLong},
		"output_tokens":  u.Output, "output_tokens_details": object{"thinking_tokens": u.Reasoning}, "service_tier": tier}
}

func messagesRecords(c *conversation, a answer) []object {
	whole := wholeMessages(c, a)
	begun := object{}
	for k, v := range whole {
		begun[k] = v
	}
	begun["content"], begun["stop_reason"] = array{}, nil
	delete(begun, "stop_details")
	delete(begun, "input_transformations")
	list := []object{{"type": "message_start", "message": begun}, {"type": "ping"}}
	for i, b := range whole["content"].(array) {
		start, deltas := messagesDeltas(b.(object))
		list = append(list, object{"type": "content_block_start", "index": i, "content_block": start})
		for _, d := range deltas {
			list = append(list, object{"type": "content_block_delta", "index": i, "delta": d})
		}
		list = append(list, object{"type": "content_block_stop", "index": i})
	}
	delta := object{"stop_reason": whole["stop_reason"], "stop_sequence": nil}
	if details, ok := whole["stop_details"]; ok {
		delta["stop_details"] = details
	}
	end := object{"type": "message_delta", "delta": delta, "usage": whole["usage"]}
	if dropped, ok := whole["input_transformations"]; ok {
		end["input_transformations"] = dropped
	}
	return append(list, end, object{"type": "message_stop"})
}

// messagesDeltas returns how a block begins in a stream, and what completes it. A thinking block
// whose text is omitted has its signature only.
func messagesDeltas(b object) (start object, deltas []object) {
	start = object{}
	for k, v := range b {
		start[k] = v
	}
	switch b["type"] {
	case "text":
		start["text"] = ""
		for _, piece := range chunks(b["text"].(string)) {
			deltas = append(deltas, object{"type": "text_delta", "text": piece})
		}
	case "thinking":
		start["thinking"], start["signature"] = "", ""
		for _, piece := range chunks(b["thinking"].(string)) {
			deltas = append(deltas, object{"type": "thinking_delta", "thinking": piece})
		}
		deltas = append(deltas, object{"type": "signature_delta", "signature": b["signature"]})
	case "tool_use", "server_tool_use":
		start["input"] = object{}
		for _, piece := range chunks(string(b["input"].(json.RawMessage))) {
			deltas = append(deltas, object{"type": "input_json_delta", "partial_json": piece})
		}
	}
	return start, deltas
}
