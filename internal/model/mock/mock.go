// Package mock is a deterministic model that needs no network. It answers by the rules
// of its document, and where none applies with a summary of the request.
//
// Its own texts cannot be taken for those of a model: each begins with [mock], and Info
// sets Mock. The texts of rules are returned unchanged.
package mock

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/qtype-dev/qtype/internal/jsontext"
	"github.com/qtype-dev/qtype/internal/timer"
	"github.com/qtype-dev/qtype/internal/tokenizer"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
)

// Options configure a mock.
type Options struct {
	Count    func(text string) int // counts tokens; nil means as package tokenizer does for the model
	Replaces *spec.Model           // the model that the mock replaces; nil for none
	ID       string                // of an embedding model: the id of the mock; empty for that of the model
}

// Model is a mock. It is safe for concurrent use.
type Model struct {
	info  model.Info
	rules []rule
	count func(text string) int
}

// New makes the mock that a document declares.
func New(m *spec.Model, opts Options) (*Model, error) {
	made := &Model{info: model.Describe(m), count: opts.Count}
	if other := opts.Replaces; other != nil { // tokens are counted as for the replaced model
		other := model.Describe(other)
		made.info.Replaces, made.info.Encoding = other.ID, other.Encoding
		made.info.ContextWindow, made.info.MaxTokens = other.ContextWindow, other.MaxTokens
	}
	made.info.Provider, made.info.Mock = "mock", true
	if made.count == nil {
		made.count = counter(made.info.Encoding)
	}
	for i, r := range m.Rules {
		compiled, err := compile(r)
		if err != nil {
			return nil, fmt.Errorf("mock model %s: rule %d: %w", m.ID, i+1, err)
		}
		made.rules = append(made.rules, compiled)
	}
	return made, nil
}

// counter returns a token counter, whose vocabulary is loaded on first use.
func counter(encoding string) func(string) int {
	return func(text string) int {
		enc, err := tokenizer.For(encoding)
		if err != nil { // Describe returns only encodings that exist
			return len(text)
		}
		return enc.CountOnce(text) // each call counts the whole conversation
	}
}

// Info describes the mock.
func (m *Model) Info() model.Info { return m.info }

// Generate answers by the first rule that matches.
func (m *Model) Generate(ctx context.Context, req model.Request) iter.Seq2[model.Event, error] {
	return func(yield func(model.Event, error) bool) {
		if err := ctx.Err(); err != nil {
			yield(model.Event{}, err)
			return
		}
		answer, chosen, err := m.answer(req)
		if err != nil {
			yield(model.Event{}, err)
			return
		}
		for delta := range deltas(req.Stream, chosen, answer.Message.Text()) {
			if err := wait(ctx, chosen); err != nil {
				yield(model.Event{}, err)
				return
			}
			if delta != (model.Event{}) && !yield(delta, nil) {
				return
			}
			if err := ctx.Err(); err != nil {
				yield(model.Event{}, err)
				return
			}
		}
		yield(model.Event{Response: answer}, nil)
	}
}

// deltas yields the deltas of an answer, the empty one for an answer that is not streamed.
func deltas(stream bool, chosen *rule, text string) iter.Seq[model.Event] {
	return func(yield func(model.Event) bool) {
		if !stream {
			yield(model.Event{})
			return
		}
		if chosen != nil {
			for word := range words(chosen.spec.Reasoning) {
				if !yield(model.Event{Reasoning: word}) {
					return
				}
			}
		}
		for word := range words(text) {
			if !yield(model.Event{Text: word}) {
				return
			}
		}
	}
}

// wait waits for the delay of a rule.
func wait(ctx context.Context, chosen *rule) error {
	if chosen == nil || chosen.spec.Delay <= 0 {
		return nil
	}
	return timer.Sleep(ctx, time.Duration(chosen.spec.Delay))
}

// answer returns the answer, and the rule that it follows; nil for none.
func (m *Model) answer(req model.Request) (*model.Response, *rule, error) {
	last := lastMessagesOf(req.Messages)
	r := &model.Response{Finish: "stop", Usage: model.Usage{Input: m.tokens(req.Messages)}}
	text, calls := "", []chat.ToolCall(nil)
	chosen, captures := m.choose(last)
	switch {
	case chosen == nil || chosen.spec.Echo, len(chosen.spec.ToolCalls) > 0 && req.Schema != nil && len(req.Tools) == 0: // nothing can be called
		var err error
		if text, err = echoAs(req.Schema, echo(last, r.Usage.Input)); err != nil {
			return nil, nil, &model.Error{Model: m.info.ID, Message: err.Error()}
		}
	case chosen.spec.Error != "" || chosen.spec.Status != 0:
		return nil, nil, m.failure(chosen, captures)
	case len(chosen.spec.ToolCalls) > 0:
		var err error
		if calls, err = chosen.calls(captures, req.Messages); err != nil {
			return nil, nil, &model.Error{Model: m.info.ID, Message: "[mock] " + err.Error()}
		}
		r.Finish = "tool_calls"
	default:
		text = captures.expand(chosen.spec.Text)
	}
	if chosen != nil && chosen.spec.Finish != "" {
		r.Finish = chosen.spec.Finish
		if r.Finish != "stop" {
			r.Reason = r.Finish
		}
	}
	r.Message = chat.Message{ID: chat.NewID(), Role: chat.Assistant}.With(calls...)
	if calls == nil {
		r.Message.Blocks = []chat.Block{{Type: "text", Text: text}}
	}
	r.Usage.Output = m.contentTokens(&r.Message)
	return r, chosen, nil
}

