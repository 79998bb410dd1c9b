// Package access decides who may call the server: it authenticates requests, checks
// the allow lists of flows, and limits bodies, rates and concurrent requests.
package access

import (
	"context"
	"strings"

	"github.com/qtype-dev/qtype/memory"
)

// Principal is the caller of a request.
type Principal struct {
	Name  string   // unique: that of an API key, or "user:" and that of a user; empty without authentication
	Roles []string // from the token; nil for none
}

type principalKey struct{}

// WithPrincipal returns a context with the caller of a request.
func WithPrincipal(ctx context.Context, p Principal) context.Context {
	if p.Name != "" {
		ctx = memory.WithActor(ctx, p.Name)
	}
	return context.WithValue(ctx, principalKey{}, p)
}

// PrincipalOf returns the caller of a request, the zero Principal without
// authentication.
func PrincipalOf(ctx context.Context) Principal {
	p, _ := ctx.Value(principalKey{}).(Principal)
	return p
}

// StoredSession returns the id under which the session of a principal is stored: the
// name of the principal, a slash, and the id that the client uses. Sessions of
// different principals differ, no matter which ids the clients choose.
// Without authentication both ids are the same.
func (p Principal) StoredSession(id string) string {
	return memory.UserSession(p.Name, id)
}

// SessionPrefix is what the stored ids of all sessions of the principal begin with.
func (p Principal) SessionPrefix() string { return memory.UserPrefix(p.Name) }

// ClientSession returns the id that the client uses for a stored session, and whether
// the session belongs to the principal.
func (p Principal) ClientSession(stored string) (id string, ok bool) {
	return strings.CutPrefix(stored, p.SessionPrefix())
}
