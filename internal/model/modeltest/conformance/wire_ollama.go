package conformance

import (
	"encoding/json"
	"fmt"
)

// ollamaWire is Ollama's own protocol.
func ollamaWire() *wireFormat {
	return &wireFormat{name: "ollama", single: true, toolsField: "tools", effort: []string{"think"},
		read: readOllama, whole: wholeOllama, records: ollamaRecords, frame: lines, kind: "application/x-ndjson", form: ollamaForm, refusal: ollamaRefusal}
}

func ollamaRefusal(_ *conversation, _ Refusal, text string) object { return object{"error": text} }

func readOllama(c *conversation) {
	c.model, c.stream = c.body.at("model").text(), c.body.at("stream").text() != "false"
	for _, t := range c.body.at("tools").items() {
		c.tools = append(c.tools, t.at("function.name").text())
	}
	for i, m := range c.body.at("messages").items() {
		at, role := fmt.Sprintf("messages.%d", i), m.at("role").text()
		if t := m.at("thinking"); t.exists() {
			c.add(part{role: role, kind: "reasoning", name: "thinking", text: t.text(), json: node{object{"thinking": t.value}}, where: at})
		}
		kind := "text"
		if role == tool {
			kind = "result"
		}
		if text := m.at("content").text(); text != "" || role != assistant {
			c.add(part{role: role, kind: kind, text: text, name: m.at("tool_name").text(), json: m, where: at})
		}
		for k, call := range m.at("tool_calls").items() {
			c.add(part{role: role, kind: "call", id: call.at("id").text(), name: call.at("function.name").text(), text: call.at("function.arguments").canonical(), json: call, where: fmt.Sprintf("%s.tool_calls.%d", at, k)})
		}
	}
}

// ollamaForm is the thinking of an answer.
func ollamaForm(_ *conversation, a answer, i int) object {
	if i != a.indexOf("reasoning") {
		return nil
	}
	return object{"thinking": a.proof(i)}
}

// ollamaStops returns the words for the end of an answer.
func ollamaStops() map[string]string {
	return map[string]string{"end": "stop", "calls": "stop", "length": "length", "filter": "stop", "refusal": "stop", "window": "length", "malformed": "stop", "pause": "stop", "continuation": "length"}
}

// ollamaMessage is the message of an answer.
func ollamaMessage(c *conversation, a answer) object {
	message := object{"role": assistant, "content": a.joined()}
	calls := array{}
	for i, item := range a.items {
		if item.Kind == "call" {
			calls = append(calls, object{"id": "call_" + a.ref(i), "function": object{"index": len(calls), "name": item.Name, "arguments": json.RawMessage(item.Arguments)}})
		}
		for k, v := range ollamaForm(c, a, i) {
			message[k] = v
		}
	}
	if len(calls) > 0 {
		message["tool_calls"] = calls
	}
	return message
}

func ollamaRecord(c *conversation, message object) object {
	return object{"model": c.model, "created_at": "2026-11-28T00:00:00Z", "message": message, "done": false}
}

func wholeOllama(c *conversation, a answer) object {
	out := ollamaRecord(c, ollamaMessage(c, a))
	out["done"], out["done_reason"], out["prompt_eval_count"], out["eval_count"] = true, a.stop(ollamaStops()), a.Usage.Input, a.Usage.Output
	return out
}

func ollamaRecords(c *conversation, a answer) (list []object) {
	whole := wholeOllama(c, a)
	message := whole["message"].(object)
	if text, ok := message["thinking"].(string); ok {
		for _, piece := range chunks(text) {
			list = append(list, ollamaRecord(c, object{"role": assistant, "content": "", "thinking": piece}))
		}
	}
	for _, piece := range chunks(a.joined()) {
		list = append(list, ollamaRecord(c, object{"role": assistant, "content": piece}))
	}
	if calls, ok := message["tool_calls"]; ok {
		list = append(list, ollamaRecord(c, object{"role": assistant, "content": "", "tool_calls": calls}))
	}
	whole["message"] = object{"role": assistant, "content": ""}
	return append(list, whole)
}
