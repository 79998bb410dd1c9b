package steps

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/qtype-dev/qtype/internal/redact"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/internal/tokenizer"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
)

// llmStep holds what LLMInference and Agent share.
type llmStep struct {
	id       string
	model    model.Chat
	memory   *memory.Memory // nil without one
	declared string         // the memory's id in the document
	system   string
	margin   float64       // what the memory takes the tokens of messages for that the model's provider has not counted, see memory.Budget
	cost     func() int    // tokens of the descriptions of the step's tools; nil without tools
	schema   *outputSchema // the required form of the answer; nil for free text
	quiet    bool          // the text of answers is not that of the step: it is not streamed
	sources  *slot         // passages that the answer may cite; nil for none
}

// newLLMStep finds the shared model and memory of a step.
func (e *Env) newLLMStep(s *spec.StepBase, m spec.ModelEntity, mem *spec.Memory, system string) (llmStep, error) {
	sp := llmStep{id: s.ID, system: system}
	if m == nil || e.Model == nil {
		return sp, fmt.Errorf("the model is not linked")
	}
	var err error
	if sp.model, err = e.Model(m.Base()); err != nil || mem == nil {
		return sp, err
	}
	if e.Memory == nil {
		return sp, fmt.Errorf("memory %s is not part of the application", mem.ID)
	}
	sp.declared, sp.margin = mem.ID, tokenMargin(mem, sp.model.Info())
	sp.memory, err = e.Memory(mem)
	return sp, err
}

// tokenMargin returns the margin for a memory's counts of the tokens of a model. A file
// of a tokenizer is taken for that of the model.
func tokenMargin(m *spec.Memory, info model.Info) float64 {
	if m.Tokenizer.File != "" || info.ExactTokens || info.Mock {
		return 1
	}
	return tokenizer.EstimateMargin
}

// runTurn adds the inputs to the conversation, calls reply, and commits or aborts,
// even on panic, because other turns of the session wait for the end of this one.
// The context of reply is canceled if a newer turn preempts this one. If the turn
// was committed by an earlier run, runTurn returns its answer.
func (s *llmStep) runTurn(ctx context.Context, row *Row, inputs []slot, reply replyFunc) (answer chat.Message, err error) {
	msgs, err := messagesFrom(inputs, row)
	if err != nil {
		return answer, err
	}
	ctx, observed := s.observeTurn(ctx, row)
	calls := withCallContext(ctx, s.id, row)
	d, err := beginConversation(calls, s.memory, row.Session, s.system)
	if err != nil {
		observed.end(nil, err)
		return answer, err
	}
	observed.begun(d)
	defer func() { observed.end(d, err) }()
	finished := false
	defer func() {
		if !finished {
			_ = d.close(ctx, fmt.Errorf("internal error")) // the panic continues and reports its cause
		}
	}()
	report := d.report(ctx)
	within, used := withTurnUsage(s.withTurn(d.context(calls), row, d))
	answer, err = d.finish(within, row, msgs, reply)
	finished = true
	d.endUsage(used, func(note string) { s.reportNoted(ctx, row, note) })
	err = d.close(ctx, err)
	if report != nil {
		Report(ctx, s.event(row, Event{Kind: EventTurn, Memory: s.declared, Flushes: d.priorFlushes(used) + report.Flushes}))
	}
	return answer, err
}

// replyFunc produces the answer of a conversation whose question was added.
type replyFunc func(context.Context, *conversation) (chat.Message, error)

// finish adds msgs and returns the reply, or the answer of an earlier run.
func (d *conversation) finish(ctx context.Context, row *Row, msgs inputMessages, reply replyFunc) (chat.Message, error) {
	had, err := d.replayedAnswer(ctx, row, msgs)
	switch {
	case err != nil:
		return chat.Message{}, err
	case had != nil:
		return *had, nil
	}
	if err := d.add(msgs.joined(d.has)...); err != nil {
		return chat.Message{}, err
	}
	return reply(ctx, d)
}

// offer is what a request has of tools.
type offer struct {
	tools   []model.Tool
	refused bool // they must not be called
}

