package wire

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/qtype-dev/qtype/internal/catalogue"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec/chat"
)

// Protocol is the part of a client that depends on the provider: the encoding of requests
// and responses. It is safe for concurrent use.
type Protocol interface {
	// Request encodes a request, whose tools have schemas of objects and whose messages have no items
	// of other origins (see ForOrigin) and plain calls (see WithPlainCalls). Its errors say what cannot be encoded.
	Request(req model.Request) (Call, error)
	// Answer returns a reader for one response.
	Answer() ResponseReader
}

// ResponseReader builds a response from a body or from the records of a stream.
type ResponseReader interface {
	// Whole reads a response that is not streamed.
	Whole(raw []byte) error
	// Chunk reads a record and returns its deltas.
	Chunk(record []byte) ([]model.Event, error)
	// Complete reports whether the record was the last one or, at the end of the stream,
	// whether the answer is complete without a closing record.
	Complete(atEnd bool) bool
	// Response returns the answer, once it is complete.
	Response() (*model.Response, error)
}

// Chat is a chat model of one server. It is safe for concurrent use.
type Chat struct {
	server   *Server
	protocol Protocol
	origin   *chat.Origin // of the messages that the model makes
	refused  *refusals
	streams  *atomic.Bool // whether the server has refused a request whose answer is not streamed
	calls    *atomic.Bool // whether the server has refused a request that forbids calls of its tools
	forced   *atomic.Bool // whether the server has refused a request that forces a call
	schemas  *schemaCache
	paused   bool // whether requests may end with an answer, which the model continues
}

// NewChat makes a Chat from a server and its protocol. Its name, such as responses, is the API of
// the origin of messages: items are sent only to the protocol, server and model that made them.
func NewChat(s *Server, p Protocol, name string) Chat {
	return Chat{server: s, protocol: p, refused: &refusals{}, schemas: &schemaCache{}, streams: new(atomic.Bool), calls: new(atomic.Bool), forced: new(atomic.Bool), origin: &chat.Origin{API: name, Server: s.Info.Endpoint, Model: s.Info.Name}}
}

// Continuing returns a Chat whose requests may end with an answer that the provider has paused. Its
// protocol continues that answer.
func (c Chat) Continuing(p Protocol) Chat {
	c.paused, c.protocol = true, p
	return c
}

// Info describes the model.
func (c Chat) Info() model.Info { return c.server.Info }

// Generate sends one request; model.WithRetry retries. Some models only stream: their
// answers are streamed, without deltas, if the caller wants none.
func (c Chat) Generate(ctx context.Context, req model.Request) iter.Seq2[model.Event, error] {
	return Generate(ctx, func(ctx context.Context, emit Emit) (*model.Response, error) {
		req = withPassages(req, c.protocol)
		rules := c.server.form.Turns
		rules.UserLast = rules.UserLast && !c.paused
		req.Messages = rules.Order(WithPlainCalls(ForOrigin(req.Messages, c.origin), req.Tools))
		req.Tools = c.schemas.complete(req.Tools)
		return c.withChoice(ctx, req, emit)
	})
}

// withChoice sends a request. If the server cannot forbid calls of tools, one that must not call them is sent
// without them; if it cannot force a call, one that must call a tool is sent without that demand.
func (c Chat) withChoice(ctx context.Context, req model.Request, emit Emit) (*model.Response, error) {
	req.NoCalls = req.NoCalls && len(req.Tools) > 0
	req.MustCall = req.MustCall && !req.NoCalls
	if !req.NoCalls && !req.MustCall {
		return c.withReasoning(ctx, req, emit)
	}
	refused, dropped := c.forced, "the demand to call a tool, because the provider cannot force a call"
	takes := c.takesChoice("required", "any")
	if req.NoCalls {
		refused, dropped = c.calls, "the descriptions of tools, because the provider cannot forbid to call them"
		takes = c.server.form.Forbids && c.takesChoice("none")
	}
	if takes && !refused.Load() {
		answer, err := c.withReasoning(ctx, req, emit)
		if !refusesChoice(err) {
			return answer, err
		}
		refused.Store(true)
	}
	if req.NoCalls {
		req.Tools = nil
	}
	req.NoCalls, req.MustCall = false, false
	answer, err := c.withReasoning(ctx, req, emit)
	noteDropped(answer, err, dropped)
	return answer, err
}

