package memory_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
)

// words counts a word as one token.
type words struct{}

func (words) Count(text string) int { return len(strings.Fields(text)) }

func ExampleMemory_Turn() {
	ctx := context.Background()
	m, err := memory.New(memory.Config{
		ID: "notes", Policy: spec.PolicyMessageWindow, Limits: memory.Limits{"max_messages": 2}, Counter: words{},
	}, memory.NewInProcess())
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := m.Append(ctx, "ada", chat.Text(chat.User, "Hello.")); err != nil {
		fmt.Println(err)
	}
	err = m.Turn(ctx, "ada", func(t *memory.Turn) error {
		if err := t.Add(chat.Text(chat.User, "My name is Ada.")); err != nil {
			return err
		}
		messages, err := t.Window() // what to send to a model
		if err != nil {
			return err
		}
		return t.Add(chat.Text(chat.Assistant, fmt.Sprintf("I received %d messages.", len(messages))))
	})
	if err != nil {
		fmt.Println(err)
	}
	window, err := m.Window(ctx, "ada")
	if err != nil {
		fmt.Println(err)
	}
	for _, message := range window.Messages() {
		fmt.Println("window: ", message.Text())
	}
	for entry, err := range m.History(ctx, "ada") {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("history:", entry.Message.Text())
	}
	// Output:
	// window:  My name is Ada.
	// window:  I received 2 messages.
	// history: Hello.
	// history: My name is Ada.
	// history: I received 2 messages.
}
