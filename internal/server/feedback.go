package server

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/qtype-dev/qtype/internal/appstate"
	"github.com/qtype-dev/qtype/internal/server/access"
	"github.com/qtype-dev/qtype/internal/server/host"
	"github.com/qtype-dev/qtype/internal/server/problem"
	"github.com/qtype-dev/qtype/internal/server/runs"
	"github.com/qtype-dev/qtype/internal/server/schema"
	"github.com/qtype-dev/qtype/internal/telemetry"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
)

// feedbackBody is the body of POST /feedback.
type feedbackBody struct {
	SpanID      string          `json:"span_id"`
	TraceID     string          `json:"trace_id"`
	Run         string          `json:"run"`
	Session     string          `json:"session"` // with Turn, and Memory if it is not the first one: the place of an answer whose run is not known any more
	Memory      string          `json:"memory"`
	Turn        int64           `json:"turn"`
	Explanation string          `json:"explanation"`
	Feedback    appstate.Answer `json:"feedback"`
}

// postFeedback answers POST /feedback.
func (s *Server) postFeedback(w http.ResponseWriter, r *http.Request) {
	if err := s.acceptFeedback(w, r); err != nil {
		s.fail(w, r, err)
		return
	}
	writeJSON(w, http.StatusOK, map[string]string{"status": "success", "message": "Feedback submitted successfully"})
}

// acceptFeedback stores feedback with the turn of the conversation, and sends it to the telemetry.
func (s *Server) acceptFeedback(w http.ResponseWriter, r *http.Request) error {
	g := s.current.Load()
	if !g.acceptsFeedback() {
		return errNoFeedback
	}
	if err := host.RequireJSON(r); err != nil {
		return err
	}
	body, err := host.ReadBody(w, r)
	if err != nil {
		return err
	}
	var b feedbackBody
	if err := schema.DecodeBody(body, &b, false); err != nil {
		return err
	}
	if b.Feedback.Explanation == "" {
		b.Feedback.Explanation = b.Explanation
	}
	flow, run, err := s.rated(r.Context(), g, &b)
	if err != nil {
		return err
	}
	if err := telemetry.CheckFeedback(flow.Feedback, b.Feedback); err != nil {
		return feedbackProblem(err)
	}
	stored, err := g.storeFeedback(r.Context(), flow, run, &b)
	switch {
	case err != nil:
		return err
	case g.feedback != nil:
		return feedbackProblem(g.feedback.Send(r.Context(), flow.Feedback, b.TraceID, b.SpanID, b.Feedback))
	case !stored:
		return errNoFeedback
	}
	return nil
}

var errNoFeedback = problem.New(http.StatusNotFound, "no_feedback", "there is no turn of a conversation for it, and the telemetry of the application accepts no feedback")

// acceptsFeedback reports whether there is a place for feedback.
func (g *generation) acceptsFeedback() bool {
	if g.feedback != nil {
		return true
	}
	for _, f := range g.Flows {
		if f.Spec.Feedback != nil && len(runtime.MemoryIDs(f.Spec)) > 0 {
			return true
		}
	}
	return false
}

// rated returns the flow that feedback is about, and its run: that of the body, or else the flow of its session, or the one that the
// feedback fits.
func (s *Server) rated(ctx context.Context, g *generation, b *feedbackBody) (*spec.Flow, *runs.Run, error) {
	p := access.PrincipalOf(ctx)
	run, err := s.runs.Find(ctx, g.App, p.Name, b.Run)
	if err != nil {
		return nil, nil, err
	}
	if run != nil {
		flow, err := g.Flow(p, run.Flow.ID)
		if err != nil {
			return nil, nil, err
		}
		return flow.Spec, run, nil
	}
	if b.Session != "" {
		begun, version, err := appstate.ReadSession(ctx, g.state, p.StoredSession(b.Session))
		if err != nil {
			return nil, nil, err
		}
		if version != 0 {
			flow, err := g.Flow(p, begun.Flow)
			if err != nil {
				return nil, nil, err
			}
			return flow.Spec, nil, nil
		}
	}
	// A client of QType (Python) sends neither: the answer must fit one of the flows.
	var problemOf error = problem.New(http.StatusUnprocessableEntity, "invalid_feedback", "no flow of the application collects feedback")
	for _, f := range g.Flows {
		if f.Spec.Feedback == nil || !access.Allowed(f.Spec, p) {
			continue
		}
		if problemOf = telemetry.CheckFeedback(f.Spec.Feedback, b.Feedback); problemOf == nil {
			return f.Spec, nil, nil
		}
	}
	return nil, nil, feedbackProblem(problemOf)
}

