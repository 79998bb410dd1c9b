package server

import (
	"net/http"
	"time"

	"github.com/qtype-dev/qtype/internal/server/access"
	"github.com/qtype-dev/qtype/internal/server/host"
	"github.com/qtype-dev/qtype/internal/server/problem"
	"github.com/qtype-dev/qtype/internal/server/runs"
	"github.com/qtype-dev/qtype/internal/server/schema"
)

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
