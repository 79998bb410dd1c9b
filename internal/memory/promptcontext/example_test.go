package promptcontext_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/qtype-dev/qtype/internal/memory/promptcontext"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/spec/chat"
)

// wordCounter counts a word as one token.
type wordCounter struct{}

func (wordCounter) Count(text string) int { return len(strings.Fields(text)) }

func ExampleNew() {
	ctx := context.Background()
	source := promptcontext.New(nil, promptcontext.Block{Kind: promptcontext.Pinned, Text: "The customer is on plan Gold."})
	m, err := memory.New(memory.Config{ID: "desk", Counter: wordCounter{}, Context: source}, memory.NewInProcess())
	if err != nil {
		fmt.Println(err)
		return
	}
	err = m.Turn(ctx, "ada", func(t *memory.Turn) error {
		t.System("You answer customers.")
		if err := t.Add(chat.Text(chat.User, "Where is my parcel?")); err != nil {
			return err
		}
		messages, err := t.Window()
		for _, message := range messages {
			fmt.Printf("%s: %s\n", message.Role, strings.Join(strings.Fields(message.Text()), " "))
		}
		return err
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// system: You answer customers. The customer is on plan Gold.
	// user: Where is my parcel?
}
