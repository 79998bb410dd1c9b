package openai

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/qtype-dev/qtype/internal/server/problem"
	"github.com/qtype-dev/qtype/internal/server/runs"
	"github.com/qtype-dev/qtype/internal/server/sse"
	"github.com/qtype-dev/qtype/spec/chat"
)

// responseParams are the parameters of responses that are read.
var responseParams = []string{"model", "input", "instructions", "tools", "tool_choice", "parallel_tool_calls", "stream", "metadata", "inputs", "text",
	"store", "previous_response_id", "conversation"}

// responses answers POST /v1/responses.
func (a *api) responses(w http.ResponseWriter, r *request) error {
	t, out, err := a.readResponse(r)
	if err != nil {
		return err
	}
	b, err := a.begin(r.Context(), t)
	if err != nil {
		return err
	}
	if err := a.follow(r.Context(), t, b, out); err != nil {
		b.run.Disconnected()
		return err
	}
	if t.stream {
		return a.respondStream(w, t, b, out)
	}
	return a.respond(w, t, b, out)
}

// readResponse reads a request.
func (a *api) readResponse(r *request) (*turn, *response, error) {
	var err error
	t := &turn{request: r}
	if t.flow, err = a.flow(r); err != nil {
		return nil, nil, err
	}
	if t.ignored, err = r.params.check(responseRules, responseParams...); err != nil {
		return nil, nil, err
	}
	if err = t.readCommon(false); err != nil {
		return nil, nil, err
	}
	var text struct {
		Format json.RawMessage `json:"format"`
	}
	if err = t.params.decode("text", &text); err != nil {
		return nil, nil, err
	}
	if err = t.asked.readForm("text/format", text.Format); err != nil {
		return nil, nil, err
	}
	if err = a.findRepeated(t); err != nil {
		return nil, nil, err
	}
	out := newResponse(t)
	if err = a.readSession(t, out); err != nil {
		return nil, nil, err
	}
	if err = t.readInput(a.fetcher(r.Context()), out.Previous != nil || t.session != ""); err != nil {
		return nil, nil, err
	}
	return t, out, nil
}

// readSession finds the session of a response: that of the response before, or the one
// that the client names; otherwise a response that is stored begins one.
func (a *api) readSession(t *turn, out *response) error {
	store := true
	if err := t.params.decode("store", &store); err != nil {
		return err
	}
	if err := t.params.decode("previous_response_id", &out.Previous); err != nil {
		return err
	}
	conversation, err := t.params.conversation()
	switch {
	case err != nil:
		return err
	case conversation != "" && out.Previous != nil:
		return bad("/conversation", "invalid_value", "it is not allowed with previous_response_id")
	case conversation != "":
		t.session = conversation
		out.Conversation = &conversationBody{conversation}
	case out.Previous != nil:
		if !t.hasMemory() {
			return bad("/previous_response_id", "unsupported_value", "flow %s has no memory: send the whole conversation as input", t.flow.ID())
		}
		return a.readPrevious(t, out, store)
	case t.session == "" && store && t.hasMemory():
		t.session, t.imports, t.begins = "resp-"+rand.Text(), true, true
	}
	out.Store = t.session != "" && store && t.hasMemory()
	return nil
}

// readPrevious sets the session to that of the response before.
func (a *api) readPrevious(t *turn, out *response, store bool) error {
	session, ok := sessionOf(*out.Previous)
	if ok {
		newest, err := a.newestResponse(t.Context(), t, session)
		if err != nil {
			return err
		}
		switch {
		case newest == *out.Previous, newest != "" && t.repeated != nil:
			t.session, t.imports, out.Store = session, true, true
			if !store {
				return bad("/store", "unsupported_value", "a response after previous_response_id is stored in its session")
			}
			return nil
		case newest != "":
			return bad("/previous_response_id", "previous_response_not_newest",
				"the newest response of the conversation is %s; to continue from another one, fork its session and name the fork as conversation", newest)
		}
	}
	return bad("/previous_response_id", "previous_response_not_found", "there is no stored response with the id %q", *out.Previous)
}

// conversation returns the parameter conversation, empty for none.
func (p params) conversation() (string, error) {
	var id string
	if !p.has("conversation") {
		return "", nil
	}
	if json.Unmarshal(p["conversation"], &id) != nil {
		var in conversationBody
		if err := p.decode("conversation", &in); err != nil {
			return "", err
		}
		id = in.ID
	}
	return id, checkSession("/conversation", id)
}

// conversationBody names a session.
type conversationBody struct {
	ID string `json:"id"`
}