// generate sends the window and waits for the answer. It reports deltas, usage and what was
// left out of the request as events.
func (s *llmStep) generate(ctx context.Context, row *Row, d *conversation, tools offer) (chat.Message, error) {
	budget := s.budget(ctx, tools.tools)
	window, err := s.observeWindow(ctx, d, budget)
	if err != nil {
		return chat.Message{}, err
	}
	s.reportRepairs(ctx, row, d)
	req := model.Request{Tools: tools.tools, NoCalls: tools.refused, Stream: !s.quiet && Wanted(ctx, EventText), Passages: requestPassages(ctx, window)}
	req.Messages = s.forModel(ctx, d.withExtra(window))
	s.require(ctx, &req)
	resp, err := s.callFitted(ctx, row, d, req, budget)
	if incomplete, ok := errors.AsType[*model.IncompleteError](err); ok { // its tokens were used
		s.reportUsage(ctx, row, &incomplete.Answer, incomplete.Usage)
	}
	if err != nil {
		return chat.Message{}, err
	}
	s.reportUsage(ctx, row, resp, resp.Usage)
	for i := range resp.Failed {
		Report(ctx, s.event(row, Event{Kind: EventFallback, Model: resp.Model, Text: resp.Failed[i].Message, Failed: &resp.Failed[i]}))
	}
	for _, what := range resp.Dropped {
		Report(ctx, s.event(row, Event{Kind: EventDropped, Text: what}))
	}
	answer := resp.Message
	if answer.ID == "" {
		answer.ID = chat.NewID()
	}
	return answer, nil
}

// reportUsage reports the tokens of an answer, and why it ended.
func (s *llmStep) reportUsage(ctx context.Context, row *Row, r *model.Response, u model.Usage) {
	Report(ctx, s.event(row, Event{Kind: EventUsage, Input: u.Input, Output: u.Output, Cached: u.Cached, Estimated: u.Estimated, Cost: u.Cost, Saved: u.Saved, Model: r.Model, Finish: r.Finish}))
}

// call returns the response to one request: the recorded one if an earlier run has
// made the call, whose text is reported as one delta; its reasoning and commentary are not
// reported again, because they were shown when it was made. Answers of mocks are not recorded, as
// they are free and the same each time, except those with tool calls, which have new ids.
func (s *llmStep) call(ctx context.Context, row *Row, d *conversation, req model.Request) (*model.Response, error) {
	log := callRecorderFrom(ctx)
	if log == nil || s.model.Info().Mock && len(req.Tools) == 0 {
		return s.send(ctx, row, d, req)
	}
	key := log.key(ctx, "model", requestParts(&req)...)
	resp, replayed, err := recorded(ctx, key, "model "+s.model.Info().ID, func(ctx context.Context) (*model.Response, error) {
		resp, err := s.send(ctx, row, d, req)
		if err == nil { // the keys of later calls have these ids
			resp.Message = named(resp.Message)
		}
		return resp, err
	})
	if err == nil && replayed {
		if text := resp.Message.Text(); text != "" && req.Stream {
			Report(ctx, s.event(row, Event{Kind: EventText, Text: text}))
		}
	}
	return resp, err
}

// send sends one request, reports the deltas of the answer, and returns it whole. d has the text
// that was reported so far.
func (s *llmStep) send(ctx context.Context, row *Row, d *conversation, req model.Request) (*model.Response, error) {
	d.partial.Reset()
	stop := &stopper{stops: instructionsFor(ctx, s.id).Stop}
	resp, err := model.Call(ctx, s.model, req, func(delta model.Event) {
		ev := Event{Kind: EventText, Text: delta.Text}
		if delta.Text != "" {
			if ev.Text = stop.next(delta.Text); ev.Text == "" {
				return
			}
		}
		switch {
		case delta.Reasoning != "":
			ev.Kind, ev.Text = EventReasoning, delta.Reasoning
		case delta.Commentary != "":
			ev.Kind, ev.Text = EventCommentary, delta.Commentary
		default:
			d.partial.WriteString(ev.Text)
		}
		Report(ctx, s.event(row, ev))
	})
	if err != nil {
		return nil, err
	}
	if rest := stop.rest(); rest != "" && req.Stream {
		Report(ctx, s.event(row, Event{Kind: EventText, Text: rest}))
	}
	resp.Message = stop.cut(resp.Message)
	d.partial.Reset() // the conversation gets the whole answer
	return resp, nil
}

// budget returns the room of one call that offers tools. The caller's instructions and the
// passages take a part of it, as the tools do.
func (s *llmStep) budget(ctx context.Context, tools []model.Tool) memory.Budget {
	info := s.model.Info()
	b := memory.Budget{Model: info.Name, ContextWindow: info.ContextWindow, Answer: info.MaxTokens, Margin: s.margin}
	if len(tools) > 0 && s.cost != nil {
		b.Tools = s.cost()
	}
	if s.memory == nil {
		return b
	}
	asked := instructionsFor(ctx, s.id)
	for _, text := range []string{asked.Text, asked.Prefix, string(asked.Schema)} {
		if text != "" {
			b.Tools += s.memory.Count(text)
		}
	}
	if text := passagesIn(ctx); text != "" {
		b.Passages = s.memory.Count(text)
	}
	return b
}

