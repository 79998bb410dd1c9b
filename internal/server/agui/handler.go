package agui

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"github.com/qtype-dev/qtype/internal/server/access"
	"github.com/qtype-dev/qtype/internal/server/host"
	"github.com/qtype-dev/qtype/internal/server/problem"
	"github.com/qtype-dev/qtype/internal/server/runs"
	"github.com/qtype-dev/qtype/internal/server/schema"
	"github.com/qtype-dev/qtype/internal/server/sse"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec/chat"
	"github.com/qtype-dev/qtype/steps"
)

// Mount adds POST /flows/{flow}/agui.
func Mount(mux *http.ServeMux, h *host.Host) {
	mux.HandleFunc("POST /flows/{flow}/agui", func(w http.ResponseWriter, r *http.Request) {
		if err := serve(h, w, r); err != nil {
			h.Fail(w, r, err)
		}
	})
}

// call is a request to run a flow.
type call struct {
	*host.Host
	app       *host.Application
	flow      *schema.Flow
	principal access.Principal
	in        *Input
}

// stored returns the id under which the session of the call is stored.
func (c *call) stored() string { return c.principal.StoredSession(c.in.ThreadID) }

// conversation returns the session of the call.
func (c *call) conversation() host.Conversation {
	return host.Conversation{App: c.app.App, Flow: c.flow, Owner: c.principal.Name, Session: c.stored()}
}

// serve answers a request. After an error nothing was written.
func serve(h *host.Host, w http.ResponseWriter, r *http.Request) error {
	c, err := read(h, w, r)
	if err != nil {
		return err
	}
	if err := access.BeginStream(r.Context()); err != nil {
		return err
	}
	if given := c.in.answers(); given != nil {
		return c.resume(w, r, given)
	}
	return c.begin(w, r)
}

// read reads and checks a request.
func read(h *host.Host, w http.ResponseWriter, r *http.Request) (*call, error) {
	c := &call{Host: h, app: h.Current(), principal: access.PrincipalOf(r.Context())}
	var err error
	if c.flow, err = c.app.Flow(c.principal, r.PathValue("flow")); err != nil {
		return nil, err
	}
	if !c.flow.Conversational() || c.flow.Message == nil {
		return nil, problem.New(http.StatusNotFound, "not_conversational", "flow %s is not conversational", c.flow.ID())
	}
	if err := host.RequireJSON(r); err != nil {
		return nil, err
	}
	body, err := host.ReadBody(w, r)
	if err == nil {
		c.in, err = Parse(body)
	}
	return c, err
}

// begin starts a run with the newest message of the user.
func (c *call) begin(w http.ResponseWriter, r *http.Request) error {
	start, err := c.start(r)
	if err != nil {
		return err
	}
	if err := c.Supersede(r.Context(), c.conversation()); err != nil {
		return err
	}
	run, err := c.Runs.Begin(r.Context(), start)
	if err != nil {
		return err
	}
	return c.send(w, r, run, 0, NewEncoder(c.flow, run.ID, c.in))
}

// start returns the run that the request describes.
func (c *call) start(r *http.Request) (runs.Start, error) {
	s := runs.Start{App: c.app.App, Flow: c.flow.Spec, Owner: c.principal.Name, Session: c.stored(), Events: true, Detached: c.flow.Finishes()}
	newest, earlier, err := c.in.Conversation()
	if err != nil {
		return s, err
	}
	record, err := host.RecordOf(c.in.given(c.flow))
	if err != nil {
		return s, problem.New(http.StatusUnprocessableEntity, "invalid_input", "%s", err)
	}
	known, err := c.Inputs.Known(r.Context(), c.flow, c.stored())
	if err != nil {
		return s, err
	}
	row, wrong := c.flow.Decode(record.With(c.flow.Message.ID, newest), "/forwardedProps", known.Has)
	if len(wrong) > 0 {
		return s, schema.Invalid(wrong)
	}
	text, earlier := chat.SplitSystem(earlier)
	if text != "" {
		s.Instructions = &steps.Instructions{Text: text, Steps: c.flow.Answering()}
	}
	s.Rows, s.Tools = []map[string]any{row}, c.in.callerTools(c.flow)
	s.Durable = c.flow.MayWait() || len(s.Tools) > 0
	if err := c.Inputs.Apply(r.Context(), known, row); err != nil {
		return s, err
	}
	if len(runtime.MemoryIDs(c.flow.Spec)) == 0 {
		s.History = earlier
		return s, nil
	}
	if s.Kept, err = c.Rewind(r.Context(), c.conversation(), host.Shown{Users: chat.TextsOf(chat.User, earlier)}); err != nil {
		return s, err
	}
	return s, c.Record(r.Context(), c.flow.ID(), c.stored(), newest.Written())
}