// noteDropped notes what a request was sent without: in its answer, or in its error, since a fallback may
// answer.
func noteDropped(answer *model.Response, err error, what string) {
	if answer != nil {
		answer.Dropped = append(answer.Dropped, what)
	} else if failure, ok := errors.AsType[*model.Error](err); ok {
		failure.Dropped = append(failure.Dropped, what)
	}
}

// takesChoice reports whether the model may take one of these words as the choice of a tool.
func (c Chat) takesChoice(words ...string) bool {
	known := c.server.Info.Known
	if known == nil {
		return true
	}
	isOne := func(word string) bool { return slices.Contains(words, word) }
	refuses := slices.ContainsFunc(known.Rejected, func(r catalogue.Rejection) bool {
		return r.When == catalogue.Always && slices.Contains(r.Parameters, "tool_choice") && slices.ContainsFunc(r.Values, isOne)
	})
	list := known.Tools.ToolChoices
	return !refuses && known.Tools.ToolChoice != catalogue.No && (len(list) == 0 || slices.ContainsFunc(list, isOne))
}

// refusesChoice reports whether a server refused the parameter that forbids or forces calls. A wrong guess costs
// one request.
func refusesChoice(err error) bool {
	failure, ok := errors.AsType[*model.Error](err)
	if !ok || failure.Status != http.StatusBadRequest && failure.Status != http.StatusUnprocessableEntity {
		return false
	}
	text := strings.ToLower(failure.Message)
	return strings.Contains(text, "tool_choice") || strings.Contains(text, "tool choice") || strings.Contains(text, "toolchoice")
}

// whole sends a request with all that it has, except reasoning that is bound to another prefix.
func (c Chat) whole(ctx context.Context, req model.Request, emit Emit) (*model.Response, error) {
	if known := c.server.Info.Known; known != nil && known.Reasoning.BoundToPrefix {
		return c.bound(ctx, req, emit)
	}
	return c.send(ctx, req, emit)
}

// send sends a request, streamed if the caller or the model wants that. A caller who wants deltas gets an
// answer that comes whole as one of each kind.
func (c Chat) send(ctx context.Context, req model.Request, emit Emit) (*model.Response, error) {
	if !req.Stream {
		emit = func(model.Event) bool { return true }
	}
	req.Stream = c.streamed(req.Stream)
	response, err := c.request(ctx, req, emit)
	if req.Stream || !refusesWhole(err) {
		return response, err
	}
	req.Stream = true
	if response, err = c.request(ctx, req, emit); err == nil {
		c.streams.Store(true)
	}
	return response, err
}

// streamed reports whether to request a stream. wanted is whether the caller wants deltas.
func (c Chat) streamed(wanted bool) bool {
	if known := c.server.Info.Known; known != nil && known.Streaming != "" {
		return known.Streaming == catalogue.StreamsAlways
	}
	return wanted || c.streams.Load()
}

// emitWhole emits an answer that came without deltas.
func emitWhole(m *chat.Message, emit Emit) {
	for _, b := range m.Blocks {
		switch {
		case b.Text == "":
		case b.Type == chat.ReasoningType:
			emit(model.Event{Reasoning: b.Text})
		case b.Type == chat.CommentaryType:
			emit(model.Event{Commentary: b.Text})
		}
	}
	if text := m.Text(); text != "" {
		emit(model.Event{Text: text})
	}
}

