package server

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"github.com/qtype-dev/qtype/internal/server/access"
	"github.com/qtype-dev/qtype/internal/server/host"
	"github.com/qtype-dev/qtype/internal/server/problem"
	"github.com/qtype-dev/qtype/internal/server/runs"
	"github.com/qtype-dev/qtype/internal/server/schema"
	"github.com/qtype-dev/qtype/internal/server/sse"
	"github.com/qtype-dev/qtype/internal/server/uistream"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec/chat"
	"github.com/qtype-dev/qtype/spec/value"
)

// stream answers POST /flows/{flow}/stream.
func (s *Server) stream(w http.ResponseWriter, r *http.Request) {
	c, req, err := s.readStream(w, r)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	if req.chat != nil && req.chat.Last().Role == "assistant" {
		s.continueStream(w, r, c, req.chat)
		return
	}
	run, err := s.beginStream(r.Context(), c, req)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	s.sendChunks(w, r, run, c, 0)
}

// beginStream starts the run of a stream.
func (s *Server) beginStream(ctx context.Context, c *call, req *streamRequest) (*runs.Run, error) {
	start := s.start(c)
	start.Events, start.Detached, start.Durable = true, c.flow.Finishes(), c.flow.MayWait()
	start.History, start.Kept = req.history, req.kept
	if c.named {
		if err := s.Host().Supersede(ctx, c.conversation()); err != nil {
			return nil, err
		}
	}
	return s.begin(ctx, c, start)
}

// streamRequest is what a request for a stream adds to a call.
type streamRequest struct {
	chat    *uistream.Request // nil for a flow without a conversation
	history []chat.Message    // for a flow without a memory: the conversation before
	kept    []runtime.Effect  // see runs.Start
}

// readStream reads and checks a request for a stream.
func (s *Server) readStream(w http.ResponseWriter, r *http.Request) (*call, *streamRequest, error) {
	app := s.current.Load()
	flow, err := app.Flow(access.PrincipalOf(r.Context()), r.PathValue("flow"))
	if err == nil {
		err = host.RequireJSON(r)
	}
	if err != nil {
		return nil, nil, err
	}
	body, err := host.ReadBody(w, r)
	if err != nil {
		return nil, nil, err
	}
	c := &call{app: app.Application, flow: flow, principal: access.PrincipalOf(r.Context())}
	if c.session, err = sessionID(r); err != nil {
		return nil, nil, err
	}
	c.named = c.session != ""
	if flow.Conversational() {
		return s.readChat(c, r, body)
	}
	if c.session == "" {
		c.session = host.NewSession()
	}
	return c, &streamRequest{}, s.readCompletion(c, r, body)
}

// readCompletion reads the body of a flow that answers one text: {"prompt": text}, or
// the inputs by their names.
func (s *Server) readCompletion(c *call, r *http.Request, body []byte) error {
	parsed, err := schema.ParseBody(body)
	if err != nil {
		return err
	}
	if record, ok := parsed.(*value.Record); ok && c.flow.Interface() == "Complete" {
		parsed = c.flow.Prompt(record)
	}
	if err := s.readRows(c, r, value.JSON(parsed)); err != nil {
		return err
	}
	return s.checkBatch(c, false)
}

// readChat reads the body of a conversational flow.
func (s *Server) readChat(c *call, r *http.Request, body []byte) (*call, *streamRequest, error) {
	req, err := uistream.Parse(body)
	if err != nil {
		return nil, nil, err
	}
	if req.ID != "" {
		if err := host.CheckSession("/id", req.ID); err != nil {
			return nil, nil, err
		}
		c.session, c.named = req.ID, true
	}
	if c.session == "" {
		c.session = host.NewSession()
	}
	out := &streamRequest{chat: req}
	if last := req.Last(); last != nil && last.Role == "assistant" {
		return c, out, nil
	}
	newest, earlier, err := req.Conversation(s.fetcher(r.Context()))
	if err != nil {
		return nil, nil, err
	}
	if err := s.readChatInputs(c, r, req, body, newest); err != nil {
		return nil, nil, err
	}
	if len(runtime.MemoryIDs(c.flow.Spec)) == 0 {
		out.history = earlier
		return c, out, nil
	}
	if shown := req.Shown(earlier); c.named && shown != nil {
		out.kept, err = s.Host().Rewind(r.Context(), c.conversation(), *shown)
	}
	return c, out, err
}

