package conformance

import "fmt"

// responsesWire is OpenAI's Responses API.
func responsesWire() *wireFormat {
	return &wireFormat{name: "responses", toolsField: "tools", effort: []string{"reasoning.effort"},
		read: readResponses, whole: wholeResponses, records: responsesRecords, frame: namedSSE, kind: "text/event-stream", form: responsesForm, refusal: openAIRefusal}
}

func readResponses(c *conversation) {
	c.model, c.stream = c.body.at("model").text(), c.body.at("stream").text() == "true"
	for _, t := range c.body.at("tools").items() {
		if t.at("type").text() == "function" {
			c.tools = append(c.tools, t.at("name").text())
		}
	}
	c.forbids = c.body.at("tool_choice").text() == "none"
	if text := c.body.at("instructions").text(); text != "" {
		c.add(part{role: system, kind: "text", text: text, json: c.body.at("instructions"), where: "instructions"})
	}
	if c.body.at("input").isText() {
		c.add(part{role: user, kind: "text", text: c.body.at("input").text(), json: c.body.at("input"), where: "input"})
	}
	for i, item := range c.body.at("input").items() {
		readResponsesItem(c, item, fmt.Sprintf("input.%d", i))
	}
}

func readResponsesItem(c *conversation, item node, at string) {
	switch kind := item.at("type").text(); kind {
	case "message", "":
		role := item.at("role").text()
		switch role {
		case user:
			readContent(c, user, item.at("content"), at)
		case assistant:
			p := part{role: assistant, kind: "text", text: contentText(item.at("content")), name: item.at("phase").text(), json: item, where: at}
			if p.name == "commentary" {
				p.kind = "commentary"
			}
			c.add(p)
		default:
			c.add(part{role: system, kind: "text", text: contentText(item.at("content")), json: item, where: at})
		}
	case "reasoning", "compaction":
		c.add(part{role: assistant, kind: kind, token: item.at("encrypted_content").text(), json: item, where: at})
	case "function_call":
		c.add(part{role: assistant, kind: "call", id: item.at("call_id").text(), name: item.at("name").text(), text: item.at("arguments").text(), json: item, where: at})
	case "mcp_approval_request":
		c.add(part{role: assistant, kind: "call", id: item.at("id").text(), name: item.at("name").text(), text: item.at("arguments").text(), json: item, where: at})
	case "mcp_approval_response":
		c.add(part{role: tool, kind: "result", id: item.at("approval_request_id").text(), json: item, where: at})
	case "function_call_output":
		c.add(part{role: tool, kind: "result", id: item.at("call_id").text(), text: item.at("output").text(), json: item, where: at})
	default:
		c.add(part{role: assistant, kind: "unknown", name: kind, token: item.at("payload").text(), json: item, where: at})
	}
}

// responsesForm is an item of the output whose content must come back.
func responsesForm(_ *conversation, a answer, i int) object {
	switch item := a.items[i]; item.Kind {
	case "reasoning", "redacted":
		summary := array{}
		if item.Text != "" {
			summary = array{object{"type": "summary_text", "text": item.Text}}
		}
		return object{"type": "reasoning", "id": "rs_" + a.ref(i), "summary": summary, "encrypted_content": a.seal(i)}
	case "compaction":
		return object{"type": "compaction", "id": "cmp_" + a.ref(i), "encrypted_content": a.seal(i)}
	case "unknown":
		return object{"type": item.Name, "id": "uk_" + a.ref(i), "status": "completed", "payload": a.seal(i), "parts": array{1, "two", object{"three": nil}}}
	case "server":
		return object{"type": item.Name + "_call", "id": "ws_" + a.ref(i), "status": "completed", "action": object{"type": "search", "query": "order 7"}, "payload": a.seal(i)}
	}
	return nil
}

// responsesItem is an item of the output.
func responsesItem(c *conversation, a answer, i int) object {
	item := a.items[i]
	switch item.Kind {
	case "commentary", "text":
		phase := "final_answer"
		if item.Kind == "commentary" {
			phase = "commentary"
		}
		out := object{"type": "message", "id": "msg_" + a.ref(i), "role": assistant, "status": "completed",
			"content": array{object{"type": "output_text", "text": item.Text, "annotations": array{}, "logprobs": array{}}}}
		if c.server.Phases {
			out["phase"] = phase
		}
		return out
	case "call":
		return object{"type": "function_call", "id": "fc_" + a.ref(i), "call_id": "call_" + a.ref(i), "name": item.Name, "arguments": item.Arguments, "status": "completed"}
	}
	return responsesForm(c, a, i)
}

