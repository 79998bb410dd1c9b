package access

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/server/problem"
	"github.com/qtype-dev/qtype/spec"
)

// Allowed reports whether a principal may call a flow. An entry NAME is an API key,
// user:NAME a user, role:NAME everyone with the role. Without the key allow every caller
// may; an empty list allows no caller. A caller without authentication may call only
// flows without the key.
func Allowed(flow *spec.Flow, p Principal) bool {
	if len(flow.Allow) == 0 {
		return flow.Allow == nil && !isWritten(flow, "allow")
	}
	return p.Name != "" && slices.ContainsFunc(flow.Allow, func(entry string) bool {
		if role, ok := strings.CutPrefix(entry, spec.RolePrefix); ok {
			return slices.Contains(p.Roles, role)
		}
		return entry == p.Name
	})
}

// Authorize returns a *problem.Problem with status 403 if the caller of a request may
// not call a flow, and logs the refused request.
func (c *Control) Authorize(r *http.Request, flow *spec.Flow) error {
	caller := PrincipalOf(r.Context())
	if Allowed(flow, caller) {
		return nil
	}
	p := problem.New(http.StatusForbidden, "flow_not_allowed", "you may not call the flow %q", flow.ID)
	if !c.Authenticated() {
		p.Detail = fmt.Sprintf("the flow %q lists its callers, but the server has no authentication", flow.ID)
	}
	c.audit.refused(r, c.proxies.client(r), caller.Name, p.Detail, p)
	return p
}

// isWritten reports whether the document has a key. Flows of programs have no positions.
func isWritten(n spec.Node, key string) bool {
	at := n.Position()
	if at == nil {
		return false
	}
	_, ok := at.Lookup(key)
	return ok
}