// readChatInputs sets the inputs of the row: the message, and others that the client
// sends under inputs, or next to its messages.
func (s *Server) readChatInputs(c *call, r *http.Request, req *uistream.Request, body []byte, newest chat.Message) error {
	given := map[string]json.RawMessage{}
	if len(c.flow.Inputs) > 1 {
		_ = json.Unmarshal(body, &given) // it was parsed before
	}
	for name, raw := range req.Inputs {
		given[name] = raw
	}
	rest := map[string]json.RawMessage{}
	for _, v := range c.flow.Inputs {
		if raw, ok := given[v.ID]; ok && v != c.flow.Message {
			rest[v.ID] = raw
		}
	}
	record, err := host.RecordOf(rest)
	if err != nil {
		return problem.New(http.StatusUnprocessableEntity, "invalid_input", "%s", err)
	}
	have, err := s.inputs.Known(r.Context(), c.flow, c.stored())
	if err != nil {
		return err
	}
	record = record.With(c.flow.Message.ID, newest)
	values, wrong := c.flow.Decode(record, "/inputs", have.Has)
	if len(wrong) > 0 {
		return schema.Invalid(wrong)
	}
	c.rows = []map[string]any{values}
	return s.inputs.Apply(r.Context(), have, c.rows...)
}

// fetcher returns what fetches files that clients name by their address: nothing, unless
// the server has an allow list.
func (s *Server) fetcher(ctx context.Context) uistream.Fetcher {
	return func(url string) ([]byte, string, error) {
		var policy *access.AttachmentPolicy
		if s.opts.Access != nil {
			policy = s.opts.Access.Attachments()
		}
		return policy.Fetch(ctx, url)
	}
}

// running returns the active run of a chat, nil if there is none.
func (s *Server) running(c *call) *runs.Run {
	return s.runs.Running(c.flow.ID(), c.principal.StoredSession(c.session))
}

// continueStream passes the answers of a client to the run that waits for them, and
// streams what the run does with them.
func (s *Server) continueStream(w http.ResponseWriter, r *http.Request, c *call, req *uistream.Request) {
	run, err := s.waitingRun(r.Context(), c, req)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	seen := run.Count()
	approvals, results := req.Answers()
	given := 0
	for _, pending := range run.State().Pending {
		a := answerTo(pending, approvals, results)
		if a == nil {
			continue
		}
		if err := host.AnswerProblem(s.runs.Answer(r.Context(), run, a)); err != nil {
			s.fail(w, r, err)
			return
		}
		given++
	}
	if given == 0 {
		s.fail(w, r, problem.New(http.StatusUnprocessableEntity, "no_answer", "the message answers none of the requests that run %s waits for", run.ID))
		return
	}
	s.sendChunks(w, r, run, c, seen)
}

// answerTo finds the answer to a request.
func answerTo(pending *runs.Request, approvals, results []*runs.Answer) *runs.Answer {
	if pending.Kind == runs.Approval {
		for _, a := range approvals {
			if a.ID == pending.ID {
				return a
			}
		}
		return nil
	}
	for _, a := range results {
		if a.ID == pending.Call || pending.Call == "" && strings.HasPrefix(a.ID, "run_") {
			found := *a
			found.ID = pending.ID
			return &found
		}
	}
	return nil
}

