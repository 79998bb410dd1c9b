package modeltest

import (
	"encoding/json"
	"testing"

	"github.com/qtype-dev/qtype/spec/chat"
)

// Stored returns a message as a memory returns it, in another process.
func Stored(t testing.TB, m chat.Message) chat.Message {
	t.Helper()
	raw, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	var back chat.Message
	if err := json.Unmarshal(raw, &back); err != nil {
		t.Fatal(err)
	}
	return back
}

// Answered returns the next request of a conversation after an answer: the results of its calls,
// or another question.
func Answered(m chat.Message) []chat.Message {
	messages := []chat.Message{chat.Text(chat.User, "Where is order 7?"), m}
	for _, c := range m.Calls() {
		messages = append(messages, chat.Message{Role: chat.Tool, Name: c.Name, ToolCallID: c.ID, Blocks: []chat.Block{{Type: "text", Text: "shipped"}}})
	}
	if len(m.Calls()) == 0 {
		messages = append(messages, chat.Text(chat.User, "And 8?"))
	}
	return messages
}