// streamOnly are words of servers that refuse a request because its answer is not streamed.
var streamOnly = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)non-?stream|only supports? (the )?stream|stream(ing)? (mode )?(is )?(required|only|mandatory)|(must|requires?|needs?|set|use|enable)\b[^.]{0,30}\bstream(ing)?\b|\bstream\b[^.]{0,20}\bmust be\b`)
})

// refusesWhole reports whether a server refused a request because its answer is not
// streamed. A wrong guess costs one request.
func refusesWhole(err error) bool {
	failure, ok := errors.AsType[*model.Error](err)
	return ok && (failure.Status == http.StatusBadRequest || failure.Status == http.StatusUnprocessableEntity) && streamOnly().MatchString(failure.Message)
}

// request sends one request.
func (c Chat) request(ctx context.Context, req model.Request, emit Emit) (*model.Response, error) {
	call, err := c.protocol.Request(req)
	if err != nil {
		return nil, c.server.requestError(err)
	}
	answer := call.Answer
	if answer == nil {
		answer = c.protocol.Answer()
	}
	var wait time.Duration
	whole := false
	err = c.server.ask(ctx, call, func(resp *http.Response) error {
		wait = resetDelay(resp.Header, time.Now())
		if req.Stream && !c.server.inOnePiece(resp) || isEventStream(resp) {
			return c.server.stream(ctx, resp, answer, emit)
		}
		whole = true
		return c.server.whole(ctx, resp, answer.Whole)
	})
	var response *model.Response
	if err == nil {
		if response, err = answer.Response(); err != nil {
			response, err = nil, c.server.emptyAnswer(err)
		}
	}
	if call.Dropped != "" {
		noteDropped(response, err, call.Dropped)
	}
	if err != nil {
		return nil, err
	}
	if whole {
		emitWhole(&response.Message, emit)
	}
	response.NextAfter = wait
	if hasItems(&response.Message) {
		response.Message.Origin = c.origin
	}
	return response, Unfinished(c.server.Info, response)
}

// isEventStream reports whether a server sends events: some stream every answer.
func isEventStream(resp *http.Response) bool {
	return mediaTypeOf(resp) == "text/event-stream" && !beginsWithBrace(resp)
}

// Emit passes a delta to the reader and reports whether the reader wants more.
type Emit func(model.Event) bool

// Generate returns the sequence of one call: ask makes the call and emits deltas. Its
// context is canceled when the reader stops; its result is then ignored.
func Generate(ctx context.Context, ask func(context.Context, Emit) (*model.Response, error)) iter.Seq2[model.Event, error] {
	return func(yield func(model.Event, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		stopped := false
		answer, err := ask(ctx, func(ev model.Event) bool {
			stopped = stopped || !yield(ev, nil)
			return !stopped
		})
		switch {
		case stopped:
		case err != nil:
			yield(model.Event{}, err)
		default:
			yield(model.Event{Response: answer}, nil)
		}
	}
}

// The tags of reasoning in the text of an answer.
const (
	thinkBegin = "<think>"
	thinkEnd   = "</think>"
)

// ThinkSplitter separates reasoning from the text of an answer where a server leaves it in
// the text: between <think> and </think> at its beginning. Tags elsewhere are text. The
// zero value is ready to use.
type ThinkSplitter struct {
	state splitState
	held  string // the end of what came, which may be the beginning of a tag
}

// splitState is the part of an answer that comes next.
type splitState int

const (
	beforeAnswer splitState = iota // the opening tag, or text
	inReasoning
	afterReasoning // spaces after the closing tag
	inText
)

// Add takes the next part of the answer and returns what is known to be text or reasoning.
func (s *ThinkSplitter) Add(part string) (text, reasoning string) {
	rest := s.held + part
	s.held = ""
	if s.state == beforeAnswer {
		trimmed := strings.TrimLeft(rest, " \t\r\n")
		switch {
		case strings.HasPrefix(trimmed, thinkBegin):
			s.state, rest = inReasoning, trimmed[len(thinkBegin):]
		case strings.HasPrefix(thinkBegin, trimmed):
			s.held = rest
			return "", ""
		default:
			s.state = inText
		}
	}
	if s.state == inReasoning {
		thought, after, found := strings.Cut(rest, thinkEnd)
		if !found {
			open := tagStart(rest, thinkEnd)
			s.held = rest[open:]
			return "", rest[:open]
		}
		s.state, reasoning, rest = afterReasoning, thought, after
	}
	if s.state == afterReasoning {
		if rest = strings.TrimLeft(rest, " \t\r\n"); rest != "" {
			s.state = inText
		}
	}
	return rest, reasoning
}

// End returns what was held back, at the end of the answer.
func (s *ThinkSplitter) End() (text, reasoning string) {
	held := s.held
	s.held = ""
	if s.state == inReasoning {
		return "", held
	}
	if s.state == beforeAnswer && held != "" {
		s.state = inText
	}
	return held, ""
}

// tagStart returns where a tag begins of which a text has only the beginning, the length of
// the text for none.
func tagStart(text, tag string) int {
	for n := min(len(tag)-1, len(text)); n > 0; n-- {
		if strings.HasSuffix(text, tag[:n]) {
			return len(text) - n
		}
	}
	return len(text)
}
