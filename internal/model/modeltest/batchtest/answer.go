package batchtest

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
)

// Deterministic answers each call by a digest of its messages. A message with the word refuse is refused. A call with
// tools calls the first one, unless the conversation has a result of a tool.
func Deterministic(method string, body []byte) (status int, answer []byte) {
	var in struct {
		Messages []json.RawMessage `json:"messages"`
		Input    json.RawMessage   `json:"input"`
		Tools    []json.RawMessage `json:"tools"`
		System   json.RawMessage   `json:"system"`
		Contents []json.RawMessage `json:"contents"`
		Rules    json.RawMessage   `json:"systemInstruction"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return 400, []byte(`{"error":{"type":"invalid_request_error","message":"no JSON"}}`)
	}
	said, _ := json.Marshal([]any{in.Messages, in.Input, in.System, in.Contents, in.Rules}) // was decoded
	if strings.Contains(string(said), "refuse") {
		return 400, []byte(`{"error":{"type":"invalid_request_error","message":"refused"}}`)
	}
	sum := sha256.Sum256(said)
	text := "answer " + hex.EncodeToString(sum[:6])
	switch method {
	case "/v1/chat/completions":
		message, finish := map[string]any{"role": "assistant", "content": text}, "stop"
		if len(in.Tools) > 0 && !strings.Contains(string(said), `"role":"tool"`) {
			var first struct {
				Function struct {
					Name string `json:"name"`
				} `json:"function"`
			}
			_ = json.Unmarshal(in.Tools[0], &first) // an object
			message = map[string]any{"role": "assistant", "content": nil, "tool_calls": []any{map[string]any{"id": "call_" + text[7:], "type": "function", "function": map[string]any{"name": first.Function.Name, "arguments": "{}"}}}}
			finish = "tool_calls"
		}
		return 200, line(map[string]any{"id": "c", "object": "chat.completion", "model": "m", "choices": []any{map[string]any{"index": 0, "message": message, "finish_reason": finish}},
			"usage": map[string]any{"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}})
	case "Converse":
		return 200, line(map[string]any{"output": map[string]any{"message": map[string]any{"role": "assistant", "content": []any{map[string]any{"text": text}}}}, "stopReason": "end_turn",
			"usage": map[string]any{"inputTokens": 100, "outputTokens": 10, "totalTokens": 110}})
	case "/v1/responses":
		return 200, line(map[string]any{"id": "resp", "object": "response", "status": "completed", "model": "m",
			"output": []any{map[string]any{"type": "message", "id": "msg", "role": "assistant", "status": "completed", "content": []any{map[string]any{"type": "output_text", "text": text, "annotations": []any{}}}}},
			"usage":  map[string]any{"input_tokens": 100, "output_tokens": 10, "total_tokens": 110}})
	case "/v1/embeddings":
		var texts []string
		_ = json.Unmarshal(in.Input, &texts) // a list of texts
		data := []any{}
		for i, t := range texts {
			sum := sha256.Sum256([]byte(t))
			data = append(data, map[string]any{"object": "embedding", "index": i, "embedding": []float64{float64(sum[0]), float64(sum[1]), float64(sum[2])}})
		}
		return 200, line(map[string]any{"object": "list", "data": data, "model": "m", "usage": map[string]any{"prompt_tokens": 5 * len(texts), "total_tokens": 5 * len(texts)}})
	case "generateContent":
		part := map[string]any{"text": text}
		if len(in.Tools) > 0 && !strings.Contains(string(said), `"functionResponse"`) {
			var first struct {
				Functions []struct {
					Name string `json:"name"`
				} `json:"functionDeclarations"`
			}
			_ = json.Unmarshal(in.Tools[0], &first) // an object
			part = map[string]any{"functionCall": map[string]any{"id": "call_" + text[7:], "name": first.Functions[0].Name, "args": map[string]any{}}}
		}
		return 200, line(map[string]any{"candidates": []any{map[string]any{"content": map[string]any{"role": "model", "parts": []any{part}}, "finishReason": "STOP"}},
			"usageMetadata": map[string]any{"promptTokenCount": 100, "candidatesTokenCount": 10, "totalTokenCount": 110}})
	case "/v1/messages", "rawPredict":
		return 200, line(map[string]any{"id": "msg", "type": "message", "role": "assistant", "model": "m", "content": []any{map[string]any{"type": "text", "text": text}},
			"stop_reason": "end_turn", "usage": map[string]any{"input_tokens": 100, "output_tokens": 10}})
	}
	return 404, []byte(`{"error":{"type":"invalid_request_error","message":"no such method"}}`)
}