// follow sets what the response refers to: its id has the session, so that the next
// request finds it.
func (a *api) follow(ctx context.Context, t *turn, b *began, out *response) error {
	if out.run = b.run.ID; len(t.conversation.results) > 0 && out.Previous == nil {
		// The run began in the session of an earlier response, or without one.
		session, _ := t.principal.ClientSession(b.run.Session)
		newest, err := a.newestResponse(ctx, t, session)
		if err != nil {
			return err
		}
		if t.session = ""; newest != "" {
			t.session = session
		}
		out.Store = newest != ""
	}
	unique := rand.Text()
	if b.run.ID == t.runID() {
		unique = hash(b.run.ID) // the same for a repeated request
	}
	out.ID = responseID(t.session, out.Store, unique)
	if out.Store {
		out.save = func() error { return a.saveResponse(context.WithoutCancel(ctx), t, out) }
	}
	return nil
}

// readInput reads the parameters input and instructions.
func (t *turn) readInput(fetch fetchFunc, open bool) error {
	messages, err := t.params.input(fetch)
	if err != nil {
		return err
	}
	if t.conversation, err = newConversation("/input", messages, open); err != nil {
		return err
	}
	var instructions string
	if err := t.params.decode("instructions", &instructions); err != nil {
		return err
	}
	if instructions != "" {
		t.conversation.instructions = append([]string{instructions}, t.conversation.instructions...)
	}
	if t.imports && t.conversation.newest != nil {
		for _, m := range t.conversation.earlier {
			if m.Role == chat.Tool && len(t.conversation.calls) == 0 {
				return bad("/input", "invalid_value", "results of tools continue the run that waits for them: send other messages in the next request")
			}
		}
	}
	return nil
}

// newResponse returns a response to a request.
func newResponse(t *turn) *response {
	r := &response{Object: "response", Created: time.Now().Unix(), Status: "in_progress", Model: t.flow.ID(), Output: []any{}, Parallel: !t.single,
		Tools: json.RawMessage("[]"), Choice: json.RawMessage(`"auto"`), Truncation: "disabled", Metadata: map[string]string{}, Instructions: json.RawMessage("null")}
	r.Text.Format = json.RawMessage(`{"type":"text"}`)
	if len(t.asked.Schema) > 0 {
		var text struct {
			Format json.RawMessage `json:"format"`
		}
		_ = t.params.decode("text", &text) // it was read before
		r.Text.Format = text.Format
	}
	for name, to := range map[string]*json.RawMessage{"tools": &r.Tools, "tool_choice": &r.Choice, "instructions": &r.Instructions} {
		if t.params.has(name) {
			*to = t.params[name]
		}
	}
	if t.metadata != nil {
		r.Metadata = t.metadata
	}
	return r
}

// input returns the messages of the parameter input.
func (p params) input(fetch fetchFunc) ([]*message, error) {
	if !p.has("input") {
		return nil, bad("/input", "missing_required_parameter", "the parameter is missing: expected a string or an array of items")
	}
	var text string
	if json.Unmarshal(p["input"], &text) == nil {
		return []*message{{Message: chat.Text(chat.User, text), pointer: "/input"}}, nil
	}
	var list []json.RawMessage
	if err := p.decode("input", &list); err != nil {
		return nil, err
	}
	var messages []*message
	for i, raw := range list {
		m, err := parseItem(pointerTo("/input", i), raw, fetch)
		if err != nil {
			return nil, err
		}
		last := len(messages) - 1
		switch {
		case m == nil:
		case m.HasCalls() && !m.approval && last >= 0 && messages[last].Role == chat.Assistant: // calls are of the message before
			messages[last].Message = messages[last].With(m.Calls()...)
		default:
			messages = append(messages, m)
		}
	}
	return messages, nil
}

// item is an item of the input of responses.
type item struct {
	ID        string          `json:"id"`
	Type      string          `json:"type"`
	CallID    string          `json:"call_id"`
	Name      string          `json:"name"`
	Arguments string          `json:"arguments"`
	Output    json.RawMessage `json:"output"`
	Approval  string          `json:"approval_request_id"`
	Approve   *bool           `json:"approve"`
	Reason    string          `json:"reason"`
	Phase     string          `json:"phase"`
}

// approvalPrefix begins the ids of requests for approvals.
const approvalPrefix = "mcpr_"

// parseItem returns the message of an item; nil for items that models do not receive
// again.
func parseItem(pointer string, raw json.RawMessage, fetch fetchFunc) (*message, error) {
	var in item
	if err := decodeAt(pointer, raw, &in); err != nil {
		return nil, err
	}
	m := &message{Message: chat.Message{ID: chat.NewID(), Role: chat.Tool}, pointer: pointer}
	var err error
	switch in.Type {
	case "", "message":
		if in.Phase == commentaryPhase {
			return nil, nil
		}
		return parseMessage(pointer, raw, fetch)
	case "function_call":
		m.Role, m.Blocks = chat.Assistant, []chat.Block{chat.CallBlock(chat.ToolCall{ID: in.CallID, Name: in.Name, Arguments: in.Arguments})}
	case "function_call_output":
		m.ToolCallID = in.CallID
		m.Blocks, err = parseContent(pointer+"/output", in.Output, fetch)
	case "mcp_approval_request":
		id := callPrefix + strings.TrimPrefix(in.ID, approvalPrefix)
		m.Role, m.approval = chat.Assistant, true
		m.Blocks = []chat.Block{chat.CallBlock(chat.ToolCall{ID: id, Name: in.Name, Arguments: in.Arguments})}
	case "mcp_approval_response":
		if in.Approve == nil {
			return nil, bad(pointer+"/approve", "missing_required_parameter", "the parameter is missing: expected true or false")
		}
		m.ToolCallID = callPrefix + strings.TrimPrefix(in.Approval, approvalPrefix)
		m.approved, m.Blocks = in.Approve, []chat.Block{{Type: "text", Text: in.Reason}}
	case "reasoning", "image_generation_call":
		return nil, nil
	default:
		return nil, bad(pointer+"/type", "unsupported_value", "items of type %q are not supported", in.Type)
	}
	return m, err
}

