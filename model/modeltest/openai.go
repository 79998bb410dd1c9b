package modeltest

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// Message is a message of a request in OpenAI's chat format.
type Message struct {
	Role    string // such as user
	Content string // the text
}

// OpenAI returns a handler that responds in OpenAI's chat format. reply returns the text
// of the answer to the messages of a request, or the HTTP status of an error; 0 for none.
func OpenAI(reply func(messages []Message) (text string, status int)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var req struct{ Messages []Message }
		if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		text, status := reply(req.Messages)
		if status != 0 {
			w.WriteHeader(status)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, JSON(map[string]any{
			"choices": []any{map[string]any{"finish_reason": "stop", "message": map[string]any{"role": "assistant", "content": text}}},
			"usage":   map[string]any{"prompt_tokens": 3, "completion_tokens": 5},
		}))
	}
}

// ReadBody adds the model, messages and tools of a request body in OpenAI's chat format,
// which other providers have with changes: Ollama's results of tools name the tool
// instead of the call, and its arguments are objects.
func (c *Conversation) ReadBody(body map[string]any) {
	type object = map[string]any
	c.Model, _ = body["model"].(string)
	names := map[any]any{} // of the tools, by the id of the call
	for _, m := range body["messages"].([]any) {
		m := m.(object)
		switch m["role"] {
		case "system":
			c.System = m["content"].(string)
			continue
		case "tool":
			name, ok := m["tool_name"]
			if !ok {
				name = names[m["tool_call_id"]]
			}
			c.Messages = append(c.Messages, fmt.Sprint("result of ", name, ": ", m["content"]))
			continue
		}
		c.Messages = append(c.Messages, fmt.Sprint(m["role"], ": ", m["content"]))
		calls, _ := m["tool_calls"].([]any)
		for _, call := range calls {
			call := call.(object)
			f := call["function"].(object)
			names[call["id"]] = f["name"]
			arguments, ok := f["arguments"].(string)
			if !ok {
				arguments = JSON(f["arguments"])
			}
			c.Messages = append(c.Messages, fmt.Sprint(m["role"], " calls ", f["name"], " ", arguments))
		}
	}
	tools, _ := body["tools"].([]any)
	for _, tool := range tools {
		f := tool.(object)["function"].(object)
		var arguments []string
		if schema, ok := f["parameters"].(object); ok {
			arguments = slices.Collect(maps.Keys(schema["properties"].(object)))
		}
		c.Tools = append(c.Tools, fmt.Sprint(f["name"], "(", strings.Join(arguments, ","), ")"))
	}
}
