package conformance

import (
	"fmt"
	"strings"
)

// chatWire is OpenAI's chat completions, as all compatible servers and Mistral speak it.
func chatWire() *wireFormat {
	return &wireFormat{name: "chat", single: true, toolsField: "tools", effort: []string{"reasoning_effort", "reasoning.effort", "thinking.type", "enable_thinking", "chat_template_kwargs.enable_thinking"},
		read: readChat, whole: wholeChat, records: chatRecords, frame: sse, end: "data: [DONE]\n\n", kind: "text/event-stream", form: chatForm, refusal: openAIRefusal}
}

// openAIRefusal is an error of OpenAI and of compatible servers.
func openAIRefusal(c *conversation, e Refusal, text string) object {
	if c.server.Name == "mistral" {
		return object{"object": "error", "message": text, "type": e.Type, "param": nil, "code": optional(e.Code)}
	}
	if c.server.Name == "xai" {
		return object{"code": e.Code, "error": text}
	}
	kind := e.Type
	if kind == "" {
		kind = "invalid_request_error"
	}
	return object{"error": object{"message": text, "type": kind, "param": optional(e.Param), "code": optional(e.Code)}}
}

// optional is null for an empty text.
func optional(text string) any {
	if text == "" {
		return nil
	}
	return text
}

func readChat(c *conversation) {
	c.model, c.stream = c.body.at("model").text(), c.body.at("stream").text() == "true"
	if name, ok := strings.CutPrefix(c.path, "/openai/deployments/"); ok {
		c.model, _, _ = strings.Cut(name, "/")
	}
	for _, t := range c.body.at("tools").items() {
		if name := t.at("function.name").text(); name != "" {
			c.tools = append(c.tools, name)
		}
	}
	c.forbids = c.body.at("tool_choice").text() == "none"
	for i, m := range c.body.at("messages").items() {
		at := fmt.Sprintf("messages.%d", i)
		switch role := m.at("role").text(); role {
		case assistant:
			readChatAnswer(c, m, at)
		case tool:
			c.add(part{role: tool, kind: "result", id: m.at("tool_call_id").text(), text: contentText(m.at("content")), json: m, where: at})
		case user:
			readContent(c, user, m.at("content"), at)
		default:
			c.add(part{role: system, kind: "text", text: contentText(m.at("content")), json: m, where: at})
		}
	}
}

// readContent reads the parts of a message of the user.
func readContent(c *conversation, role string, content node, at string) {
	if content.isText() {
		c.add(part{role: role, kind: "text", text: content.text(), json: content, where: at})
	}
	for i, p := range content.items() {
		kind := "media"
		if p.at("text").isText() {
			kind = "text"
		}
		c.add(part{role: role, kind: kind, text: p.at("text").text(), json: p, where: fmt.Sprintf("%s.content.%d", at, i)})
	}
}

// reasoningFields are the names under which servers of this protocol send reasoning.
var reasoningFields = [...]string{"reasoning_details", "reasoning_content", "reasoning", "thinking"}

func readChatAnswer(c *conversation, m node, at string) {
	for _, name := range reasoningFields {
		if r := m.at(name); r.exists() {
			c.add(part{role: assistant, kind: "reasoning", name: name, text: contentText(r), json: node{object{name: r.value}}, where: at})
		}
	}
	content := m.at("content")
	if content.isText() {
		text := content.text()
		if before, rest, ok := strings.Cut(text, "</think>"); ok && c.server.Reasoning == "think" {
			c.add(part{role: assistant, kind: "reasoning", name: "content", text: before, json: node{object{"content": before + "</think>"}}, where: at})
			text = strings.TrimLeft(rest, "\n")
		}
		if text != "" {
			c.add(part{role: assistant, kind: "text", text: text, json: content, where: at})
		}
	}
	for i, p := range content.items() {
		where := fmt.Sprintf("%s.content.%d", at, i)
		if p.at("type").text() == "thinking" {
			c.add(part{role: assistant, kind: "reasoning", name: "content", json: node{object{"content": p.value}}, where: where})
			continue
		}
		c.add(part{role: assistant, kind: "text", text: p.at("text").text(), json: p, where: where})
	}
	for i, call := range m.at("tool_calls").items() {
		c.add(part{role: assistant, kind: "call", id: call.at("id").text(), name: call.at("function.name").text(), text: call.at("function.arguments").text(),
			token: call.at("extra_content.google.thought_signature").text(), json: call, where: fmt.Sprintf("%s.tool_calls.%d", at, i)})
	}
}

// chatForm is what must come back of reasoning, by the way in which the server sends it.
func chatForm(c *conversation, a answer, i int) object {
	if a.items[i].Kind != "reasoning" {
		if c.server.Reasoning == "google" && i == a.indexOf("call") {
			return object{"extra_content": object{"google": object{"thought_signature": a.seal(i)}}}
		}
		return nil
	}
	if i != a.indexOf("reasoning") { // a message has room for one
		return nil
	}
	switch c.server.Reasoning {
	case "reasoning_content", "reasoning":
		return object{c.server.Reasoning: a.proof(i)}
	case "reasoning_details":
		return object{"reasoning_details": array{
			object{"type": "reasoning.text", "text": a.items[i].Text, "signature": nil, "id": "rd_" + a.ref(i), "format": "unknown", "index": 0},
			object{"type": "reasoning.encrypted", "data": a.seal(i), "id": "rd_" + a.ref(i), "format": "unknown", "index": 1}}}
	case "think":
		return object{"content": "<think>" + a.proof(i) + "</think>"}
	case "parts":
		return object{"content": object{"type": "thinking", "thinking": array{object{"type": "text", "text": a.proof(i)}}, "closed": true}}
	}
	return nil
}

