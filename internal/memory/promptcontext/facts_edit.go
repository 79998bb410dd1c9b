package promptcontext

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/qtype-dev/qtype/memory"
)

// FactError reports a fact that cannot be changed.
type FactError struct {
	Memory  string   // the memory's id
	Session string   // the session with the list
	ID      string   // the fact; empty for a new one
	Problem string   // what is wrong
	Known   []string // the ids of the facts that hold, if ID is none of them
}

// Error names the fact.
func (e *FactError) Error() string {
	text := fmt.Sprintf("memory %s, session %q: ", e.Memory, e.Session)
	if e.ID != "" {
		text += fmt.Sprintf("fact %q: ", e.ID)
	}
	return text + e.Problem
}

// FactsOf returns the facts of a session, deleted ones included, in the order in which
// they were added. The facts of a user are those of the session memory.UserSession(user,
// "").
func FactsOf(ctx context.Context, m *memory.Memory, session string) ([]Fact, error) {
	head, err := m.Head(ctx, session)
	return factsOf(head).Facts, err
}

// PutFact replaces the text of a fact by one that a person wrote. Without an id it adds a
// fact. It returns the id; the error is a *FactError for an unknown fact or an invalid text.
func PutFact(ctx context.Context, m *memory.Memory, session, id, text string) (string, error) {
	change := FactChange{Op: UpdateFact, ID: id, Text: text}
	if id == "" {
		change.Op = AddFact
	}
	return editFacts(ctx, m, session, change)
}

// RemoveFact marks a fact as deleted by a person: it is not sent any more, and a model
// cannot add the same text again. The error is a *FactError for an unknown fact.
func RemoveFact(ctx context.Context, m *memory.Memory, session, id string) error {
	_, err := editFacts(ctx, m, session, FactChange{Op: DeleteFact, ID: id})
	return err
}

// editFacts makes one change of a person.
func editFacts(ctx context.Context, m *memory.Memory, session string, c FactChange) (id string, err error) {
	problem := ""
	var known []string
	err = m.UpdateValue(ctx, session, factsValue, func(h memory.Head) ([]byte, bool) {
		s := factsOf(h)
		if c.Op == AddFact { // what a person deleted, a person may add again
			s.Facts = slices.DeleteFunc(s.Facts, func(f Fact) bool { return f.Deleted != nil && strings.EqualFold(f.Text(), singleSpaced(c.Text)) })
		}
		if problem = s.change(c, FactVersion{Time: time.Now().UTC().Truncate(time.Microsecond)}); problem != "" {
			known = known[:0]
			for _, f := range s.active() {
				known = append(known, f.ID)
			}
			if slices.Contains(known, c.ID) { // its text is the problem
				known = nil
			}
			return nil, false
		}
		if id = c.ID; id == "" {
			id = s.Facts[len(s.Facts)-1].ID
		}
		return s.encode(), true
	})
	if err == nil && problem != "" {
		err = &FactError{Memory: m.ID(), Session: session, ID: c.ID, Problem: problem, Known: known}
	}
	return id, err
}