// resume passes answers to the run of the thread that waits for them.
func (c *call) resume(w http.ResponseWriter, r *http.Request, given *answers) error {
	run, err := c.waitingRun(r.Context())
	if err != nil {
		return err
	}
	n := run.Paused()
	enc := NewEncoder(c.flow, run.ID, c.in)
	enc.Opened = func(req *runs.Request, id string) bool {
		a, err := given.take(req, id)
		return a != nil && err == nil && c.Runs.Answer(r.Context(), run, a) == nil
	}
	enc.Replay(run.Events(n))
	if err := c.answerAll(r, run, enc, given); err != nil {
		return err
	}
	return c.send(w, r, run, n, enc)
}

// waitingRun returns the run of the thread that waits for its client. One of another server,
// which is found by the lease of its turn, or by an id in the messages of the client, can be
// followed as far as its events are stored.
func (c *call) waitingRun(ctx context.Context) (*runs.Run, error) {
	id := c.in.run()
	find := c.Runs.FindWaiting
	if id == "" { // without messages
		find = c.Runs.ResumeWaiting
	}
	run, err := find(ctx, c.app.App, c.principal.Name, c.flow.Spec, c.stored())
	if err != nil {
		return nil, err
	}
	if run != nil {
		id = run.ID
	}
	if run, err = c.Runs.AttachWaiting(ctx, c.app.App, c.principal.Name, id); err != nil {
		return nil, err
	}
	if run == nil || run.Flow.ID != c.flow.ID() || run.Session != c.stored() {
		return nil, problem.New(http.StatusConflict, "no_waiting_run", "no run of thread %q waits for an answer", c.in.ThreadID)
	}
	return run, nil
}

// answerAll answers the requests of the run: after an error it has answered none.
func (c *call) answerAll(r *http.Request, run *runs.Run, enc *Encoder, given *answers) error {
	var accepted []*runs.Answer
	for _, req := range run.State().Pending {
		a, err := given.take(req, cmp.Or(enc.CallOf(req), given.unnamed(run.ID)))
		if err != nil {
			return err
		}
		if a != nil {
			accepted = append(accepted, a)
		}
	}
	if err := given.left(); err != nil {
		return err
	}
	if len(accepted) == 0 {
		return problem.New(http.StatusUnprocessableEntity, "no_answer", "the messages answer none of the requests that run %s waits for", run.ID)
	}
	for _, a := range accepted {
		if err := c.Runs.Answer(r.Context(), run, a); err != nil {
			return host.AnswerProblem(err)
		}
	}
	return nil
}

// send writes the events of a run after the first n.
func (c *call) send(w http.ResponseWriter, r *http.Request, run *runs.Run, n int, enc *Encoder) error {
	stream, err := sse.Open(w, r, c.Heartbeat)
	if err != nil {
		c.disconnected(run)
		return err
	}
	defer stream.Close()
	w.Header().Set("X-Run-Id", run.ID)
	if n > 0 {
		stream.Append(enc.Continue(nil))
	}
	leave := run.Watch()
	err = stream.Follow(r.Context(), run, n, enc)
	leave()
	if err != nil {
		c.disconnected(run)
	}
	return nil
}

// disconnected ends the run of a client that has gone, as the flow declares; one that waits
// for an answer, or has other clients, goes on.
func (c *call) disconnected(run *runs.Run) {
	if c.Runs.IsLocal(run) {
		run.Disconnected()
	} else if !c.flow.Finishes() && run.State().Status == runs.Running {
		ctx, cancel := context.WithTimeout(context.Background(), cancelTime)
		defer cancel()
		_ = c.Runs.Cancel(ctx, run) // no client is left for the error
	}
}

// cancelTime is how long storing the cancellation of a run of another server may take.
const cancelTime = 10 * time.Second
