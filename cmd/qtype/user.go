package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"github.com/qtype-dev/qtype/internal/memoryview"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/store"
)

// checkUser rejects an empty --user, which would select the sessions that belong to no
// user: often it is an unset variable of a script.
func checkUser(f *pflag.FlagSet) error {
	for _, name := range []string{"user", "session"} {
		if flag := f.Lookup(name); flag != nil && flag.Changed && strings.TrimSpace(flag.Value.String()) == "" {
			return usagef("--%s must not be empty", name)
		}
	}
	return nil
}

// stored returns the id under which a session of --user is stored; empty for an empty id.
func (r *memoryCommand) stored(session string) string {
	if session == "" {
		return ""
	}
	return memory.UserSession(r.user, session)
}

// findSession checks that a memory has the session of --user and --session, and returns
// its stored id. Without --session it is the only one, with --user the only one of the user.
func (r *memoryCommand) findSession(ctx context.Context, m memoryview.Memory) (string, error) {
	if r.user == "" || r.session != "" {
		return memoryview.FindSession(ctx, m, r.stored(r.session))
	}
	var own []string
	filter := memory.SessionFilter{SessionQuery: store.SessionQuery{Prefix: memory.UserPrefix(r.user)}}
	for s, err := range m.EachSession(ctx, filter) {
		if err != nil {
			return "", err
		}
		if s.Messages > 0 || !memory.IsShared(s.Session) {
			own = append(own, s.Session)
		}
	}
	switch len(own) {
	case 0:
		return "", fmt.Errorf("memory %s has no conversations of user %q in %s yet", m.ID, r.user, m.Location)
	case 1:
		return own[0], nil
	}
	return "", &memoryview.AmbiguousSessionError{Sessions: len(own)}
}