// event fills in the step and the row of an event.
func (s *llmStep) event(row *Row, ev Event) Event {
	ev.Step, ev.Session, ev.Row = s.id, row.Session, row.Number
	return ev
}

// answer sets the output: the text of the message where the output is a text, else
// the message, which keeps its id so that a later step with the same memory does not
// add it again.
func (s *llmStep) answer(row *Row, out slot, m chat.Message) {
	if out.of.Type.Is("ChatMessage") {
		out.write(row, m)
		return
	}
	out.write(row, m.Text())
}

// checkMedia returns an error if an answer has only images, sounds or files, and the output is a text.
func (s *llmStep) checkMedia(out slot, m chat.Message) error {
	if out.of.Type.Is("ChatMessage") || m.Text() != "" {
		return nil
	}
	for _, b := range m.Blocks {
		if b.Media() {
			return fmt.Errorf("the model answered with %s (%s) without a text: the output %s must be a ChatMessage", b.Type, b.MimeType, out.of.ID)
		}
	}
	return nil
}

// errEmptyAnswer is the error of an answer without text, media and calls, of an Agent as well
// as of LLMInference: providers refuse conversations with empty messages.
var errEmptyAnswer error = &redact.PublicError{Err: errors.New("the model gave an empty answer")}

// isEmpty reports whether a message has neither text, other than spaces and citations, nor media.
func isEmpty(m chat.Message) bool {
	for i := range m.Blocks {
		if b := &m.Blocks[i]; b.Media() || b.IsText() && !b.IsCitation() && strings.TrimSpace(b.Text) != "" {
			return false
		}
	}
	return true
}

// callFitted sends a request. If the provider rejects it as too long, or without a reason
// although no larger one was accepted before, it is sent again without the oldest rounds of
// the conversation, down to the newest one. What was accepted, and the provider's count of it,
// correct the estimates of the memory.
func (s *llmStep) callFitted(ctx context.Context, row *Row, d *conversation, req model.Request, b memory.Budget) (*model.Response, error) {
	resp, err := s.call(ctx, row, d, req)
	if d.turn == nil {
		return resp, err
	}
	for first := err; err != nil; {
		rejected, ok := errors.AsType[*model.Error](err)
		if !ok || !rejected.TooLong && (!rejected.Opaque || !d.turn.IsLargest()) {
			break
		}
		suspected := !rejected.TooLong
		window, failed := s.shorten(ctx, row, d, b, rejected)
		switch {
		case failed != nil && suspected:
			return nil, first
		case failed != nil:
			return nil, fmt.Errorf("%w; %w", rejected, failed)
		}
		req.Messages = window
		s.require(ctx, &req)
		if resp, err = s.call(ctx, row, d, req); suspected && err != nil {
			if again, ok := errors.AsType[*model.Error](err); ok && again.Opaque {
				err = first // the same, of the whole request
			}
		}
	}
	if err == nil && !s.model.Info().Mock && resp.Model == "" {
		counted := resp.Usage.Input
		if resp.Usage.Estimated {
			counted = 0
		}
		d.turn.Calibrate(counted)
	}
	return resp, err
}

// reportRepairs reports, once for each session, that tool calls of the conversation have no
// results, or results no calls.
func (s *llmStep) reportRepairs(ctx context.Context, row *Row, d *conversation) {
	if d.turn == nil || d.repairs {
		return
	}
	if n, isNew := d.turn.Repairs(); isNew {
		d.repairs = true
		Report(ctx, s.event(row, Event{Kind: EventRepaired, Text: fmt.Sprintf("the conversation has tool calls without results, or results without calls: %s in the request", textfmt.Count(n, "repair"))}))
	}
}

// shorten returns the messages of a request that follows a rejected one: without the oldest
// rounds.
func (s *llmStep) shorten(ctx context.Context, row *Row, d *conversation, b memory.Budget, rejected *model.Error) ([]chat.Message, error) {
	window, left, ok, err := d.turn.FitRejected(b, memory.TooLong{Requested: rejected.Requested, Limit: rejected.Limit, Suspected: !rejected.TooLong})
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, errors.New("only the newest round was sent, which is never left out: shorten the question, the results of tools or the system message")
	}
	why := "as too long"
	if !rejected.TooLong {
		why = fmt.Sprintf("without a reason (HTTP %d), and none as large was accepted before", rejected.Status)
	}
	Report(ctx, s.event(row, Event{Kind: EventShortened, Text: fmt.Sprintf("the provider rejected the request %s; it is sent again without the oldest %s", why, textfmt.Count(left, "message"))}))
	return s.forModel(ctx, d.withExtra(window)), nil
}
