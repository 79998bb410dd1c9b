package server

import (
	"context"
	"encoding/json"
	"errors"
	"mime"
	"net/http"
	"strconv"
	"strings"

	"github.com/qtype-dev/qtype/internal/redact"
	"github.com/qtype-dev/qtype/internal/server/access"
	"github.com/qtype-dev/qtype/internal/server/host"
	"github.com/qtype-dev/qtype/internal/server/problem"
	"github.com/qtype-dev/qtype/internal/server/runs"
	"github.com/qtype-dev/qtype/internal/server/schema"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/runtime"
)

// result answers with the rows of a run that has ended.
func (s *Server) result(w http.ResponseWriter, run *runs.Run, flow *schema.Flow) {
	state := run.State()
	if p := s.failure(run, &state); p != nil {
		problem.Write(w, p)
		return
	}
	b := append([]byte(nil), `{"run":`...)
	b = appendJSON(b, run.ID)
	b = appendResults(b, flow, state.Results)
	b = append(b, "}\n"...)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(b)))
	_, _ = w.Write(b) //nolint:gosec // JSON; it fails only if the client is gone
}

// failure returns the problem of a run that could not process its rows, nil for none.
func (s *Server) failure(run *runs.Run, state *runs.State) *problem.Problem {
	err := run.Err()
	if len(state.Results) == 1 && err == nil {
		if p := host.TurnProblem(state.Results[0].Err()); p != nil {
			return p
		}
	}
	var budget *runtime.BudgetError
	switch {
	case state.Status == runs.Cancelled:
		return problem.New(http.StatusConflict, "cancelled", "the run was cancelled")
	case errors.As(err, &budget):
		return problem.New(http.StatusUnprocessableEntity, "budget_exceeded", "%s", budget)
	case problem.Of(err) != nil:
		return problem.Of(err)
	case errors.Is(err, memory.ErrSuspended):
		p := shuttingDown()
		p.Detail, p.Continues = "the server is shutting down; run "+run.ID+" continues when it has started again", true
		return p
	case errors.Is(err, runs.ErrClosed):
		return shuttingDown()
	case err != nil:
		s.log.Error("a run failed", "run", run.ID, "flow", run.Flow.ID, "error", err)
		return problem.New(http.StatusInternalServerError, "run_failed", "the flow could not be run")
	case state.Status == runs.Failed && state.Error != "":
		return problem.New(http.StatusInternalServerError, "run_failed", "the flow could not be run")
	}
	return nil
}

// appendResults appends the members errors and outputs.
func appendResults(b []byte, flow *schema.Flow, results []*runs.Result) []byte {
	b = append(b, `,"errors":[`...)
	first := true
	for _, res := range results {
		if res.Error == "" {
			continue
		}
		if !first {
			b = append(b, ',')
		}
		first = false
		b = appendJSON(b, rowError{res.Row, res.Step, res.Error, exceptionType(res.Code)})
	}
	b = append(b, `],"outputs":[`...)
	first = true
	for _, res := range results {
		if res.Error != "" {
			continue
		}
		if !first {
			b = append(b, ',')
		}
		first = false
		b = appendRow(b, flow, res)
	}
	return append(b, ']')
}

// rowError is a failed row, in the form of QType (Python), with the number of the row.
type rowError struct {
	Row       int64  `json:"row"`
	Step      string `json:"step_id"`
	Message   string `json:"error_message"`
	Exception string `json:"exception_type"`
}

// metadata describes a result row.
type metadata struct {
	Row     int64  `json:"row"`
	SpanID  string `json:"span_id,omitempty"`
	TraceID string `json:"trace_id,omitempty"`
}

func appendRow(b []byte, flow *schema.Flow, res *runs.Result) []byte {
	b = append(b, '{')
	if len(flow.Outputs) > 0 {
		b = append(flow.AppendOutputs(b, res.Outputs), ',')
	}
	b = append(b, `"metadata":`...)
	b = appendJSON(b, metadata{res.Row, res.SpanID, res.TraceID})
	return append(b, '}')
}

// exceptionType returns the name of a kind of error: ModelError for model.
func exceptionType(code string) string {
	if code == "" {
		code = runtime.CodeFailed
	}
	if status, ok := strings.CutPrefix(code, "http_"); ok {
		return "HTTP" + status + "Error"
	}
	return strings.ToUpper(code[:1]) + code[1:] + "Error"
}

// describe returns a run as clients see it.
func (s *Server) describe(ctx context.Context, run *runs.Run, p access.Principal) any {
	state := run.State()
	inBatches, err := run.InBatches(ctx)
	if err != nil && ctx.Err() == nil {
		s.log.Error("what a run waits for could not be read", "run", run.ID, "error", err)
	}
	session, _ := p.ClientSession(run.Session)
	out := runBody{ID: run.ID, Flow: run.Flow.ID, Session: session, Status: state.Status, Created: run.Created, Updated: state.Updated,
		Rows: state.Rows, Pending: state.Pending, Error: state.Error, Batch: inBatches}
	if state.Status == runs.Suspended { // the next server has it
		out.Status, out.Error = runs.Running, ""
	}
	if out.Pending == nil {
		out.Pending = []*runs.Request{}
	}
	results := appendResults(nil, schema.NewFlow(run.Flow), state.Results)
	out.results = append(append([]byte{'{'}, results[1:]...), '}')
	return out.merged()
}

func appendJSON(b []byte, v any) []byte {
	raw, err := json.Marshal(v)
	if err != nil {
		raw = []byte("null")
	}
	return append(b, raw...)
}

// writeJSON writes a response.
func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // fails only if the client is gone
}

// redacted replaces the secrets of the application in responses. Files of the web interface
// and other content that is not text of the application are passed on unchanged.
func (s *Server) redacted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		redactor := s.current.Load().App.Redactor()
		if redactor.Empty() {
			next.ServeHTTP(w, r)
			return
		}
		shown := &redactedResponse{ResponseWriter: w, redactor: redactor}
		defer shown.finish()
		next.ServeHTTP(shown, r)
	})
}

// redactedResponse is a response without secrets.
type redactedResponse struct {
	http.ResponseWriter
	redactor *redact.Redactor
	begun    bool
	body     *redact.Writer // nil for content that is passed on unchanged
}

// WriteHeader sends the header, without a length that may change.
func (w *redactedResponse) WriteHeader(status int) {
	if status >= http.StatusOK && !w.begun {
		w.begin()
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *redactedResponse) begin() {
	w.begun = true
	if h := w.Header(); isText(h.Get("Content-Type")) {
		h.Del("Content-Length")
		w.body = w.redactor.NewWriter(w.ResponseWriter)
	}
}

// Write writes a part of the body.
func (w *redactedResponse) Write(b []byte) (int, error) {
	if !w.begun {
		w.begin()
	}
	if w.body == nil {
		return w.ResponseWriter.Write(b)
	}
	return w.body.Write(b)
}

// Unwrap returns the writer for http.ResponseController.
func (w *redactedResponse) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// finish writes the rest of the body.
func (w *redactedResponse) finish() {
	if w.body != nil {
		_ = w.body.Flush() // the connection has ended
	}
}

// isText reports whether a type of content has texts of the application.
func isText(contentType string) bool {
	kind, _, err := mime.ParseMediaType(contentType)
	return err == nil && (kind == "text/event-stream" || kind == "text/plain" || kind == "application/json" || kind == "application/x-ndjson" || strings.HasSuffix(kind, "+json"))
}
