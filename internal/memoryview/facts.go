package memoryview

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/qtype-dev/qtype/internal/memory/promptcontext"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
)

// FactJSON is a fact as JSON.
type FactJSON struct {
	Memory  string `json:"memory"`         // the memory's id in the document
	User    string `json:"user,omitempty"` // whose fact it is; empty for one of a session
	Session string `json:"session,omitempty"`
	Text    string `json:"text"` // the current text
	promptcontext.Fact
	Versions []FactVersionJSON `json:"versions"` // the current one is the last
}

// FactVersionJSON is a text of a fact as JSON.
type FactVersionJSON struct {
	promptcontext.FactVersion
	From  time.Time `json:"from"`           // since when it holds, or held: when it was stated
	Until time.Time `json:"until,omitzero"` // when it was replaced or deleted; none for the text that holds
}

// Facts writes the facts of a session, or of a user and of all sessions of the user, with
// their sources.
func (v *View) Facts(ctx context.Context, m Memory, s *Selection) error {
	stored := memory.UserSession(s.User, s.Session)
	n, err := v.factsOf(ctx, m, stored)
	if err != nil {
		return err
	}
	if s.Session == "" {
		for l, err := range m.ListOf(ctx, memory.UserScope, stored) {
			if err != nil {
				return err
			}
			more, err := v.factsOf(ctx, m, l.Session)
			if n += more; err != nil {
				return err
			}
		}
	}
	if n == 0 && !v.JSON {
		_, err = fmt.Fprintln(v.Out, "no facts")
	}
	return err
}

// factsOf writes the facts that are stored under an id and returns their number.
func (v *View) factsOf(ctx context.Context, m Memory, session string) (int, error) {
	facts, err := promptcontext.FactsOf(ctx, m.Memory, session)
	if err != nil {
		return 0, err
	}
	one := FactJSON{Memory: m.ID, Session: session}
	if user, id := memory.SplitSession(session); user != "" && id == "" {
		one.User, one.Session = user, ""
	}
	if !v.JSON && len(facts) > 0 {
		if _, err := fmt.Fprintf(v.Out, "memory %s, %s\n", m.ID, one.owner()); err != nil {
			return 0, err
		}
	}
	for i := range facts {
		one.Fact, one.Text, one.Versions = facts[i], facts[i].Text(), nil
		for n, v := range facts[i].Versions {
			from, until := facts[i].Held(n)
			one.Versions = append(one.Versions, FactVersionJSON{v, from, until})
		}
		if err := v.fact(one); err != nil {
			return i, err
		}
	}
	return len(facts), nil
}

func (f *FactJSON) owner() string {
	if f.User != "" {
		return "user " + terminal.Clean(f.User)
	}
	return "session " + terminal.Clean(f.Session)
}

// fact writes one fact.
func (v *View) fact(f FactJSON) error {
	if v.JSON {
		return terminal.WriteJSON(v.Out, f)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%-4s %s\n", f.ID, terminal.Clean(f.Text))
	if f.Deleted != nil {
		fmt.Fprintf(&b, "     deleted %s\n", factSource(f.Deleted))
	}
	for i := len(f.Versions) - 1; i >= 0; i-- {
		version := &f.Versions[i].FactVersion
		if i == len(f.Versions)-1 {
			fmt.Fprintf(&b, "     %s\n", factSource(version))
		} else {
			fmt.Fprintf(&b, "     before: %s, %s, until %s\n", terminal.Clean(version.Text), factSource(version), f.Versions[i].Until.Local().Format(time.DateTime))
		}
	}
	_, err := v.Out.Write([]byte(b.String()))
	return err
}

// factSource describes where a version of a fact comes from.
func factSource(v *promptcontext.FactVersion) string {
	if v.Seq == 0 {
		return "edited on " + v.Time.Local().Format(time.DateTime)
	}
	source := fmt.Sprintf("message %d", v.Seq)
	if v.Session != "" {
		source = fmt.Sprintf("session %s, %s", terminal.Clean(v.Session), source)
	}
	return fmt.Sprintf("%s of %s: %q", source, v.Stated.Local().Format(time.DateTime), terminal.Clean(v.Quote))
}

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
