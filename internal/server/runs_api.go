package server

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/qtype-dev/qtype/internal/server/access"
	"github.com/qtype-dev/qtype/internal/server/host"
	"github.com/qtype-dev/qtype/internal/server/problem"
	"github.com/qtype-dev/qtype/internal/server/runs"
	"github.com/qtype-dev/qtype/internal/server/schema"
	"github.com/qtype-dev/qtype/spec/diag"
)

// runBody is a run as clients see it.
type runBody struct {
	ID      string          `json:"id"`
	Flow    string          `json:"flow"`
	Session string          `json:"session"`
	Status  runs.Status     `json:"status"`
	Created time.Time       `json:"created"`
	Updated time.Time       `json:"updated"`
	Rows    runs.Rows       `json:"rows"`
	Pending []*runs.Request `json:"pending"`
	Batch   *runs.Batch     `json:"batch,omitempty"`
	Error   string          `json:"error,omitempty"`
	Errors  json.RawMessage `json:"errors"`
	Outputs json.RawMessage `json:"outputs"`

	results []byte // an object with errors and outputs
}

// merged returns the body with the results.
func (b runBody) merged() runBody {
	var r struct{ Errors, Outputs json.RawMessage }
	_ = json.Unmarshal(b.results, &r) // it was encoded here
	b.Errors, b.Outputs = r.Errors, r.Outputs
	return b
}

// findRun returns the run that a request names. The error is a *problem.Problem.
func (s *Server) findRun(r *http.Request) (*runs.Run, error) {
	id := r.PathValue("run")
	run, err := s.runs.Find(r.Context(), s.current.Load().App, access.PrincipalOf(r.Context()).Name, id)
	if err != nil {
		return nil, err
	}
	if run == nil {
		return nil, problem.New(http.StatusNotFound, "unknown_run", "there is no run %q", id)
	}
	return run, nil
}

// getRun answers GET /runs/{run}.
func (s *Server) getRun(w http.ResponseWriter, r *http.Request) {
	run, err := s.findRun(r)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	writeJSON(w, http.StatusOK, s.describe(r.Context(), run, access.PrincipalOf(r.Context())))
}

