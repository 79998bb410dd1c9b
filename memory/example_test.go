package memory_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"strings"

	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
)

// words counts words. Programs use the tokenizer of their model.
type words struct{}

func (words) Count(text string) int { return len(strings.Fields(text)) }

// newExample returns a memory that keeps the newest messages of each session.
func newExample(messages float64) *memory.Memory {
	m, err := memory.New(memory.Config{
		ID:      "chats",
		Policy:  spec.PolicyMessageWindow,
		Limits:  memory.Limits{"max_messages": messages},
		Counter: words{},
	}, memory.NewInProcess())
	if err != nil {
		log.Fatal(err)
	}
	return m
}

// A turn adds the question, calls the model with the window, and adds the
// answer. It commits all of it or, if the function returns an error, nothing.
func ExampleMemory_Turn() {
	ctx := context.Background()
	m := newExample(10)
	answer := func(window []chat.Message) (chat.Message, error) { // in place of a model
		return chat.Text(chat.Assistant, fmt.Sprintf("I received %d messages.", len(window))), nil
	}
	err := m.Turn(ctx, "ada", func(t *memory.Turn) error {
		t.System("Be brief.")
		if err := t.Add(chat.Text(chat.User, "Where is my parcel?")); err != nil {
			return err
		}
		window, err := t.Window()
		if err != nil {
			return err
		}
		msg, err := answer(window)
		if err != nil {
			return err
		}
		return t.Add(msg)
	})
	if err != nil {
		log.Fatal(err)
	}
	window, err := m.Window(ctx, "ada")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(window.Text())
	// Output:
	// system: Be brief.
	//
	// user: Where is my parcel?
	// assistant: I received 2 messages.
}

// A turn that fails leaves the window as it was. The history has its messages,
// marked as failed.
func ExampleMemory_Turn_failed() {
	ctx := context.Background()
	m := newExample(10)
	err := m.Turn(ctx, "ada", func(t *memory.Turn) error {
		if err := t.Add(chat.Text(chat.User, "Where is my parcel?")); err != nil {
			return err
		}
		return errors.New("the model is unavailable")
	})
	fmt.Println(err)
	for entry, err := range m.History(ctx, "ada") {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s (%s)\n", entry.Message.Text(), entry.Status)
	}
	// Output:
	// the model is unavailable
	// Where is my parcel? (failed)
}

// Append adds messages without a turn. What leaves the window stays in the history.
func ExampleMemory_Append() {
	ctx := context.Background()
	m := newExample(2)
	for _, text := range []string{"one", "two", "three"} {
		if err := m.Append(ctx, "ada", chat.Text(chat.User, text)); err != nil {
			log.Fatal(err)
		}
	}
	window, err := m.Window(ctx, "ada")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%d of %d %s\n", window.Used, window.Limit, window.Unit)
	for entry, err := range m.History(ctx, "ada") {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(entry.Seq, entry.Message.Text(), entry.Status)
	}
	// Output:
	// 2 of 2 messages
	// 1 one flushed
	// 2 two in window
	// 3 three in window
}

// The events name the messages that left the window, and the rule.
func ExampleMemory_Events() {
	ctx := context.Background()
	m := newExample(2)
	for _, text := range []string{"one", "two", "three"} {
		if err := m.Append(ctx, "ada", chat.Text(chat.User, text)); err != nil {
			log.Fatal(err)
		}
	}
	for event, err := range m.Events(ctx, "ada") {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(event.Kind, event.From, event.Reason)
	}
	// Output:
	// flush 1 3 messages in the window exceeded max_messages 2; 1 message had to leave, 1 message left
}

// A user edits a message. The undone turn can be forked.
func ExampleMemory_Rewind() {
	ctx := context.Background()
	m := newExample(10)
	for _, text := range []string{"one", "two"} {
		if err := m.Append(ctx, "ada", chat.Text(chat.User, text)); err != nil {
			log.Fatal(err)
		}
	}
	err := errors.Join(
		m.Rewind(ctx, "ada", 2),
		m.Append(ctx, "ada", chat.Text(chat.User, "three")),
		m.Fork(ctx, "ada", "before", 2),
	)
	if err != nil {
		log.Fatal(err)
	}
	for _, session := range []string{"ada", "before"} {
		window, err := m.Window(ctx, session)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(window.Text())
	}
	// Output:
	// user: one
	//
	// user: three
	// user: one
	//
	// user: two
}
