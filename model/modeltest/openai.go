package modeltest

import (
	"encoding/json"
	"io"
	"net/http"
)

// Message is a message of a request in OpenAI's chat format.
type Message struct{ Role, Content string }

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