// listRuns answers GET /runs: the runs of this server that it still has, the newest first.
func (s *Server) listRuns(w http.ResponseWriter, r *http.Request) {
	p, q := access.PrincipalOf(r.Context()), r.URL.Query()
	limit, err := limitOf(q.Get("limit"), 50, 500)
	if err == nil {
		err = checkParameters(q, "flow", "session", "status", "limit", "cursor")
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	from, err := cursorOf(q.Get("cursor"))
	if err != nil {
		s.fail(w, r, err)
		return
	}
	list := s.runs.List(p.Name, func(run *runs.Run) bool {
		session, _ := p.ClientSession(run.Session)
		return (from == nil || from.Compare(run.Place()) < 0) && (q.Get("flow") == "" || q.Get("flow") == run.Flow.ID) && (q.Get("session") == "" || q.Get("session") == session) &&
			(q.Get("status") == "" || q.Get("status") == string(run.State().Status))
	})
	out := struct {
		Runs []any  `json:"runs"`
		Next string `json:"next,omitempty"`
	}{Runs: []any{}}
	for i, run := range list {
		if len(out.Runs) == limit {
			out.Next = list[i-1].Place().String()
			break
		}
		out.Runs = append(out.Runs, s.describe(r.Context(), run, p))
	}
	writeJSON(w, http.StatusOK, out)
}

// checkParameters returns a problem if a query has other parameters than those known.
func checkParameters(q url.Values, known ...string) error {
	for name := range q {
		if !slices.Contains(known, name) {
			p := problem.New(http.StatusBadRequest, "invalid_parameter", "there is no parameter %q%s", name, diag.DidYouMean(name, known))
			p.Errors = []problem.Field{{Pointer: name, Detail: p.Detail}}
			return p
		}
	}
	return nil
}

// cursorOf parses the query parameter cursor: the place of the last run that the client has, nil for none.
func cursorOf(text string) (*runs.Place, error) {
	if text == "" {
		return nil, nil
	}
	place, ok := runs.ParsePlace(text)
	if !ok {
		p := problem.New(http.StatusBadRequest, "invalid_parameter", "the cursor is not of this list")
		p.Errors = []problem.Field{{Pointer: "cursor", Detail: p.Detail}}
		return nil, p
	}
	return &place, nil
}

// limitOf parses the query parameter limit.
func limitOf(text string, standard, most int) (int, error) {
	if text == "" {
		return standard, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		p := problem.New(http.StatusBadRequest, "invalid_parameter", "limit must be a number from 1 to %d", most)
		p.Errors = []problem.Field{{Pointer: "limit", Detail: p.Detail}}
		return 0, p
	}
	return n, nil
}

// answerRun answers POST /runs/{run}/answer.
func (s *Server) answerRun(w http.ResponseWriter, r *http.Request) {
	run, err := s.findRun(r)
	a := &runs.Answer{}
	if err == nil {
		err = s.readAnswer(w, r, a)
	}
	if err == nil {
		err = host.AnswerProblem(s.runs.Answer(r.Context(), run, a))
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	writeJSON(w, http.StatusOK, s.describe(r.Context(), run, access.PrincipalOf(r.Context())))
}

func parseAnswer(body []byte, a *runs.Answer) error {
	if err := schema.DecodeBody(body, a, true); err != nil {
		return err
	}
	if a.ID == "" {
		return schema.Invalid([]problem.Field{{Pointer: "/id", Detail: "the id of the request is missing"}})
	}
	return nil
}

// cancelRun answers POST /runs/{run}/cancel.
func (s *Server) cancelRun(w http.ResponseWriter, r *http.Request) {
	run, err := s.findRun(r)
	if err == nil {
		err = s.runs.Cancel(r.Context(), run)
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	writeJSON(w, http.StatusAccepted, s.describe(r.Context(), run, access.PrincipalOf(r.Context())))
}

// approvalBody is a call that waits for the decision of a role. It has nothing else of the run, which
// belongs to another caller.
type approvalBody struct {
	Run     string        `json:"run"`
	Flow    string        `json:"flow"`
	Caller  string        `json:"caller"` // who has started the run
	Created time.Time     `json:"created"`
	Request *runs.Request `json:"request"`
}

// listApprovals answers GET /approvals: the calls that the caller may decide about by a role.
func (s *Server) listApprovals(w http.ResponseWriter, r *http.Request) {
	list, err := s.runs.Undecided(r.Context(), s.current.Load().App, access.PrincipalOf(r.Context()))
	if err != nil {
		s.fail(w, r, err)
		return
	}
	out := struct {
		Approvals []approvalBody `json:"approvals"`
	}{[]approvalBody{}}
	for _, u := range list {
		out.Approvals = append(out.Approvals, approvalBody{u.Run.ID, u.Run.Flow.ID, u.Run.Owner, u.Run.Created, u.Request})
	}
	writeJSON(w, http.StatusOK, out)
}

// decide answers POST /approvals/{run}: a decision about a call of a run, which may belong to another caller.
func (s *Server) decide(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("run")
	run, err := s.runs.FindUndecided(r.Context(), s.current.Load().App, access.PrincipalOf(r.Context()), id)
	if err == nil && run == nil {
		err = problem.New(http.StatusNotFound, "unknown_run", "no run %q waits for your decision", id)
	}
	a := &runs.Answer{}
	if err == nil {
		err = s.readAnswer(w, r, a)
	}
	if err == nil {
		err = host.AnswerProblem(s.runs.Answer(r.Context(), run, a))
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	writeJSON(w, http.StatusOK, struct {
		Run      string `json:"run"`
		Request  string `json:"request"`
		Approved bool   `json:"approved"`
		By       string `json:"by"`
	}{run.ID, a.ID, a.Approved != nil && *a.Approved, a.By})
}

// readAnswer reads the answer to a request of a run.
func (s *Server) readAnswer(w http.ResponseWriter, r *http.Request, a *runs.Answer) error {
	if err := host.RequireJSON(r); err != nil {
		return err
	}
	body, err := host.ReadBody(w, r)
	if err != nil {
		return err
	}
	if err := parseAnswer(body, a); err != nil {
		return err
	}
	if a.By != "" {
		return schema.Invalid([]problem.Field{{Pointer: "/by", Detail: "the server knows who answers"}})
	}
	return nil
}
