package conformance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"

	"github.com/aws/smithy-go/eventstream"
)

// converseWire is Bedrock's Converse and ConverseStream.
func converseWire() *wireFormat {
	return &wireFormat{name: "converse", toolsField: "toolConfig.tools", effort: []string{"additionalModelRequestFields.thinking.type", "additionalModelRequestFields.reasoningConfig.type"},
		read: readConverse, whole: wholeConverse, records: converseRecords, frame: awsFrame, kind: "application/vnd.amazon.eventstream", form: converseForm, refusal: awsRefusal}
}

func awsRefusal(_ *conversation, _ Refusal, text string) object { return object{"message": text} }

func readConverse(c *conversation) {
	_, rest, _ := strings.Cut(c.path, "/model/")
	id, method, _ := strings.Cut(rest, "/converse")
	c.model, c.stream = id, method == "-stream"
	if plain, err := url.PathUnescape(id); err == nil {
		c.model = plain
	}
	for _, t := range c.body.at("toolConfig.tools").items() {
		if name := t.at("toolSpec.name").text(); name != "" {
			c.tools = append(c.tools, name)
		}
	}
	for i, s := range c.body.at("system").items() {
		if s.at("text").exists() {
			c.add(part{role: system, kind: "text", text: s.at("text").text(), json: s, where: fmt.Sprintf("system.%d", i)})
		}
	}
	for i, m := range c.body.at("messages").items() {
		role := m.at("role").text()
		for _, b := range m.at("content").items() {
			if role == user && b.at("toolResult").exists() {
				role = tool
			}
		}
		for k, b := range m.at("content").items() {
			if b.at("cachePoint").exists() {
				continue
			}
			p := conversePart(role, b)
			p.where = fmt.Sprintf("messages.%d.content.%d", i, k)
			c.add(p)
		}
	}
}

// conversePart reads a content block.
func conversePart(role string, b node) part {
	p := part{role: role, kind: "media", json: b}
	switch {
	case b.at("text").isText():
		p.kind, p.text = "text", b.at("text").text()
	case b.at("toolUse").exists():
		p.kind, p.id, p.name, p.text = "call", b.at("toolUse.toolUseId").text(), b.at("toolUse.name").text(), b.at("toolUse.input").canonical()
	case b.at("toolResult").exists():
		p.kind, p.id, p.text = "result", b.at("toolResult.toolUseId").text(), b.at("toolResult.content").canonical()
	case b.at("reasoningContent.reasoningText").exists():
		p.kind, p.text, p.token = "reasoning", b.at("reasoningContent.reasoningText.text").text(), b.at("reasoningContent.reasoningText.signature").text()
	case b.at("reasoningContent.redactedContent").exists():
		p.kind, p.token = "redacted", b.at("reasoningContent.redactedContent").text()
	}
	return p
}

// converseForm is a block that must come back unchanged.
func converseForm(_ *conversation, a answer, i int) object {
	switch item := a.items[i]; item.Kind {
	case "reasoning":
		text := item.Text
		if item.Omitted {
			text = ""
		}
		return object{"reasoningContent": object{"reasoningText": object{"text": text, "signature": a.seal(i)}}}
	case "redacted":
		return object{"reasoningContent": object{"redactedContent": a.seal(i)}}
	}
	return nil
}

// converseStops returns the words for the end of an answer.
func converseStops() map[string]string {
	return map[string]string{"end": "end_turn", "calls": "tool_use", "length": "max_tokens", "filter": "content_filtered", "refusal": "guardrail_intervened",
		"window": "model_context_window_exceeded", "malformed": "malformed_tool_use", "pause": "end_turn", "continuation": "max_tokens"}
}

// converseBlocks returns the blocks of an answer.
func converseBlocks(c *conversation, a answer) array {
	blocks := array{}
	for i, item := range a.items {
		switch item.Kind {
		case "text", "commentary":
			blocks = append(blocks, object{"text": item.Text})
		case "call":
			blocks = append(blocks, object{"toolUse": object{"toolUseId": "tooluse_" + a.ref(i), "name": item.Name, "input": json.RawMessage(item.Arguments)}})
		default:
			if form := converseForm(c, a, i); form != nil {
				blocks = append(blocks, form)
			}
		}
	}
	return blocks
}

func converseUsage(u Usage) object {
	return object{"inputTokens": u.Input - u.Cached - u.WriteShort - u.WriteLong, "outputTokens": u.Output, "totalTokens": u.Input + u.Output, "cacheReadInputTokens": u.Cached, "cacheWriteInputTokens": u.WriteShort + u.WriteLong,
		"cacheDetails": array{object{"ttl": "5m", "inputTokens": u.WriteShort}, object{"ttl": "1h", "inputTokens": u.WriteLong}}}
}

func wholeConverse(c *conversation, a answer) object {
	out := object{"output": object{"message": object{"role": assistant, "content": converseBlocks(c, a)}}, "stopReason": a.stop(converseStops()), "usage": converseUsage(a.Usage), "metrics": object{"latencyMs": 1}}
	if a.Tier != "" {
		out["serviceTier"] = object{"type": a.Tier}
	}
	return out
}

// converseRecords are the events; each has its name as its only member.
func converseRecords(c *conversation, a answer) []object {
	list := []object{{"messageStart": object{"role": assistant}}}
	for i, b := range converseBlocks(c, a) {
		b := b.(object)
		delta := func(d object) {
			list = append(list, object{"contentBlockDelta": object{"contentBlockIndex": i, "delta": d}})
		}
		if use, ok := b["toolUse"].(object); ok {
			list = append(list, object{"contentBlockStart": object{"contentBlockIndex": i, "start": object{"toolUse": object{"toolUseId": use["toolUseId"], "name": use["name"]}}}})
			for _, piece := range chunks(string(use["input"].(json.RawMessage))) {
				delta(object{"toolUse": object{"input": piece}})
			}
		}
		if text, ok := b["text"].(string); ok {
			for _, piece := range chunks(text) {
				delta(object{"text": piece})
			}
		}
		if r, ok := b["reasoningContent"].(object); ok {
			if data, ok := r["redactedContent"]; ok {
				delta(object{"reasoningContent": object{"redactedContent": data}})
			} else {
				text := r["reasoningText"].(object)
				for _, piece := range chunks(text["text"].(string)) {
					delta(object{"reasoningContent": object{"text": piece}})
				}
				delta(object{"reasoningContent": object{"signature": text["signature"]}})
			}
		}
		list = append(list, object{"contentBlockStop": object{"contentBlockIndex": i}})
	}
	return append(list, object{"messageStop": object{"stopReason": a.stop(converseStops())}}, object{"metadata": object{"usage": converseUsage(a.Usage), "metrics": object{"latencyMs": 1}}})
}

// awsFrame writes an event in AWS's binary form.
func awsFrame(record object) []byte {
	var b bytes.Buffer
	for name, payload := range record {
		m := eventstream.Message{Payload: encode(payload)}
		m.Headers.Set(":message-type", eventstream.StringValue("event"))
		m.Headers.Set(":event-type", eventstream.StringValue(name))
		m.Headers.Set(":content-type", eventstream.StringValue("application/json"))
		_ = eventstream.NewEncoder().Encode(&b, m) // a buffer never fails
	}
	return b.Bytes()
}
