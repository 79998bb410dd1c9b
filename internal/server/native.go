package server

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/qtype-dev/qtype/internal/citation"
	"github.com/qtype-dev/qtype/internal/server/access"
	"github.com/qtype-dev/qtype/internal/server/problem"
	"github.com/qtype-dev/qtype/internal/server/runs"
	"github.com/qtype-dev/qtype/internal/server/schema"
	"github.com/qtype-dev/qtype/internal/server/sse"
	"github.com/qtype-dev/qtype/runtime"
)

// nativeEncoder writes events as they are: the name of an event is its type, its id the
// run and its number.
type nativeEncoder struct {
	run     *runs.Run
	flow    *schema.Flow
	session string
	n       int
	started map[stepRow]time.Time
}

type stepRow struct {
	step string
	row  int64
}

func newNativeEncoder(run *runs.Run, p access.Principal, from int) *nativeEncoder {
	session, _ := p.ClientSession(run.Session)
	return &nativeEncoder{run: run, flow: schema.NewFlow(run.Flow), session: session, n: from, started: map[stepRow]time.Time{}}
}

// nativeEvent is the data of an event.
type nativeEvent struct {
	Type      runs.Type        `json:"type"`
	Seq       int              `json:"seq"`
	Time      time.Time        `json:"time"`
	Run       string           `json:"run,omitempty"`
	Flow      string           `json:"flow,omitempty"`
	Session   string           `json:"session,omitempty"`
	Step      string           `json:"step,omitempty"`
	Row       int64            `json:"row,omitempty"`
	Text      *string          `json:"text,omitempty"`
	Call      string           `json:"call,omitempty"`
	Tool      string           `json:"tool,omitempty"`
	Arguments json.RawMessage  `json:"arguments,omitempty"`
	Result    json.RawMessage  `json:"result,omitempty"`
	Error     string           `json:"error,omitempty"`
	Millis    *float64         `json:"ms,omitempty"`
	Request   *runs.Request    `json:"request,omitempty"`
	Source    *citation.Source `json:"source,omitempty"`
	ID        string           `json:"id,omitempty"`
	Decider   string           `json:"decider,omitempty"`
	Status    string           `json:"status,omitempty"`
	Outputs   json.RawMessage  `json:"outputs,omitempty"`
	NotUndone []runtime.Effect `json:"not_undone,omitempty"`
	*runs.Usage
}

// Append appends an event.
func (e *nativeEncoder) Append(b []byte, ev *runs.Event) []byte {
	e.n++
	out := nativeEvent{Type: ev.Type, Seq: e.n, Time: ev.Time, Step: ev.Step, Row: ev.Row, Call: ev.Call, Tool: ev.Tool, Error: ev.Error, Usage: ev.Usage, Source: ev.Source}
	switch ev.Type {
	case runs.RunStarted:
		out.Run, out.Flow, out.Session, out.NotUndone = e.run.ID, e.run.Flow.ID, e.session, ev.Kept
	case runs.TextDelta, runs.ReasoningDelta, runs.CommentaryDelta:
		out.Text = &ev.Text
	case runs.StepStarted:
		e.started[stepRow{ev.Step, ev.Row}] = ev.Time
	case runs.StepFinished:
		if since, ok := e.started[stepRow{ev.Step, ev.Row}]; ok {
			ms := float64(ev.Time.Sub(since).Microseconds()) / 1000
			out.Millis = &ms
		}
	case runs.ToolCalled:
		out.Arguments = jsonText(ev.Text)
	case runs.ToolReturned:
		if ev.Error == "" {
			out.Result = jsonText(ev.Text)
		}
	case runs.RequestOpened:
		out.Request = ev.Request
	case runs.RequestAnswered:
		out.ID, out.Decider = ev.Request.ID, ev.Request.Decider
	case runs.RowFinished:
		if ev.Error == "" {
			out.Outputs = append(e.flow.AppendOutputs([]byte{'{'}, ev.Result.Outputs), '}')
		}
	case runs.RunFinished:
		out.Status = ev.Text
	}
	b = append(append(append(b, "id: "...), e.run.ID...), ':')
	b = strconv.AppendInt(b, int64(e.n), 10)
	b = append(append(append(b, "\nevent: "...), ev.Type...), "\ndata: "...)
	b = appendJSON(b, out)
	return append(b, "\n\n"...)
}

// Waiting is false: a client follows the run while it waits.
func (e *nativeEncoder) Waiting() bool { return false }

// Pause appends nothing.
func (e *nativeEncoder) Pause(b []byte) []byte { return b }

// jsonText returns JSON text as it is, and any other text as a JSON string.
func jsonText(text string) json.RawMessage {
	if json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	return appendJSON(nil, text)
}

// runEvents answers GET /runs/{run}/events with the events of the run as they are.
func (s *Server) runEvents(w http.ResponseWriter, r *http.Request) {
	run, err := s.findRun(r)
	var from int
	if err == nil {
		from, err = firstEvent(r, run.ID)
	}
	var e *sse.Stream
	if err == nil {
		e, err = sse.Open(w, r, s.opts.Heartbeat)
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	defer e.Close()
	if run, err = s.arrive(r.Context(), e, run); err != nil {
		return
	}
	if !s.runs.IsLocal(run) { // its events have other numbers than those of the server that ran it
		from = min(from, 1)
	}
	enc := newNativeEncoder(run, access.PrincipalOf(r.Context()), from)
	_ = e.Follow(r.Context(), run, from, enc) // the client has gone
}

// remotePeriod is the time between two looks at a run of another process.
const remotePeriod = 250 * time.Millisecond

// arrive waits until this process has a run, or it has ended: a run of another process
// has no events here, and continues here when that process has ended.
func (s *Server) arrive(ctx context.Context, e *sse.Stream, run *runs.Run) (*runs.Run, error) {
	for !s.runs.IsLocal(run) && !run.State().Status.Ended() {
		if err := e.Idle(ctx, remotePeriod); err != nil {
			return nil, err
		}
		next, err := s.runs.Find(ctx, s.current.Load().App, run.Owner, run.ID)
		switch {
		case isStoreError(err):
			continue // it may be available again
		case err != nil:
			return nil, err
		case next == nil:
			return nil, errRunGone
		}
		run = next
	}
	return run, nil
}

var errRunGone = errors.New("the run was deleted")

// firstEvent returns how many events the client has: the parameter from, or the header
// Last-Event-ID, which has the id of the run and the number of the event.
func firstEvent(r *http.Request, run string) (int, error) {
	text := r.URL.Query().Get("from")
	if text == "" {
		id, n, _ := strings.Cut(r.Header.Get("Last-Event-ID"), ":")
		if id != run {
			return 0, nil
		}
		text = n
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		p := problem.New(http.StatusBadRequest, "invalid_parameter", "from must be the number of an event")
		p.Errors = []problem.Field{{Pointer: "from", Detail: p.Detail}}
		return 0, p
	}
	return n, nil
}