func wholeResponses(c *conversation, a answer) object {
	out := object{"id": "resp_" + a.Nonce, "object": "response", "created_at": 1795824000, "status": "completed", "model": c.model, "error": nil, "incomplete_details": nil, "usage": responsesUsage(a.Usage)}
	if a.Tier != "" {
		out["service_tier"] = a.Tier
	}
	switch a.Stop {
	case "length", "window":
		out["status"], out["incomplete_details"] = "incomplete", object{"reason": "max_output_tokens"}
	case "filter":
		out["status"], out["incomplete_details"] = "incomplete", object{"reason": "content_filter"}
	}
	items := array{}
	for i := range a.items {
		items = append(items, responsesItem(c, a, i))
	}
	if a.Stop == "refusal" {
		items = append(items, object{"type": "message", "id": "msg_refusal", "role": assistant, "status": "completed", "content": array{object{"type": "refusal", "refusal": "I cannot help with that."}}})
	}
	out["output"] = items
	return out
}

func responsesUsage(u Usage) object {
	return object{"input_tokens": u.Input, "output_tokens": u.Output, "total_tokens": u.Input + u.Output,
		"input_tokens_details": object{"cached_tokens": u.Cached, "cache_write_tokens": u.WriteShort + u.WriteLong,
			"cache_write_tokens_details": object{"ttl_30m_tokens": u.WriteShort, "ttl_12h_tokens": u.WriteLong}},
		"output_tokens_details": object{"reasoning_tokens": u.Reasoning}}
}

func responsesRecords(c *conversation, a answer) []object {
	whole := wholeResponses(c, a)
	begun := object{}
	for k, v := range whole {
		begun[k] = v
	}
	begun["status"], begun["output"], begun["usage"] = "in_progress", array{}, nil
	list := []object{{"type": "response.created", "response": begun}, {"type": "response.in_progress", "response": begun}}
	for i, v := range whole["output"].(array) {
		list = append(list, responsesItemRecords(v.(object), i)...)
	}
	list = append(list, object{"type": "response." + whole["status"].(string), "response": whole})
	for i := range list {
		list[i]["sequence_number"] = i
	}
	return list
}

// responsesItemRecords are the events of an item. Only the last one has the whole item: before it,
// what is encrypted is cut.
func responsesItemRecords(item object, index int) []object {
	id := item["id"]
	event := func(kind string, fields object) object {
		fields["type"], fields["output_index"], fields["item_id"] = kind, index, id
		return fields
	}
	begun := object{}
	for k, v := range item {
		begun[k] = v
	}
	if _, ok := begun["encrypted_content"]; ok {
		begun["encrypted_content"] = "gAAA"
	}
	var list []object
	switch item["type"] {
	case "message":
		begun["content"], begun["status"] = array{}, "in_progress"
		content := item["content"].(array)[0].(object)
		list = append(list, event("response.content_part.added", object{"content_index": 0, "part": object{"type": content["type"], "text": "", "annotations": array{}}}))
		kind, text := "output_text", content["text"]
		if content["type"] == "refusal" {
			kind, text = "refusal", content["refusal"]
		}
		for _, piece := range chunks(text.(string)) {
			list = append(list, event("response."+kind+".delta", object{"content_index": 0, "delta": piece, "obfuscation": "x9"}))
		}
		list = append(list, event("response."+kind+".done", object{"content_index": 0, map[string]string{"output_text": "text", "refusal": "refusal"}[kind]: text}),
			event("response.content_part.done", object{"content_index": 0, "part": content}))
	case "reasoning":
		begun["summary"] = array{}
		for k, part := range item["summary"].(array) {
			text := part.(object)["text"].(string)
			list = append(list, event("response.reasoning_summary_part.added", object{"summary_index": k, "part": object{"type": "summary_text", "text": ""}}))
			for _, piece := range chunks(text) {
				list = append(list, event("response.reasoning_summary_text.delta", object{"summary_index": k, "delta": piece}))
			}
			list = append(list, event("response.reasoning_summary_text.done", object{"summary_index": k, "text": text}), event("response.reasoning_summary_part.done", object{"summary_index": k, "part": part}))
		}
	case "function_call":
		begun["arguments"] = ""
		text := item["arguments"].(string)
		for _, piece := range chunks(text) {
			list = append(list, event("response.function_call_arguments.delta", object{"delta": piece}))
		}
		list = append(list, event("response.function_call_arguments.done", object{"arguments": text}))
	}
	first := object{"type": "response.output_item.added", "output_index": index, "item": begun}
	return append(append([]object{first}, list...), object{"type": "response.output_item.done", "output_index": index, "item": item})
}