// choose finds the first matching rule, nil for none, and the captures of its pattern.
func (m *Model) choose(last lastMessages) (*rule, captures) {
	for i := range m.rules {
		if got, fits := m.rules[i].fits(last); fits {
			return &m.rules[i], got
		}
	}
	return nil, captures{}
}

// failure returns the error of an error rule; its status decides whether it is temporary.
func (m *Model) failure(r *rule, got captures) error {
	e := &model.Error{Model: m.info.ID, Status: r.spec.Status, Message: got.expand(r.spec.Error)}
	if e.Message == "" {
		e.Message = "an error of the rule"
	}
	e.Message = "[mock] " + e.Message
	e.Temporary = e.Status == 408 || e.Status == 409 || e.Status == 429 || e.Status >= 500
	return e
}

// echoAs gives an echo the form that the answer must have, so that steps which expect a
// record run offline too.
func echoAs(form *model.Schema, text string) (string, error) {
	if form == nil {
		return text, nil
	}
	return Instance(form.JSON, text)
}

// echo summarizes a request.
func echo(last lastMessages, tokens int) string {
	noun := "messages"
	if last.count == 1 {
		noun = "message"
	}
	b := make([]byte, 0, 512) // on the stack for most messages
	b = append(strconv.AppendInt(append(b, "[mock] I received "...), int64(last.count), 10), ' ')
	b = append(strconv.AppendInt(append(append(b, noun...), " ("...), int64(tokens), 10), " tokens)."...)
	if last.count == 0 {
		return string(b)
	}
	b = append(b, " The newest one: "...)
	if jsontext.Plain(last.newest) == len(last.newest) { // the usual text, in quotes as AppendQuote writes it
		return string(append(append(append(b, '"'), last.newest...), '"'))
	}
	return string(strconv.AppendQuote(b, last.newest))
}

// tokens counts a request as memories do.
func (m *Model) tokens(messages []chat.Message) int {
	n := 0
	type counted struct {
		role   chat.Role
		tokens int
	}
	roles := make([]counted, 0, 4) // a conversation has few
	for i := range messages {
		msg := &messages[i]
		at := slices.IndexFunc(roles, func(r counted) bool { return r.role == msg.Role })
		if at < 0 {
			at, roles = len(roles), append(roles, counted{msg.Role, m.count(string(msg.Role))})
		}
		n += 3 + roles[at].tokens + m.contentTokens(msg)
		if msg.Name != "" {
			n += 1 + m.count(msg.Name)
		}
	}
	return n
}

func (m *Model) contentTokens(msg *chat.Message) int {
	n := m.count(msg.Text())
	for _, c := range msg.Calls() {
		n += m.count(c.Name) + m.count(c.Arguments)
	}
	return n
}

// words splits a text after its spaces; joined, the parts are the text again.
func words(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for text != "" {
			end := strings.IndexFunc(text, unicode.IsSpace)
			if end >= 0 {
				rest := strings.TrimLeftFunc(text[end:], unicode.IsSpace)
				end = len(text) - len(rest)
			}
			if end <= 0 {
				end = len(text)
			}
			if !yield(text[:end]) {
				return
			}
			text = text[end:]
		}
	}
}

// lastMessages is the part of a request that rules match.
type lastMessages struct {
	count  int    // number of messages
	newest string // text of the newest message, without what a memory added in front of it
	user   string // text of the newest user message, likewise
	system string // texts of the system messages
	last   string // sender of the last message: user, tool, or another role
	round  int    // 1, and the number of answers since the newest user message
}

func lastMessagesOf(messages []chat.Message) lastMessages {
	h := lastMessages{count: len(messages), round: 1}
	if h.count == 0 {
		return h
	}
	newest := messages[h.count-1]
	h.newest, h.last = newest.TextWithoutMemory(), string(newest.Role)
	if newest.Role == chat.Function {
		h.last = string(chat.Tool)
	}
	for _, msg := range messages {
		switch {
		case msg.Role != chat.System:
		case h.system == "":
			h.system = msg.Text()
		default:
			h.system += "\n" + msg.Text()
		}
	}
	for _, msg := range slices.Backward(messages) {
		if msg.Role == chat.User {
			h.user = msg.TextWithoutMemory()
			break
		}
		if msg.Role == chat.Assistant {
			h.round++
		}
	}
	return h
}
