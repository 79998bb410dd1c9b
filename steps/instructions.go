package steps

import (
	"context"
	"slices"

	"github.com/qtype-dev/qtype/spec/chat"
)

// Instructions are what the caller of a run adds to the system messages of the document.
type Instructions struct {
	Text  string   `json:"text"`  // the text that is sent
	Steps []string `json:"steps"` // ids of the steps that get them
}

type instructionsKey struct{}

// WithInstructions returns a context in which steps send the caller's instructions to
// their models: as a system message after that of the step. Memories do not store them.
func WithInstructions(ctx context.Context, i *Instructions) context.Context {
	return context.WithValue(ctx, instructionsKey{}, i)
}

// instructionsFor returns the instructions for a step, empty for none.
func instructionsFor(ctx context.Context, step string) string {
	i, _ := ctx.Value(instructionsKey{}).(*Instructions)
	if i == nil || !slices.Contains(i.Steps, step) {
		return ""
	}
	return i.Text
}

// withInstructions returns the window with the instructions for a step.
func withInstructions(ctx context.Context, step string, window []chat.Message) []chat.Message {
	return withSystem(window, instructionsFor(ctx, step))
}

// withSystem returns the window with a text as a further system message; an empty text
// adds nothing.
func withSystem(window []chat.Message, text string) []chat.Message {
	if text == "" {
		return window
	}
	at := 0
	for at < len(window) && window[at].Role == chat.System {
		at++
	}
	return slices.Insert(slices.Clone(window), at, chat.Message{Role: chat.System, Blocks: []chat.Block{{Type: "text", Text: text}}})
}
