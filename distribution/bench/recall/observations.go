package main

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/qtype-dev/qtype/internal/memory/promptcontext"
	"github.com/qtype-dev/qtype/internal/tokenizer"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec/chat"
	"github.com/qtype-dev/qtype/steps"
)

// witness is a chat model that states what is known to be evidence in the messages of a request, and lists of statements
// as they are.
type witness struct {
	evidence      []string
	count         func(string) int
	calls         int
	input, output int // tokens
}

// Info has the name.
func (*witness) Info() model.Info { return model.Info{ID: "witness"} }

// Generate answers one request.
func (w *witness) Generate(_ context.Context, req model.Request) iter.Seq2[model.Event, error] {
	return func(yield func(model.Event, error) bool) {
		answer := w.answer(req.Messages[1].Text())
		w.calls++
		w.input += w.count(req.Messages[0].Text()) + w.count(req.Messages[1].Text())
		w.output += w.count(answer)
		yield(model.Event{Response: &model.Response{Message: chat.Text(chat.Assistant, answer)}}, nil)
	}
}

func (w *witness) answer(prompt string) string {
	_, messages, found := strings.Cut(prompt, "The messages that come next:\n")
	if !found {
		return prompt
	}
	all := []promptcontext.Statement{}
	number := 0
	for line := range strings.Lines(messages) {
		if first, _, found := strings.Cut(line, ". "); found {
			if n, err := strconv.Atoi(first); err == nil { // other lines of a message are indented
				number = n
			}
		}
		for _, e := range w.evidence {
			if strings.Contains(line, e) {
				all = append(all, promptcontext.Statement{Text: e, Proofs: []promptcontext.Proof{{Message: number, Quote: e}}})
			}
		}
	}
	text, err := json.Marshal(map[string]any{"statements": all})
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// observe returns the share of the evidence that the block observations holds, of the messages that have left the window.
func (o *options) observe(ctx context.Context, c *conversation) (sum score, err error) {
	counter, err := tokenizer.For(tokenizer.Cl100k)
	if err != nil {
		return sum, err
	}
	w := &witness{count: counter.Count, evidence: c.statements()}
	observer := steps.ContextModel("witness", func() (model.Chat, error) { return w, nil })
	at := time.Time{}
	m, err := memory.New(memory.Config{ID: "recall", Counter: counter, Now: func() time.Time { return at }, Limits: memory.Limits{"token_limit": 16_000, "chat_history_token_ratio": 0.25, "token_flush_size": 2_000},
		Context: promptcontext.New(nil, promptcontext.Block{Kind: promptcontext.Observations, Priority: 1, MaxTokens: o.window, Observer: observer})}, memory.NewInProcess())
	if err != nil {
		return sum, err
	}
	turns := 0
	for i := range c.Turns {
		if at, err = time.Parse(timeForm, c.Turns[i].Time); err != nil {
			return sum, err
		}
		err := m.Turn(ctx, "s", func(t *memory.Turn) error {
			if err := t.Add(c.message(&c.Turns[i])); err != nil {
				return err
			}
			_, err := t.Window()
			return err
		})
		if err != nil {
			return sum, err
		}
		if c.Turns[i].Author == c.Turns[0].Author {
			turns++
		}
	}
	preview, err := m.PreviewContext(ctx, "s")
	if err != nil {
		return sum, err
	}
	log := preview.Parts[0]
	c.Questions = slices.DeleteFunc(c.Questions, func(q question) bool {
		return slices.ContainsFunc(q.Evidence, func(id string) bool { return c.position(id) > log.Through })
	})
	for i := range c.Questions {
		q := &c.Questions[i]
		sum.recall += q.recall(func(id string) bool {
			return strings.Contains(log.Text, oneLine(q.Quotes[slices.Index(q.Evidence, id)]))
		})
	}
	fmt.Printf("%d lines, %d tokens; %d calls, %d tokens of input and %d of output for each of %d turns\n", log.Units, log.Tokens, w.calls, w.input/turns, w.output/turns, turns)
	return sum, nil
}

// statements are the sentences, rows and lines that answer a question, or did.
func (c *conversation) statements() (all []string) {
	for i := range c.Questions {
		all = append(all, c.Questions[i].Quotes...)
		for _, id := range c.Questions[i].Outdated {
			said, _, _ := strings.Cut(c.Turns[c.position(id)-1].Text, " How should I handle")
			all = append(all, said)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// position returns the position of a message in the history.
func (c *conversation) position(id string) int64 {
	return int64(slices.IndexFunc(c.Turns, func(t turn) bool { return t.ID == id }) + 1)
}