// storeFeedback stores feedback with the turn of a run, or that of the body; it reports whether there is one. Conversations that
// all users share have none: it could not be deleted with its user.
func (g *generation) storeFeedback(ctx context.Context, flow *spec.Flow, run *runs.Run, b *feedbackBody) (bool, error) {
	session, turnIn := access.PrincipalOf(ctx).StoredSession(b.Session), func(m *memory.Memory, session string) (int64, error) {
		info, err := m.Info(ctx, session)
		if b.Session == "" || b.Turn > info.Turns {
			return 0, err
		}
		return b.Turn, err
	}
	if run != nil {
		state := run.State()
		if n := len(state.Results); n > 0 && b.SpanID == "" {
			b.SpanID, b.TraceID = state.Results[n-1].SpanID, state.Results[n-1].TraceID
		}
		session, turnIn = run.Session, func(m *memory.Memory, _ string) (int64, error) { return turnOf(ctx, m, run, &state) }
	}
	for _, id := range runtime.MemoryIDs(flow) {
		m := g.App.Memory(id)
		if m == nil || m.Scope() == memory.AppScope || run == nil && b.Memory != "" && b.Memory != id {
			continue
		}
		turn, err := turnIn(m, session)
		if err != nil {
			return false, err
		}
		if turn > 0 {
			return true, appstate.PutFeedback(ctx, g.state, m.Conversation(session), &appstate.Feedback{Answer: b.Feedback, Verdict: telemetry.Verdict(flow.Feedback, b.Feedback),
				Memory: id, Turn: turn, Run: b.Run, Time: time.Now().UTC().Truncate(time.Microsecond)})
		}
	}
	return false, nil
}

// turnOf returns the turn of a memory that a run has had, 0 for none: that of its answer, or the last one that ended before the
// run if the answer is not a message of the conversation.
func turnOf(ctx context.Context, m *memory.Memory, run *runs.Run, state *runs.State) (turn int64, err error) {
	for _, result := range state.Results {
		for _, out := range result.Outputs {
			answer, ok := out.(chat.Message)
			if !ok || answer.ID == "" {
				continue
			}
			e, err := m.Find(ctx, run.Session, answer.ID)
			if _, missing := errors.AsType[*memory.MessageError](err); !missing {
				return e.Turn, err
			}
		}
	}
	for e, err := range m.Messages(ctx, run.Session) {
		if err != nil {
			return 0, err
		}
		if e.Status != store.Failed && !e.Time.Before(run.Created) && !e.Time.After(state.Updated) {
			turn = e.Turn
		}
	}
	return turn, nil
}

// feedbackProblem returns the problem of feedback that was not accepted.
func feedbackProblem(err error) error {
	var invalid *telemetry.FeedbackError
	var sink *telemetry.SinkError
	switch {
	case errors.As(err, &invalid):
		return schema.Invalid([]problem.Field{{Pointer: "/feedback/" + invalid.Field, Detail: invalid.Problem}})
	case errors.As(err, &sink):
		return problem.New(http.StatusBadGateway, "feedback_not_stored", "the telemetry did not accept the feedback")
	}
	return err
}
