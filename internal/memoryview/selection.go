package memoryview

import (
	"context"
	"fmt"
	"slices"

	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
)

// Selection is what the flags --memory, --user and --session select of an application.
type Selection struct {
	Memory  string // the id of a memory; may be empty if there is only one
	User    string // to whom the session belongs; may be empty
	Session string // the id of a session as the user knows it; may be empty if there is only one
}

// Declared returns the memory that is selected, or all.
func (s *Selection) Declared(app *spec.Application) ([]*spec.Memory, error) {
	ids := idsOf(app.Memories)
	for _, m := range app.Memories {
		if m.ID == s.Memory {
			return []*spec.Memory{m}, nil
		}
	}
	switch {
	case s.Memory != "":
		return nil, terminal.Usagef("no memory has the id %q; there are: %s%s", s.Memory, textfmt.List(ids), diag.DidYouMean(s.Memory, ids))
	case len(ids) == 0:
		return nil, fmt.Errorf("application %s declares no memory", app.ID)
	}
	return app.Memories, nil
}

func idsOf(memories []*spec.Memory) []string {
	var ids []string
	for _, m := range memories {
		ids = append(ids, m.ID)
	}
	return ids
}

// One returns the memory that is selected, or the only one.
func (s *Selection) One(app *spec.Application) (*spec.Memory, error) {
	all, err := s.Declared(app)
	if err != nil {
		return nil, err
	}
	return onlyOne(all)
}

func onlyOne(memories []*spec.Memory) (*spec.Memory, error) {
	if len(memories) > 1 {
		return nil, terminal.Usagef("which memory? --memory is one of %s", textfmt.List(idsOf(memories)))
	}
	return memories[0], nil
}

// WithFacts returns the memory that is selected, or the only one that has facts.
func (s *Selection) WithFacts(app App) (Memory, error) {
	all, err := s.Declared(app.Spec())
	if err != nil {
		return Memory{}, err
	}
	isFacts := func(b spec.ContextBlock) bool { _, ok := b.(*spec.FactsBlock); return ok }
	var found []*spec.Memory
	for _, m := range all {
		if slices.ContainsFunc(m.Context, isFacts) {
			found = append(found, m)
		}
	}
	if len(found) == 0 {
		return Memory{}, fmt.Errorf("%s has no context block of type facts", textfmt.List(idsOf(all)))
	}
	m, err := onlyOne(found)
	if err != nil {
		return Memory{}, err
	}
	return Of(app, m.ID), nil
}

// Open returns the memory that One selects.
func (s *Selection) Open(app App) (Memory, error) {
	m, err := s.One(app.Spec())
	if err != nil {
		return Memory{}, err
	}
	return Of(app, m.ID), nil
}

// Stored returns the id under which a session of the user is stored; empty for an empty id.
func (s *Selection) Stored(session string) string {
	if session == "" {
		return ""
	}
	return memory.UserSession(s.User, session)
}

// Conversation returns the memory and the stored id of the session that are selected. Without an
// id it is the only session, with a user the only one of the user.
func (s *Selection) Conversation(ctx context.Context, app App) (m Memory, session string, err error) {
	if m, err = s.Open(app); err != nil {
		return m, "", err
	}
	if s.User == "" || s.Session != "" {
		session, err = FindSession(ctx, m, s.Stored(s.Session))
		return m, session, err
	}
	var found []string
	filter := memory.SessionFilter{SessionQuery: store.SessionQuery{Prefix: memory.UserPrefix(s.User)}}
	for one, err := range m.EachSession(ctx, filter) {
		if err != nil {
			return m, "", err
		}
		if !onlyShared(one) {
			found = append(found, one.Session)
		}
	}
	switch len(found) {
	case 0:
		return m, "", fmt.Errorf("memory %s has no conversations of user %q in %s yet", m.ID, s.User, m.Location)
	case 1:
		return m, found[0], nil
	}
	return m, "", ambiguous(len(found), false)
}

// ambiguous reports that a session must be named because a memory has several.
func ambiguous(sessions int, more bool) error {
	number := textfmt.Thousands(sessions)
	if more {
		number += " and more"
	}
	return terminal.Usagef("which session? pass --session; qtype memory list shows all %s", number)
}
