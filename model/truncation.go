package model

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/spec/chat"
)

// The values of the key on_truncation.
const (
	TruncationError    = "error"    // an incomplete answer is an error
	TruncationWarn     = "warn"     // it is used, with a warning
	TruncationContinue = "continue" // the model is asked to go on where the answer ended
)

// MaxContinuations is how often a model is asked to go on with one answer.
const MaxContinuations = 8

// IncompleteError reports an answer that the provider ended early: at the token limit, or
// by its content filter. It is not temporary, and no fallback is called.
type IncompleteError struct {
	Model  string   // the model's id in the document
	Finish string   // length, content_filter or pause
	Reason string   // the provider's word for it
	Parts  int      // of how many answers the text was joined
	Usage  Usage    // the tokens that were used
	Answer Response // the incomplete answer
	advice string   // what to do
}

// Error states why the answer is incomplete and what to do.
func (e *IncompleteError) Error() string {
	if e.Finish == "content_filter" {
		return fmt.Sprintf("model %s: the provider's content filter withheld the answer or a part of it (finish reason %s)", e.Model, e.Reason)
	}
	if e.Finish == "pause" {
		return fmt.Sprintf("model %s: the provider paused the answer before it was complete (finish reason %s)", e.Model, e.Reason)
	}
	text := fmt.Sprintf("model %s: the answer was cut off at the token limit (finish reason %s)", e.Model, e.Reason)
	if e.Parts > 1 {
		text += fmt.Sprintf(" after %d parts", e.Parts)
	}
	return text + "; " + e.advice
}

// WithTruncation decides what happens to answers that the provider ended at the token
// limit or by its content filter: they are an error, a warning, or, at the token limit,
// continued. Answers with tool calls are never continued, and neither is an answer
// without text, because an incomplete call must not run. warn may be nil.
func WithTruncation(m Chat, mode string, warn func(string)) Chat {
	if warn == nil {
		warn = func(string) {}
	}
	return &truncation{Chat: m, mode: mode, warn: warn}
}

type truncation struct {
	Chat
	mode string
	warn func(string)
}

// Generate yields the deltas of all parts, and the joined answer last.
func (t *truncation) Generate(ctx context.Context, req Request) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		var joined *Response
		for req := req; ; {
			next, err := t.part(ctx, req, yield)
			switch {
			case err != nil:
				yield(Event{}, err)
				return
			case next == nil: // the reader has stopped
				return
			}
			added := joined == nil || next.Message.Text() != ""
			joined = join(joined, next)
			switch {
			case joined.Finish != "length" && joined.Finish != "content_filter" && joined.Finish != "pause":
				yield(Event{Response: joined}, nil)
				return
			case t.goesOn(joined) && added:
				req = continued(req, next)
				continue
			}
			if err := t.incomplete(joined); err != nil {
				yield(Event{}, err)
				return
			}
			yield(Event{Response: joined}, nil)
			return
		}
	}
}

// part makes one call and forwards its deltas. It returns nil if the reader has stopped.
func (t *truncation) part(ctx context.Context, req Request, yield func(Event, error) bool) (*Response, error) {
	r := receiver{forward: yield}
	if r.receive(t.Chat.Generate(ctx, req)); r.response == nil && r.err == nil && !r.stopped {
		return nil, &Error{Model: t.Info().ID, Message: "the answer ended before it was complete"}
	}
	return r.response, r.err
}

// goesOn reports whether the model is asked to go on with an incomplete answer.
func (t *truncation) goesOn(r *Response) bool {
	return t.mode == TruncationContinue && r.Finish == "length" && !r.Message.HasCalls() &&
		r.Message.Text() != "" && r.Parts <= MaxContinuations
}

// incomplete returns the error of an incomplete answer; nil if the document accepts it.
func (t *truncation) incomplete(r *Response) error {
	e := &IncompleteError{Model: t.Info().ID, Finish: r.Finish, Reason: r.Reason, Parts: max(r.Parts, 1), Usage: r.Usage, Answer: *r,
		advice: "raise max_tokens, or set on_truncation to warn or continue"}
	if e.Reason == "" {
		e.Reason = r.Finish
	}
	empty := strings.TrimSpace(r.Message.Text()) == ""
	switch {
	case r.Finish == "pause":
		return e
	case r.Message.HasCalls():
		e.advice = "raise max_tokens: a tool call is incomplete"
		return e
	case empty:
		e.advice = "raise max_tokens: the model wrote no text before it"
		return e
	case t.mode == TruncationContinue:
		e.advice = "the model did not come to an end"
		return e
	case t.mode != TruncationWarn:
		return e
	}
	t.warn(e.Error())
	return nil
}

// continued returns the request for the next part of an answer. A required form applies to
// the whole answer, not to its parts.
func continued(req Request, last *Response) Request {
	req.Messages = slices.Concat(req.Messages, []chat.Message{last.Message,
		chat.Text(chat.User, "Your answer was cut off. Continue it exactly where it ended. Do not repeat anything, and add no introduction.")})
	req.Schema = nil
	return req
}

// join appends the next part to an answer. The tokens of all parts were used. A text that is joined
// from parts is new: it has no item, and the reasoning of the parts before the last one is left out.
func join(all, next *Response) *Response {
	if all == nil {
		return next
	}
	joined := *next
	joined.Parts = max(all.Parts, 1) + 1
	joined.Usage = all.Usage
	joined.Usage.Join(next.Usage)
	joined.Dropped = slices.Concat(all.Dropped, next.Dropped)
	joined.Message.ID = all.Message.ID
	isText := func(b chat.Block) bool { return b.IsText() && !b.IsCitation() }
	i := slices.IndexFunc(next.Message.Blocks, isText)
	if i < 0 {
		joined.Message.Blocks = slices.Concat(all.Message.Blocks, next.Message.Blocks)
		joined.Message.Origin = cmp.Or(next.Message.Origin, all.Message.Origin)
		return &joined
	}
	blocks := slices.Clone(next.Message.Blocks)
	if blocks[i].Item != nil {
		joined.Dropped = append(joined.Dropped, "the signature of the last part of an answer that was continued at the token limit")
	}
	blocks[i].Text, blocks[i].Item = all.Message.Text()+blocks[i].Text, nil
	joined.Message.Blocks = slices.DeleteFunc(blocks, func(b chat.Block) bool { return b.IsCitation() }) // which have places in the text of the part
	if slices.ContainsFunc(all.Message.Blocks, func(b chat.Block) bool { return b.Item != nil }) {
		joined.Dropped = append(joined.Dropped, "the reasoning and the items of the beginning of an answer that was continued at the token limit")
	}
	return &joined
}