// answer is a response that is written as a whole.
type answer interface {
	sink
	// failed returns the problem that ended the answer, nil for none.
	failed() *problem.Problem
	// body returns the response.
	body() any
}

// respond writes the whole answer.
func (a *api) respond(w http.ResponseWriter, t *turn, b *began, out answer) error {
	r := newReader(out, t, b, a.Failure)
	ctx := t.Context()
	for n := 0; ; {
		events, ended, err := b.run.Follow(ctx, n, nil)
		if err != nil {
			b.run.Disconnected()
			return err
		}
		for i := range events {
			r.read(&events[i])
		}
		n += len(events)
		if r.waiting() && b.run.State().Status == runs.Waiting {
			r.stop()
			break
		}
		if ended || r.ended {
			break
		}
	}
	if p := out.failed(); p != nil {
		return p
	}
	setHeaders(w, t, b)
	return writeJSON(w, out.body())
}

// setHeaders sets the headers of an answer.
func setHeaders(w http.ResponseWriter, t *turn, b *began) {
	h := w.Header()
	h.Set("X-Run-Id", b.run.ID)
	h.Set("X-Request-Id", b.run.ID)
	if t.session != "" {
		h.Set("X-Session-Id", t.session)
	}
	reportIgnored(w, t.ignored)
}

// encoder is a response that is written as server-sent events.
type encoder interface {
	sink
	// begin appends what precedes the answer, once.
	begin()
	// take returns the text that was appended, and forgets it.
	take() []byte
	// failed returns the problem that ended the answer, nil for none.
	failed() *problem.Problem
	// breaks reports that the connection must break, because the answer failed and its form has no end
	// for that.
	breaks() bool
	// empty reports that nothing of the answer was appended.
	empty() bool
}

// events adapts an encoder to streams.
type events struct {
	*reader
	out encoder
}

// Append appends what an event means.
func (e *events) Append(b []byte, ev *runs.Event) []byte {
	e.read(ev)
	return append(b, e.out.take()...)
}

// Waiting reports whether the response ends because the run waits for its client.
func (e *events) Waiting() bool { return e.waiting() }

// Pause appends the end of such a response.
func (e *events) Pause(b []byte) []byte {
	e.stop()
	return append(b, e.out.take()...)
}

// respondStream writes the answer as a stream. An answer that fails before its first part
// is an error with a status, as clients expect.
func (a *api) respondStream(w http.ResponseWriter, t *turn, b *began, out encoder) error {
	ctx := t.Context()
	enc := &events{reader: newReader(out, t, b, a.Failure), out: out}
	first, n, err := a.firstPart(ctx, b.run, enc)
	if err != nil {
		b.run.Disconnected()
		return err
	}
	if p := out.failed(); p != nil && out.empty() {
		return p
	}
	setHeaders(w, t, b)
	stream, err := sse.Open(w, t.Request, a.Heartbeat)
	if err != nil {
		b.run.Disconnected()
		return err
	}
	defer stream.Close()
	if len(first) == 0 {
		out.begin()
		first = out.take()
	}
	stream.Append(first)
	if err = stream.Flush(); err == nil && !enc.done() {
		err = stream.Follow(ctx, b.run, n, enc)
	}
	if err != nil {
		b.run.Disconnected()
	} else if out.breaks() {
		panic(http.ErrAbortHandler)
	}
	return nil // the response has begun
}

// done reports whether the response has ended.
func (e *events) done() bool { return e.ended || e.stopped }

// firstPart reads events until the first part of the answer, or until the time of a
// heartbeat. It returns the text of the parts and the number of events.
func (a *api) firstPart(ctx context.Context, run *runs.Run, enc *events) (text []byte, n int, err error) {
	timer := time.NewTimer(a.Heartbeat)
	defer timer.Stop()
	for {
		list, ended, err := run.Follow(ctx, n, timer.C)
		if err != nil {
			return nil, n, err
		}
		for i := range list {
			text = enc.Append(text, &list[i])
		}
		n += len(list)
		if enc.waiting() && run.State().Status == runs.Waiting {
			return enc.Pause(text), n, nil
		}
		if len(text) > 0 || len(list) == 0 || ended || enc.ended {
			return text, n, nil
		}
	}
}
