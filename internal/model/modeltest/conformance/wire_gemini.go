package conformance

import (
	"encoding/json"
	"fmt"
	"strings"
)

// geminiWire is Google's generateContent, of the Gemini API and of Vertex AI.
func geminiWire() *wireFormat {
	return &wireFormat{name: "gemini", toolsField: "tools", effort: []string{"generationConfig.thinkingConfig.thinkingLevel", "generationConfig.thinkingConfig.thinkingBudget"},
		read: readGemini, whole: wholeGemini, records: geminiRecords, frame: sse, kind: "text/event-stream", form: geminiForm, refusal: googleRefusal}
}

func googleRefusal(_ *conversation, e Refusal, text string) object {
	return object{"error": object{"code": e.Status, "message": text, "status": "INVALID_ARGUMENT"}}
}

func readGemini(c *conversation) {
	at := strings.LastIndex(c.path, "/models/")
	name, method, _ := strings.Cut(c.path[at+len("/models/"):], ":")
	c.model, c.stream = name, method == "streamGenerateContent"
	for _, t := range c.body.at("tools").items() {
		for _, f := range t.at("functionDeclarations").items() {
			c.tools = append(c.tools, f.at("name").text())
		}
	}
	c.forbids = c.body.at("toolConfig.functionCallingConfig.mode").text() == "NONE"
	for _, field := range []string{"systemInstruction", "system_instruction"} {
		if s := c.body.at(field); s.exists() {
			c.add(part{role: system, kind: "text", text: contentText(s.at("parts")), json: s, where: field})
		}
	}
	for i, content := range c.body.at("contents").items() {
		role := user
		if content.at("role").text() == "model" {
			role = assistant
		}
		for k, p := range content.at("parts").items() {
			if p.at("functionResponse").exists() {
				role = tool
			}
			read := geminiPart(role, p)
			read.where = fmt.Sprintf("contents.%d.parts.%d", i, k)
			c.add(read)
		}
	}
}

// geminiPart reads a part.
func geminiPart(role string, p node) part {
	out := part{role: role, kind: "media", json: p, token: p.at("thoughtSignature").text()}
	switch {
	case p.at("functionCall").exists():
		f := p.at("functionCall")
		out.kind, out.id, out.name, out.text = "call", f.at("id").text(), f.at("name").text(), f.at("args").canonical()
	case p.at("functionResponse").exists():
		f := p.at("functionResponse")
		out.kind, out.id, out.name, out.text = "result", f.at("id").text(), f.at("name").text(), f.at("response").canonical()
	case p.at("thought").text() == "true":
		out.kind, out.text = "thought", p.at("text").text()
	case p.at("text").isText():
		out.kind, out.text = "text", p.at("text").text()
	case role == assistant:
		out.kind = "server"
	}
	return out
}

// geminiForm is the signature of a part, or a call of Google's own tools.
func geminiForm(_ *conversation, a answer, i int) object {
	if a.items[i].Kind == "server" {
		return object{"thoughtSignature": a.seal(i), "toolCall": object{"id": a.ref(i), "toolType": "GOOGLE_SEARCH_WEB", "args": object{"queries": array{"order 7"}}}}
	}
	if i != a.signed() {
		return nil
	}
	return object{"thoughtSignature": a.seal(i)}
}

// geminiParts returns the parts of an answer. thoughts shows the summary of reasoning.
func geminiParts(c *conversation, a answer) array {
	thoughts := c.body.at("generationConfig.thinkingConfig.includeThoughts").text() == "true"
	parts := array{}
	for i, item := range a.items {
		p := object{}
		switch item.Kind {
		case "reasoning":
			if !thoughts {
				continue
			}
			p["text"], p["thought"] = item.Text, true
		case "text", "commentary":
			p["text"] = item.Text
		case "call":
			p["functionCall"] = object{"id": a.ref(i), "name": item.Name, "args": json.RawMessage(item.Arguments)}
		case "server": // its form is all of it
		default:
			continue
		}
		for k, v := range geminiForm(c, a, i) {
			p[k] = v
		}
		parts = append(parts, p)
	}
	return parts
}

// geminiStops returns the words for the end of an answer.
func geminiStops() map[string]string {
	return map[string]string{"end": "STOP", "calls": "STOP", "length": "MAX_TOKENS", "filter": "SAFETY", "refusal": "PROHIBITED_CONTENT",
		"window": "MAX_TOKENS", "malformed": "MALFORMED_FUNCTION_CALL", "pause": "CONTINUATION", "continuation": "CONTINUATION"}
}

func wholeGemini(c *conversation, a answer) object {
	return geminiRecord(c, a, geminiParts(c, a), true)
}

func geminiRecord(c *conversation, a answer, parts array, last bool) object {
	candidate := object{"index": 0, "content": object{"role": "model", "parts": parts}}
	out := object{"candidates": array{candidate}, "modelVersion": c.model, "responseId": a.Nonce}
	if !last {
		return out
	}
	candidate["finishReason"] = a.stop(geminiStops())
	if a.Stop == "continuation" {
		candidate["continuationToken"] = a.seal(0)
	}
	u := a.Usage
	usage := object{"promptTokenCount": u.Input, "cachedContentTokenCount": u.Cached, "candidatesTokenCount": u.Output - u.Reasoning, "thoughtsTokenCount": u.Reasoning, "totalTokenCount": u.Input + u.Output}
	if a.Tier != "" {
		usage["serviceTier"] = a.Tier
	}
	out["usageMetadata"] = usage
	return out
}

// geminiRecords splits the texts. The signature of a text comes in a last part, whose text is empty.
func geminiRecords(c *conversation, a answer) (list []object) {
	for _, p := range geminiParts(c, a) {
		p := p.(object)
		text, isText := p["text"].(string)
		if !isText {
			list = append(list, geminiRecord(c, a, array{p}, false))
			continue
		}
		for _, piece := range chunks(text) {
			part := object{"text": piece}
			if p["thought"] != nil {
				part["thought"] = true
			}
			list = append(list, geminiRecord(c, a, array{part}, false))
		}
		if signature, ok := p["thoughtSignature"]; ok {
			list = append(list, geminiRecord(c, a, array{object{"text": "", "thoughtSignature": signature}}, false))
		}
	}
	return append(list, geminiRecord(c, a, array{}, true))
}
