package main

import (
	"context"
	"fmt"
	"os"
	"strconv"

	"github.com/qtype-dev/qtype/internal/tokenizer"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
)

// contentCounter counts messages as the workloads do: texts and tool calls, without the
// overhead of a message.
type contentCounter struct {
	memory.Counter
	total func(n int) int // converts the sum of a message to tokens
}

// CountMessage counts the texts of a message and of its tool calls.
func (c contentCounter) CountMessage(m *chat.Message) int {
	n := 0
	for i := range m.Blocks {
		n += c.Count(m.Blocks[i].Text)
		if call := m.Blocks[i].Call; call != nil {
			n += c.Count(call.Name) + c.Count(call.Arguments)
		}
	}
	return c.total(n)
}

// byteCounter counts bytes, which equal characters in the workloads' texts.
type byteCounter struct{}

// Count returns the length of text.
func (byteCounter) Count(text string) int { return len(text) }

// windowByCharacters is the workload W1a: a token is four characters.
func windowByCharacters(arguments []string) error {
	return slideWindow(arguments[0], contentCounter{byteCounter{}, func(n int) int { return n / 4 }})
}

// windowByTokens is the workload W1b: the tokens of o200k_base.
func windowByTokens(arguments []string) error {
	encoding, err := tokenizer.For(tokenizer.O200k)
	if err != nil {
		return err
	}
	return slideWindow(arguments[0], contentCounter{encoding, func(n int) int { return n }})
}

// slideWindow appends messages to a token window of 4,000 and reads it after each.
func slideWindow(path string, counter memory.Counter) error {
	messages, err := readChat(path)
	if err != nil {
		return err
	}
	if n, err := strconv.Atoi(os.Getenv("BENCH_N")); err == nil {
		messages = messages[:min(n, len(messages))]
	}
	var failed error
	err = measure(len(messages), func() string {
		check, err := slideWindowOnce(messages, counter)
		if err != nil {
			failed = err
		}
		return check
	})
	if failed != nil {
		return failed
	}
	return err
}

func slideWindowOnce(messages []chat.Message, counter memory.Counter) (string, error) {
	ctx := context.Background()
	m, err := memory.New(memory.Config{ID: "w1", Policy: spec.PolicyTokenWindow, Limits: memory.Limits{"max_tokens": 4000},
		KeepSystemFirst: true, Counter: counter}, memory.NewInProcess())
	if err != nil {
		return "", err
	}
	sum := 0
	var w memory.Window
	for i := range messages {
		if err := m.Append(ctx, "s", messages[i]); err != nil {
			return "", err
		}
		if w, err = m.Window(ctx, "s"); err != nil {
			return "", err
		}
		sum += len(w.Entries)
		if w.System != nil {
			sum++
		}
	}
	last := w.Messages()
	return fmt.Sprintf("sum=%d last=%d chars=%d", sum, len(last), characters(last)), nil
}

func characters(msgs []chat.Message) int {
	n := 0
	for _, m := range msgs {
		n += len(m.Text())
	}
	return n
}

// readChat reads a file of messages in OpenAI's form.
func readChat(path string) ([]chat.Message, error) {
	lines, err := readMessages(path)
	if err != nil {
		return nil, err
	}
	msgs := make([]chat.Message, len(lines))
	for i, l := range lines {
		m := chat.Message{Role: chat.Role(l.Role), Blocks: []chat.Block{{Type: "text", Text: l.Content}}, ToolCallID: l.ToolCallID}
		for _, c := range l.ToolCalls {
			m = m.With(chat.ToolCall{ID: c.ID, Name: c.Name, Arguments: c.Arguments})
		}
		msgs[i] = m
	}
	return msgs, nil
}
