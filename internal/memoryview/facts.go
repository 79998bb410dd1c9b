package memoryview

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/qtype-dev/qtype/internal/memory/promptcontext"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/memory"
)

// FactJSON is a fact as JSON.
type FactJSON struct {
	Memory  string `json:"memory"`         // the memory's id in the document
	User    string `json:"user,omitempty"` // whose fact it is; empty for one of a session
	Session string `json:"session,omitempty"`
	Text    string `json:"text"` // the current text
	promptcontext.Fact
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
		one.Fact, one.Text = facts[i], facts[i].Text()
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
		version := &f.Versions[i]
		if i == len(f.Versions)-1 {
			fmt.Fprintf(&b, "     %s\n", factSource(version))
		} else {
			fmt.Fprintf(&b, "     before: %s, %s\n", terminal.Clean(version.Text), factSource(version))
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
