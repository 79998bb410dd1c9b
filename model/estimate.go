package model

import (
	"context"
	"iter"

	"github.com/qtype-dev/qtype/internal/tokenizer"
	"github.com/qtype-dev/qtype/spec/chat"
)

// WithEstimates estimates the usage of answers of servers that report none, so that budgets
// and costs count them.
func WithEstimates(m Chat) Chat { return &estimated{m} }

type estimated struct{ Chat }

// Generate forwards the events of one call.
func (e *estimated) Generate(ctx context.Context, req Request) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		for ev, err := range e.Chat.Generate(ctx, req) {
			if r := ev.Response; r != nil && r.Usage.Input+r.Usage.Output == 0 {
				answer := *r
				answer.Usage.Input = countTokens(e.Info(), requestText(req))
				answer.Usage.Output = countTokens(e.Info(), requestText(Request{Messages: []chat.Message{r.Message}}))
				answer.Usage.Estimated = true
				ev.Response = &answer
			}
			if !yield(ev, err) {
				return
			}
		}
	}
}

// countTokens returns about how many tokens texts have for a model.
func countTokens(info Info, texts []string) int {
	n := 0
	enc, err := tokenizer.For(info.Encoding)
	for _, text := range texts {
		if err == nil {
			n += enc.Count(text)
		} else {
			n += len(text) / 4 // about what the vocabularies give for English text
		}
	}
	return n
}