// waitingRun returns the run of a chat that waits for its client: that of this server, or
// that of another one which has written the message with the answers. The latter can be followed
// as far as its events are stored.
func (s *Server) waitingRun(ctx context.Context, c *call, req *uistream.Request) (*runs.Run, error) {
	session := c.principal.StoredSession(c.session)
	if run := s.runs.WaitingIn(c.flow.ID(), session); run != nil {
		return run, nil
	}
	run, err := s.runs.AttachWaiting(ctx, c.app.App, c.principal.Name, uistream.RunOf(req.Last().ID))
	if err != nil {
		return nil, err
	}
	if run == nil || run.Flow.ID != c.flow.ID() || run.Session != session {
		return nil, problem.New(http.StatusConflict, "no_waiting_run", "no run of chat %q waits for an answer", c.session)
	}
	return run, nil
}

// resumeStream answers GET /flows/{flow}/stream/{chat}: the rest of the stream that is
// running, or of that which Last-Event-ID names.
func (s *Server) resumeStream(w http.ResponseWriter, r *http.Request) {
	app := s.current.Load()
	flow, err := app.Flow(access.PrincipalOf(r.Context()), r.PathValue("flow"))
	if err != nil {
		s.fail(w, r, err)
		return
	}
	c := &call{app: app.Application, flow: flow, principal: access.PrincipalOf(r.Context()), session: r.PathValue("chat")}
	run, frames := s.running(c), 0
	if id, n, ok := strings.Cut(r.Header.Get("Last-Event-ID"), ":"); ok {
		if frames, err = strconv.Atoi(n); err != nil || frames < 0 {
			s.fail(w, r, problem.New(http.StatusBadRequest, "invalid_header", "Last-Event-ID is not of this server"))
			return
		}
		if run, err = s.runs.Find(r.Context(), app.App, c.principal.Name, id); err != nil {
			s.fail(w, r, err)
			return
		}
		if run != nil && (run.Flow.ID != flow.ID() || run.Session != c.stored() || run.Remote() && !run.State().Status.Ended()) {
			run = nil // the chunks of a run of another server are there
		}
	}
	if run == nil {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	s.sendFrames(w, r, run, c, frames)
}

// sendFrames writes the chunks of a run after the first frames.
func (s *Server) sendFrames(w http.ResponseWriter, r *http.Request, run *runs.Run, c *call, frames int) {
	enc := uistream.NewEncoder(c.flow, run.ID, nil)
	enc.Skip(frames)
	e, err := s.openChunks(w, r, run, c)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	defer e.Close()
	followChat(r.Context(), e, run, 0, enc)
}

// sendChunks writes the events of a run after the first n as chunks.
func (s *Server) sendChunks(w http.ResponseWriter, r *http.Request, run *runs.Run, c *call, n int) {
	enc := uistream.NewEncoder(c.flow, run.ID, nil)
	e, err := s.openChunks(w, r, run, c)
	if err != nil {
		run.Disconnected()
		s.fail(w, r, err)
		return
	}
	defer e.Close()
	if n > 0 {
		events := run.Events(n)
		for i := range events {
			_ = enc.Append(nil, &events[i])
		}
		e.Append(enc.Continue(nil))
	}
	followChat(r.Context(), e, run, n, enc)
}

// followChat writes the events of a run after the first n for one client of its chat.
// When the last client has gone, the run ends as its flow declares.
func followChat(ctx context.Context, e *sse.Stream, run *runs.Run, n int, enc sse.Encoder) {
	leave := run.Watch()
	err := e.Follow(ctx, run, n, enc)
	leave()
	if err != nil {
		run.Disconnected()
	}
}

func (s *Server) openChunks(w http.ResponseWriter, r *http.Request, run *runs.Run, c *call) (*sse.Stream, error) {
	e, err := sse.Open(w, r, s.opts.Heartbeat)
	if err != nil {
		return nil, err
	}
	w.Header().Set(uistream.Header, uistream.HeaderVersion)
	w.Header().Set("X-Run-Id", run.ID)
	w.Header().Set("X-Session-Id", c.session)
	return e, nil
}
