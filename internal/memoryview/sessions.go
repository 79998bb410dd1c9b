// Package memoryview shows the conversations that memories have stored.
package memoryview

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/mattn/go-runewidth"

	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/spec/diag"
)

// Memory is a declared memory.
type Memory struct {
	*memory.Memory
	ID       string // as the document declares it
	Location string // of its store, for messages
}

// App is the part of runtime.App that Of needs.
type App interface {
	Memory(id string) *memory.Memory
	StoreLocation(id string) string
}

// Of returns the memory of an application that is declared with an id.
func Of(app App, id string) Memory {
	return Memory{Memory: app.Memory(id), ID: id, Location: app.StoreLocation(id)}
}

// View writes what memories have stored, as text or as JSON lines.
type View struct {
	Out   io.Writer // where it writes
	Width int       // columns of the terminal; 0 for a default
	JSON  bool      // one JSON object a line
}

// AmbiguousSessionError reports that a session must be named because a memory has
// several.
type AmbiguousSessionError struct {
	Sessions int // the number of sessions
}

// Error returns how to name one.
func (e *AmbiguousSessionError) Error() string {
	return fmt.Sprintf("which session? pass --session; qtype memory list shows all %d", e.Sessions)
}

// FindSession checks that a memory has a session. If session is empty, it returns
// the only one.
func FindSession(ctx context.Context, m Memory, session string) (string, error) {
	if session != "" {
		switch info, err := m.Info(ctx, session); {
		case err != nil:
			return "", err
		case info.Session != "":
			return session, nil
		}
	}
	sessions, err := m.Sessions(ctx) // for the message
	if err != nil {
		return "", err
	}
	var ids []string
	for _, s := range sessions {
		ids = append(ids, s.Session)
	}
	switch {
	case len(ids) == 0:
		return "", fmt.Errorf("memory %s has no conversations in %s yet", m.ID, m.Location)
	case session != "":
		return "", fmt.Errorf("memory %s has no session %q%s", m.ID, session, diag.DidYouMean(session, ids))
	case len(ids) > 1:
		return "", &AmbiguousSessionError{Sessions: len(ids)}
	}
	return ids[0], nil
}

// sessionRow is a line of the list of sessions.
type sessionRow struct {
	Memory   string    `json:"memory"`    // the memory's id
	Session  string    `json:"session"`   // the session's id
	Messages int64     `json:"messages"`  // messages of the history
	InWindow int       `json:"in_window"` // messages of the window
	Tokens   int       `json:"tokens"`    // their tokens
	Used     int       `json:"used"`      // how much of Limit they use
	Limit    int       `json:"limit"`     // the most that Used may be, 0 for no limit
	Unit     string    `json:"unit"`      // unit of Used and Limit
	Flushes  int       `json:"flushes"`   // how often messages were evicted
	LastSaid time.Time `json:"last_said"` // when the newest message was added
}

// List writes a line for each session of the memories.
func (v *View) List(ctx context.Context, memories []Memory) error {
	var rows []sessionRow
	var locations []string
	for _, m := range memories {
		if !slices.Contains(locations, m.Location) {
			locations = append(locations, m.Location)
		}
		sessions, err := m.Sessions(ctx)
		if err != nil {
			return err
		}
		for _, s := range sessions {
			rows = append(rows, sessionRow{m.ID, s.Session, s.Messages, s.InWindow, s.Tokens, s.Used, s.Limit, string(s.Unit), s.Flushes, s.LastSaid})
		}
	}
	if v.JSON {
		return writeLines(v.Out, rows)
	}
	text := fmt.Sprintf("no conversations in %s yet\n", textfmt.List(locations))
	if len(rows) > 0 {
		text = sessionTable(rows, time.Now())
	}
	_, err := io.WriteString(v.Out, text)
	return err
}

// maxID is the maximum width of an id in the table, in terminal columns.
const maxID = 32

func sessionTable(rows []sessionRow, now time.Time) string {
	idWidth, sessionWidth := len("memory"), len("session")
	for _, r := range rows {
		idWidth = max(idWidth, min(runewidth.StringWidth(terminal.Clean(r.Memory)), maxID))
		sessionWidth = max(sessionWidth, min(runewidth.StringWidth(terminal.Clean(r.Session)), maxID))
	}
	var b strings.Builder
	line := func(id, session, messages, window, usage, last string) {
		fmt.Fprintf(&b, "%s   %s  %8s  %9s  %16s   %s\n", terminal.Pad(id, idWidth), terminal.Pad(session, sessionWidth), messages, window, usage, last)
	}
	line("memory", "session", "messages", "in window", "tokens / limit", "last message")
	for _, r := range rows {
		line(terminal.Clean(r.Memory), terminal.Clean(r.Session), textfmt.Thousands(r.Messages), textfmt.Thousands(r.InWindow), usage(r), textfmt.Ago(now.Sub(r.LastSaid)))
	}
	return b.String()
}

// usage returns how much of its limit a window takes, with the unit if it is not tokens.
func usage(r sessionRow) string {
	switch {
	case r.Limit == 0:
		return textfmt.Thousands(r.Tokens)
	case r.Unit == string(memory.InTokens):
		return textfmt.Thousands(r.Used) + " / " + textfmt.Thousands(r.Limit)
	}
	return fmt.Sprintf("%s / %s %s", textfmt.Thousands(r.Used), textfmt.Thousands(r.Limit), r.Unit)
}

// Clear deletes a session.
func (v *View) Clear(ctx context.Context, m Memory, session string) error {
	if err := m.Clear(ctx, session); err != nil {
		return err
	}
	_, err := fmt.Fprintf(v.Out, "memory %s: session %s deleted\n", m.ID, terminal.Clean(session))
	return err
}

// ClearAll deletes all sessions of a memory.
func (v *View) ClearAll(ctx context.Context, m Memory) error {
	sessions, err := m.Sessions(ctx)
	if err != nil {
		return err
	}
	for _, s := range sessions {
		if err := m.Clear(ctx, s.Session); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(v.Out, "memory %s: %s deleted\n", m.ID, textfmt.Count(len(sessions), "session"))
	return err
}

// writeLines writes one JSON object a line.
func writeLines[T any](w io.Writer, lines []T) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	for _, l := range lines {
		if err := enc.Encode(l); err != nil {
			return err
		}
	}
	return nil
}
