package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// A message is a line of the workloads' conversation.
type message struct {
	// Role is user, assistant, system or tool.
	Role string `json:"role"`
	// ToolCallID is the id of the call, for the result of a tool.
	ToolCallID string `json:"tool_call_id"`
	// Content is the text.
	Content string `json:"content"`
	// ToolCalls are the calls of an assistant.
	ToolCalls []toolCall `json:"tool_calls"`
}

// A toolCall is a call of a tool.
type toolCall struct {
	// ID identifies the call.
	ID string `json:"id"`
	// Name is the tool's name.
	Name string `json:"name"`
	// Arguments is JSON text.
	Arguments string `json:"arguments"`
}

// readMessages reads a file of JSON lines.
func readMessages(path string) ([]message, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var messages []message
	for decoder := json.NewDecoder(f); ; {
		var m message
		err := decoder.Decode(&m)
		if errors.Is(err, io.EOF) {
			return messages, nil
		}
		if err != nil {
			return nil, fmt.Errorf("message %d of %s: %w", len(messages)+1, path, err)
		}
		messages = append(messages, m)
	}
}
