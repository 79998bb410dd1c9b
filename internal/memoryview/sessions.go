// Package memoryview shows the conversations that memories have stored.
package memoryview

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/mattn/go-runewidth"

	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
)

// Memory is a declared memory.
type Memory struct {
	*memory.Memory
	ID       string // as the document declares it
	Location string // of its store, for messages
}

// App is the part of runtime.App that this package needs.
type App interface {
	Spec() *spec.Application
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
	Full  bool      // History writes whole messages, not one line of each
	Raw   bool      // also the items of providers; without it they are only named
}

// maxCandidates bounds the sessions that are read for a message.
const maxCandidates = 1_000

// FindSession checks that a memory has a session. If session is empty, it returns
// the only one; what several sessions share is not one.
func FindSession(ctx context.Context, m Memory, session string) (string, error) {
	if session != "" {
		switch info, err := m.Info(ctx, session); {
		case err != nil:
			return "", err
		case info.Session != "":
			return session, nil
		}
	}
	prefixes := []string{""}
	if session != "" {
		_, size := utf8.DecodeRuneInString(session)
		prefixes = []string{session[:size], ""}
	}
	var ids []string
	for _, prefix := range prefixes {
		for s, err := range m.EachSession(ctx, memory.SessionFilter{SessionQuery: store.SessionQuery{Prefix: prefix}}) {
			if err != nil {
				return "", err
			}
			if session == "" && onlyShared(s) {
				continue
			}
			if ids = append(ids, s.Session); len(ids)%maxCandidates == 0 {
				break
			}
		}
	}
	switch {
	case len(ids) == 0:
		return "", fmt.Errorf("memory %s has no conversations in %s yet", m.ID, m.Location)
	case session != "":
		return "", fmt.Errorf("memory %s has no session %q%s", m.ID, session, diag.DidYouMean(session, ids))
	case len(ids) > 1:
		return "", ambiguous(len(ids), len(ids) == maxCandidates)
	}
	return ids[0], nil
}

// onlyShared reports whether a stored session is no conversation: it has values that the
// sessions of a user or of the memory share.
func onlyShared(s memory.SessionInfo) bool { return s.Messages == 0 && memory.IsShared(s.Session) }

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

	Shared bool `json:"shared,omitempty"` // it has no messages, but what the sessions of a user or of the memory share
}

// ListOptions select the sessions of a list.
type ListOptions struct {
	memory.SessionFilter
	Sort Order             // default ByID
	More func(last string) // is called if there are more sessions than the limit
}

// List writes a line for each session of the memories that o selects, while it reads them:
// in another order than ByID after it has read all.
func (v *View) List(ctx context.Context, memories []Memory, o ListOptions) error {
	p := &sessionPrinter{out: v.Out, json: v.JSON, now: time.Now()}
	last := ""
	for row, err := range sessionRows(ctx, memories, o) {
		switch {
		case err != nil:
			return err
		case o.Limit > 0 && p.count == o.Limit:
			if err := p.flush(); err != nil || o.More == nil {
				return err
			}
			o.More(last)
			return nil
		}
		last = row.Session
		if err := p.add(row); err != nil {
			return err
		}
	}
	if p.count == 0 && !v.JSON {
		return v.writeNone(memories, o)
	}
	return p.flush()
}

// writeNone writes why a list is empty.
func (v *View) writeNone(memories []Memory, o ListOptions) error {
	var locations []string
	for _, m := range memories {
		if !slices.Contains(locations, m.Location) {
			locations = append(locations, m.Location)
		}
	}
	text := fmt.Sprintf("no conversations in %s yet\n", textfmt.List(locations))
	if o.SessionFilter != (memory.SessionFilter{SessionQuery: store.SessionQuery{Limit: o.Limit}}) {
		text = "no sessions match\n"
	}
	_, err := io.WriteString(v.Out, text)
	return err
}

// sessionPrinter writes rows, some at a time. The first ones decide the widths of columns.
type sessionPrinter struct {
	out   io.Writer
	json  bool
	now   time.Time
	count int
	rows  []sessionRow // not written yet
	table *sessionTable
}

// rowsAtOnce is how many rows decide the widths of columns.
const rowsAtOnce = 1_000

func (p *sessionPrinter) add(r sessionRow) error {
	p.count++
	if p.rows = append(p.rows, r); len(p.rows) < rowsAtOnce {
		return nil
	}
	return p.flush()
}

func (p *sessionPrinter) flush() error {
	rows := p.rows
	p.rows = nil
	if p.json {
		return terminal.WriteJSON(p.out, rows...)
	}
	var b strings.Builder
	if p.table == nil {
		p.table = newSessionTable(rows)
		p.table.line(&b, "memory", "session", "messages", "in window", "tokens / limit", "last message")
	}
	for _, r := range rows {
		used := usage(r)
		if r.Shared {
			used = "shared values"
		}
		p.table.line(&b, terminal.Clean(r.Memory), terminal.Clean(r.Session), textfmt.Thousands(r.Messages), textfmt.Thousands(r.InWindow), used, textfmt.Ago(p.now.Sub(r.LastSaid)))
	}
	_, err := io.WriteString(p.out, b.String())
	return err
}

// maxID is the maximum width of an id in the table, in terminal columns.
const maxID = 32

// sessionTable has the widths of columns.
type sessionTable struct{ idWidth, sessionWidth int }

func newSessionTable(rows []sessionRow) *sessionTable {
	t := &sessionTable{len("memory"), len("session")}
	for _, r := range rows {
		t.idWidth = max(t.idWidth, min(runewidth.StringWidth(terminal.Clean(r.Memory)), maxID))
		t.sessionWidth = max(t.sessionWidth, min(runewidth.StringWidth(terminal.Clean(r.Session)), maxID))
	}
	return t
}

func (t *sessionTable) line(b *strings.Builder, id, session, messages, window, usage, last string) {
	fmt.Fprintf(b, "%s   %s  %8s  %9s  %16s   %s\n", terminal.Pad(id, t.idWidth), terminal.Pad(session, t.sessionWidth), messages, window, usage, last)
}

// usage returns how much of its limit a window takes, with the unit if it is not tokens.
func usage(r sessionRow) string {
	switch {
	case r.Limit == 0:
		return textfmt.Thousands(r.Tokens)
	case r.Unit == string(store.InTokens):
		return textfmt.Thousands(r.Used) + " / " + textfmt.Thousands(r.Limit)
	}
	return fmt.Sprintf("%s / %s %s", textfmt.Thousands(r.Used), textfmt.Thousands(r.Limit), r.Unit)
}