// chatStops returns the words for the end of an answer.
func chatStops() map[string]string {
	return map[string]string{"end": "stop", "calls": "tool_calls", "length": "length", "filter": "content_filter", "refusal": "content_filter",
		"window": "model_context_window_exceeded", "malformed": "network_error", "pause": "stop", "continuation": "length"}
}

// chatCalls returns the calls of an answer.
func chatCalls(c *conversation, a answer, stream bool) array {
	var list array
	for i, item := range a.items {
		if item.Kind != "call" {
			continue
		}
		id := "call_" + a.ref(i)
		if c.server.Name == "mistral" {
			id = a.ref(i)
		}
		call := object{"id": id, "type": "function", "function": object{"name": item.Name, "arguments": item.Arguments}}
		if form := chatForm(c, a, i); form != nil {
			call["extra_content"] = form["extra_content"]
		}
		if stream {
			call["index"] = len(list)
		}
		list = append(list, call)
	}
	return list
}

func wholeChat(c *conversation, a answer) object {
	message := object{"role": assistant, "content": a.joined()}
	if i := a.indexOf("reasoning"); i >= 0 {
		form := chatForm(c, a, i)
		switch c.server.Reasoning {
		case "parts":
			message["content"] = array{form["content"], object{"type": "text", "text": a.joined()}}
		case "think":
			message["content"] = fmt.Sprint(form["content"], "\n\n", a.joined())
		default:
			for name, value := range form {
				message[name] = value
			}
		}
	}
	if calls := chatCalls(c, a, false); len(calls) > 0 {
		message["tool_calls"] = calls
	}
	out := object{"id": "chatcmpl-" + a.Nonce, "object": "chat.completion", "created": 1795824000, "model": c.model, "usage": chatUsage(a.Usage),
		"choices": array{object{"index": 0, "finish_reason": a.stop(chatStops()), "message": message}}}
	if a.Tier != "" {
		out["service_tier"] = a.Tier
	}
	return out
}

func chatUsage(u Usage) object {
	return object{"prompt_tokens": u.Input, "completion_tokens": u.Output, "total_tokens": u.Input + u.Output,
		"prompt_tokens_details":     object{"cached_tokens": u.Cached, "cache_write_tokens": u.WriteShort + u.WriteLong},
		"completion_tokens_details": object{"reasoning_tokens": u.Reasoning}}
}

func chatRecords(c *conversation, a answer) []object {
	record := func(delta object, stop any) object {
		return object{"id": "chatcmpl-" + a.Nonce, "object": "chat.completion.chunk", "created": 1795824000, "model": c.model,
			"choices": array{object{"index": 0, "delta": delta, "finish_reason": stop}}}
	}
	list := []object{record(object{"role": assistant, "content": ""}, nil)}
	if i := a.indexOf("reasoning"); i >= 0 {
		for _, delta := range chatReasoning(c, a, i) {
			list = append(list, record(delta, nil))
		}
	}
	for _, text := range chunks(a.joined()) {
		list = append(list, record(object{"content": text}, nil))
	}
	for _, call := range chatCalls(c, a, true) {
		call := call.(object)
		f := call["function"].(object)
		rest := f["arguments"].(string)
		call["function"] = object{"name": f["name"], "arguments": ""}
		list = append(list, record(object{"tool_calls": array{call}}, nil))
		for _, text := range chunks(rest) {
			list = append(list, record(object{"tool_calls": array{object{"index": call["index"], "function": object{"arguments": text}}}}, nil))
		}
	}
	last := record(object{}, a.stop(chatStops()))
	if a.Tier != "" {
		last["service_tier"] = a.Tier
	}
	if c.body.at("stream_options.include_usage").text() != "true" {
		last["usage"] = chatUsage(a.Usage)
		return append(list, last)
	}
	return append(list, last, object{"id": "chatcmpl-" + a.Nonce, "object": "chat.completion.chunk", "model": c.model, "choices": array{}, "usage": chatUsage(a.Usage)})
}

// chatReasoning returns the deltas of reasoning.
func chatReasoning(c *conversation, a answer, i int) (list []object) {
	form := chatForm(c, a, i)
	switch c.server.Reasoning {
	case "reasoning_details":
		details := form["reasoning_details"].(array)
		text := details[0].(object)
		pieces := chunks(a.items[i].Text)
		if len(pieces) == 0 { // the text is not shown
			pieces = []string{""}
		}
		for _, piece := range pieces {
			list = append(list, object{"reasoning_details": array{object{"type": text["type"], "text": piece, "signature": nil, "id": text["id"], "format": text["format"], "index": 0}}})
		}
		return append(list, object{"reasoning_details": array{details[1]}})
	case "think":
		for _, piece := range chunks(form["content"].(string) + "\n\n") {
			list = append(list, object{"content": piece})
		}
	case "parts":
		for _, piece := range chunks(a.proof(i)) {
			list = append(list, object{"content": array{object{"type": "thinking", "thinking": array{object{"type": "text", "text": piece}}}}})
		}
	case "reasoning_content", "reasoning":
		for _, piece := range chunks(a.proof(i)) {
			list = append(list, object{c.server.Reasoning: piece})
		}
	}
	return list
}
