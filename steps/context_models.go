package steps

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/qtype-dev/qtype/internal/memory/promptcontext"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec/chat"
)

// contextModel is a chat model that writes the summaries, facts or observations of a memory.
type contextModel struct {
	id    string // the model's id
	chat  func() (model.Chat, error)
	pause contextPause
}

// ContextModel lets a chat model write the summaries, facts or observations of a promptcontext. The model is made on
// first use. Its cost is reported as that of the step that used the promptcontext.
func ContextModel(id string, chat func() (model.Chat, error)) promptcontext.Model {
	return &contextModel{id: id, chat: chat}
}

// ask calls the model once and returns the text of its answer.
func (s *contextModel) ask(ctx context.Context, instructions, prompt string, schema *model.Schema) (string, error) {
	m, err := s.chat()
	if err != nil {
		return "", err
	}
	resp, err := s.pause.ask(ctx, m, model.Request{Schema: schema, Messages: []chat.Message{chat.Text(chat.System, instructions), chat.Text(chat.User, prompt)}})
	if err != nil {
		return "", err
	}
	reportUsage(ctx, Event{Input: resp.Usage.Input, Output: resp.Usage.Output, Cached: resp.Usage.Cached, Cost: resp.Usage.Cost, Model: s.id})
	return resp.Message.Text(), nil
}

// Summarize calls the model once.
func (s *contextModel) Summarize(ctx context.Context, f promptcontext.SummaryRequest) (string, error) {
	const wordsPerToken = 0.7 // models count words better than tokens
	instructions := fmt.Sprintf("%s\n\nThe summary has at most %d words.", f.Instructions, max(int(float64(f.MaxTokens)*wordsPerToken), 1))
	text, err := s.ask(ctx, instructions, summaryPrompt(f), nil)
	if err == nil && strings.TrimSpace(text) == "" {
		err = fmt.Errorf("model %s returned an empty summary", s.id)
	}
	return text, err
}

// summaryPrompt returns the messages to summarize as one text.
func summaryPrompt(f promptcontext.SummaryRequest) string {
	const bytesPerToken = 3
	var b strings.Builder
	b.WriteString("The summary so far:\n\n")
	if f.Summary == "" {
		b.WriteString("(none yet)")
	}
	b.WriteString(f.Summary)
	if len(f.Messages) == 0 { // lines that become shorter
		return b.String()
	}
	b.WriteString("\n\nThe messages that come next:\n")
	for i := range f.Messages {
		msg := &f.Messages[i]
		b.WriteString("\n" + string(msg.Role))
		if msg.Name != "" {
			b.WriteString(" " + msg.Name)
		}
		b.WriteString(":")
		if text := truncate(msg.Text(), f.Room*bytesPerToken); text != "" {
			b.WriteString(" " + indented(text))
		}
		for _, block := range msg.Blocks {
			if block.Media() {
				fmt.Fprintf(&b, " [%s]", block.Type)
			}
		}
		for _, call := range msg.Calls() {
			b.WriteString(indented(fmt.Sprintf(" [calls %s(%s)]", call.Name, truncate(call.Arguments, f.Room*bytesPerToken))))
		}
	}
	b.WriteString("\n\nNow write the new summary.")
	return b.String()
}

// indented indents all lines but the first, so that no message can look like several.
func indented(text string) string { return strings.ReplaceAll(text, "\n", "\n  ") }

// truncate cuts a text to max bytes and appends how many were removed.
func truncate(text string, max int) string {
	if max <= 0 || len(text) <= max {
		return text
	}
	max = textfmt.Boundary(text, max)
	return fmt.Sprintf("%s [… %d bytes more]", text[:max], len(text)-max)
}

// embedder is an embedding model that a memory uses for retrieval.
type embedder struct {
	id    string // the model's id
	model func() (model.Embedder, error)
	pause contextPause

	mu         sync.Mutex
	unreported model.Usage // of calls after the turns
}

// Embedder lets a memory use an embedding model. The model is made on first use. Its
// cost is reported as that of the step that used the promptcontext.
func Embedder(id string, made func() (model.Embedder, error)) promptcontext.Embedder {
	return &embedder{id: id, model: made}
}

