package runtime

import (
	"context"
	"iter"
	"slices"

	"github.com/qtype-dev/qtype/internal/redact"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec/chat"
)

// redactedChat is a chat model whose answers have no secrets. The arguments of tool calls
// are not changed: the tools may need them.
type redactedChat struct {
	model.Chat
	redactor *redact.Redactor
}

// redactChat returns m without secrets in its answers; nil for nil.
func (a *App) redactChat(m model.Chat) model.Chat {
	if m == nil {
		return nil
	}
	return &redactedChat{m, a.opts.Redactor}
}

// Generate sends the request. A secret that is divided over deltas is replaced, too.
func (m *redactedChat) Generate(ctx context.Context, req model.Request) iter.Seq2[model.Event, error] {
	if m.redactor.Empty() {
		return m.Chat.Generate(ctx, req)
	}
	return func(yield func(model.Event, error) bool) {
		text, reasoning, commentary := m.redactor.NewStream(), m.redactor.NewStream(), m.redactor.NewStream()
		rest := func() bool {
			for _, ev := range []model.Event{{Reasoning: reasoning.End()}, {Commentary: commentary.End()}, {Text: text.End()}} {
				if ev != (model.Event{}) && !yield(ev, nil) {
					return false
				}
			}
			return true
		}
		for ev, err := range m.Chat.Generate(ctx, req) {
			switch {
			case err != nil || ev.Response != nil:
				if !rest() {
					return
				}
				ev.Response = m.response(ev.Response)
			case ev.Text != "":
				ev.Text = text.Next(ev.Text)
			case ev.Commentary != "":
				ev.Commentary = commentary.Next(ev.Commentary)
			default:
				ev.Reasoning = reasoning.Next(ev.Reasoning)
			}
			if (err != nil || ev != (model.Event{})) && !yield(ev, err) {
				return
			}
		}
	}
}

// response returns a response without secrets. Items stay as they are: a provider refuses them
// otherwise, and only the provider gets them.
func (m *redactedChat) response(r *model.Response) *model.Response {
	if r == nil {
		return nil
	}
	shown := *r
	shown.Message.Blocks = redactBlocks(m.redactor, r.Message.Blocks)
	return &shown
}

func redactBlocks(r *redact.Redactor, blocks []chat.Block) []chat.Block {
	shown := slices.Clone(blocks)
	for i := range shown {
		shown[i].Text = r.String(shown[i].Text)
	}
	return shown
}
