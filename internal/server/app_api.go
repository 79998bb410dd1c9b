package server

import (
	"net/http"

	"github.com/qtype-dev/qtype/internal/server/access"
)

// appBody describes the application and the server.
type appBody struct {
	ID             string          `json:"id"`
	Description    string          `json:"description"`
	Version        string          `json:"version"`
	Flows          int             `json:"flows"`
	Authentication string          `json:"authentication"`
	Principal      *string         `json:"principal"`
	Simulated      []string        `json:"simulated"`
	ReloadError    *ReloadError    `json:"reload_error"`
	Features       map[string]bool `json:"features"`
}

// getApp answers GET /app.
func (s *Server) getApp(w http.ResponseWriter, r *http.Request) {
	a, p := s.current.Load(), access.PrincipalOf(r.Context())
	doc := a.App.Spec()
	out := appBody{ID: doc.ID, Description: doc.Description, Version: s.opts.Version, Flows: len(a.IDs(p)), Authentication: "none",
		Simulated: simulated(a, p), ReloadError: s.reload.Load(), Features: map[string]bool{"batch": true, "traces": s.recorder != nil, "feedback": a.feedback != nil, "tests": s.opts.Test != nil}}
	if s.opts.Access != nil {
		out.Authentication = s.opts.Access.Authentication()
	}
	if p.Name != "" {
		out.Principal = &p.Name
	}
	writeJSON(w, http.StatusOK, out)
}

// simulated returns the ids of the models of a principal's flows that a mock replaces.
func simulated(a *generation, p access.Principal) []string {
	ids, seen := []string{}, map[string]bool{}
	for _, f := range a.Flows {
		if !access.Allowed(f.Spec, p) {
			continue
		}
		models, err := a.App.Models(f.ID())
		if err != nil {
			continue // a run reports it
		}
		for _, m := range models {
			if id := m.Replaces; id != "" && !seen[id] {
				seen[id] = true
				ids = append(ids, id)
			}
		}
	}
	return ids
}