// Name identifies the provider, the model and the length of the vectors: vectors of an
// offline mock are never compared with vectors of the model.
func (e *embedder) Name() (string, error) {
	m, err := e.model()
	if err != nil {
		return "", err
	}
	info := m.Info()
	return fmt.Sprintf("%s/%s/%d", info.Provider, info.Name, info.Dimensions), nil
}

// Embed calls the model.
func (e *embedder) Embed(ctx context.Context, texts []string, questions bool) ([][]float32, error) {
	m, err := e.model()
	if err != nil {
		return nil, err
	}
	if questions {
		ctx = model.ForQueries(ctx)
	}
	var vectors [][]float32
	var usage model.Usage
	err = e.pause.do(ctx, func() (err error) {
		vectors, usage, err = m.Embed(ctx, texts)
		return err
	})
	if usage = e.reported(ctx, usage); usage != (model.Usage{}) {
		reportUsage(ctx, Event{Input: usage.Input, Output: usage.Output, Cached: usage.Cached, Cost: usage.Cost, Model: cmp.Or(usage.Model, e.id)})
	}
	if err == nil && len(vectors) != len(texts) {
		err = errors.New("the model returned a different number of vectors than texts")
	}
	return vectors, err
}

type afterTurnKey struct{}

// AfterTurn returns a context for what a memory does after a turn: the usage of its models is reported by the next
// call within one.
func AfterTurn(ctx context.Context) context.Context {
	return context.WithValue(ctx, afterTurnKey{}, true)
}

// reported returns what to report of a call: also the calls after turns before it, which no step reports; nothing
// for a call after a turn.
func (e *embedder) reported(ctx context.Context, usage model.Usage) model.Usage {
	e.mu.Lock()
	defer e.mu.Unlock()
	usage.Input += e.unreported.Input
	usage.Output += e.unreported.Output
	usage.Cached += e.unreported.Cached
	usage.Cost += e.unreported.Cost
	e.unreported = model.Usage{}
	if ctx.Value(afterTurnKey{}) != nil {
		e.unreported, usage = usage, model.Usage{}
	}
	return usage
}

// How long the model of a context block is not called after a failed call, whose attempts have
// failed, too. After each further failure it is twice as long.
const (
	firstPause = 30 * time.Second
	lastPause  = 5 * time.Minute
)

// contextPause keeps a model that is down from delaying each turn: a turn continues without its
// context block, but only after all attempts of the call. The zero value is ready to use, and safe
// for concurrent use.
type contextPause struct {
	mu     sync.Mutex
	length time.Duration // of the pause; 0 if the last call did not fail
	until  time.Time     // the next call
	last   error         // why there is a pause
}

// do runs a call, except in a pause. At its end one call is made, and the others wait for the
// next pause to end.
func (p *contextPause) do(ctx context.Context, call func() error) error {
	if err := p.begin(); err != nil {
		return err
	}
	err := call()
	p.end(err, ctx.Err() != nil)
	return err
}

// ask calls a chat model, except in a pause.
func (p *contextPause) ask(ctx context.Context, m model.Chat, request model.Request) (resp *model.Response, err error) {
	err = p.do(ctx, func() (err error) {
		resp, err = model.Call(ctx, m, request, nil)
		return err
	})
	return resp, err
}

// begin returns an error in a pause.
func (p *contextPause) begin() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.length == 0 {
		return nil
	}
	now := time.Now()
	if now.Before(p.until) {
		return fmt.Errorf("not called for %s after a failure: %w", p.length, p.last)
	}
	p.until = now.Add(p.length)
	return nil
}

// end takes note of the result of a call. Only failures that a later call may not have cause a
// pause; a call that was canceled is not a failure of the model.
func (p *contextPause) end(err error, canceled bool) {
	var failure *model.Error
	down := errors.As(err, &failure) && failure.Temporary
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case canceled:
		p.until = time.Time{} // the next call is made, if this one was that after a pause
	case down:
		p.length, p.last = min(max(2*p.length, firstPause), lastPause), err
		p.until = time.Now().Add(p.length)
	default:
		p.length, p.last = 0, nil
	}
}
