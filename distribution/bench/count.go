package main

import (
	"fmt"

	"github.com/qtype-dev/qtype/internal/tokenizer"
)

// countTokens is the workload W1t: it counts the tokens of every message once.
func countTokens(arguments []string) error {
	messages, err := readMessages(arguments[0])
	if err != nil {
		return err
	}
	encoding, err := tokenizer.For(tokenizer.O200k)
	if err != nil {
		return err
	}
	return measure(len(messages), func() string {
		sum := 0
		for i := range messages {
			sum += tokensOf(encoding, &messages[i])
		}
		return fmt.Sprintf("tokens=%d", sum)
	})
}

// tokensOf counts the content of a message, and the names and arguments of its tool
// calls.
func tokensOf(c tokenizer.Counter, m *message) int {
	n := c.Count(m.Content)
	for i := range m.ToolCalls {
		n += c.Count(m.ToolCalls[i].Name) + c.Count(m.ToolCalls[i].Arguments)
	}
	return n
}
