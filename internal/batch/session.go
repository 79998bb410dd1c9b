package batch

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/records"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/spec/value"
)

// sessionColumns are the columns that have sessions without --session-column.
func sessionColumns() []string { return []string{"session_id", "session"} }

// userColumns are the columns that have users without --user-column, unless they are
// inputs of the flow.
func userColumns() []string { return []string{"user_id", "user"} }

// hasSessions reports whether results have a column with their sessions.
func (in *input) hasSessions() bool {
	return in.session != "" || in.cfg.Session != "" || in.cfg.SessionPerRow
}

// hasUsers reports whether sessions belong to users.
func (in *input) hasUsers() bool {
	return in.needsSession && (in.cfg.User != "" || in.user != "")
}

// checkSessionFlags rejects flags that have no effect because the flow uses no memory.
func (in *input) checkSessionFlags() error {
	if in.needsSession {
		return nil
	}
	for flag, given := range map[string]bool{"--session-per-row": in.cfg.SessionPerRow, "--user": in.cfg.User != "", "--user-column": in.cfg.UserColumn != ""} {
		if given {
			return terminal.Usagef("%s: flow %s uses no memory, so its rows have no sessions", flag, in.flow.ID)
		}
	}
	return nil
}

// needsColumn reports whether a column or key decides about the session of a row.
func (in *input) needsColumn() bool {
	return in.needsSession && in.cfg.Session == "" && !in.cfg.SessionPerRow && in.session == ""
}

// errNoSessions returns the error for rows that name no sessions.
func (in *input) errNoSessions(reason string) error {
	return terminal.Usagef("%s, and flow %s uses a memory: pass --session-column COLUMN, --session-per-row, or --session ID for one conversation of all rows", reason, in.flow.ID)
}

// findSessionColumns finds the columns of the session and the user in a file with
// columns, and checks that the rows of a flow with a memory have sessions.
func (in *input) findSessionColumns() error {
	for what, c := range map[string]string{"sessions": in.cfg.SessionColumn, "users": in.cfg.UserColumn} {
		if c != "" && !slices.Contains(in.columns, c) {
			return fmt.Errorf("%s: no column %q for the %s; the columns are: %s%s",
				in.name, c, what, textfmt.List(in.columns), diag.DidYouMean(c, in.columns))
		}
	}
	if in.session == "" && in.cfg.Session == "" && !in.cfg.SessionPerRow {
		in.session = firstOf(sessionColumns(), in.columns)
	}
	if in.user == "" && in.cfg.User == "" {
		in.user = firstOf(in.defaultUserColumns(), in.columns)
	}
	if in.needsColumn() {
		return in.errNoSessions(in.name + " has no column session_id or session")
	}
	return nil
}

// firstOf returns the first of the names that is a column, empty if none is.
func firstOf(names, columns []string) string {
	for _, c := range names {
		if slices.Contains(columns, c) {
			return c
		}
	}
	return ""
}

// defaultUserColumns returns the userColumns that are not inputs of the flow.
func (in *input) defaultUserColumns() []string {
	return slices.DeleteFunc(userColumns(), func(c string) bool {
		for _, ref := range in.flow.Inputs {
			if ref.To.ID == c {
				return true
			}
		}
		return false
	})
}

// prepareValueSessions decides about the sessions of the rows of -i: a single row that
// names none begins a conversation.
func (in *input) prepareValueSessions() error {
	in.session, in.user = in.cfg.SessionColumn, in.cfg.UserColumn
	if in.user == "" && in.cfg.User == "" && slices.ContainsFunc(in.values, hasKey(in.defaultUserColumns())) {
		in.user = firstOf(in.defaultUserColumns(), in.keys())
	}
	switch {
	case !in.needsColumn() || slices.ContainsFunc(in.values, hasKey(sessionColumns())):
		return nil
	case len(in.values) > 1:
		return in.errNoSessions("the rows have no key session_id or session")
	}
	in.newSession = in.run
	return nil
}

// keys returns the keys of all rows of -i.
func (in *input) keys() []string {
	var all []string
	for _, row := range in.values {
		for key := range row {
			all = append(all, key)
		}
	}
	return all
}

// hasKey returns a function that reports whether a row has one of the keys.
func hasKey(keys []string) func(map[string]any) bool {
	return func(row map[string]any) bool {
		return slices.ContainsFunc(keys, func(key string) bool { _, ok := row[key]; return ok })
	}
}

// checkFirst checks that the first row of a file whose rows may have different columns
// names its session; later rows without a session fail one by one.
func (in *input) checkFirst(rec records.Record, readable bool) error {
	if in.checked || in.columns != nil || !readable {
		return nil
	}
	in.checked = true
	if in.needsColumn() && firstOf(sessionColumns(), rec.Columns) == "" {
		return in.errNoSessions(fmt.Sprintf("%s: row %d has no key session_id or session", in.name, rec.Number))
	}
	return nil
}

// sessionOf returns the session of a row as it is stored. A row without the session or
// user that its column should have is an error: it must not become part of another
// conversation.
func (in *input) sessionOf(get func(string) (any, bool), number int64) (string, error) {
	id, err := in.sessionID(get, number)
	if err != nil || !in.needsSession {
		return id, err
	}
	user, err := in.userOf(get)
	if err != nil {
		return "", err
	}
	return memory.UserSession(user, id), nil
}

// sessionID returns the session of a row as the row names it.
func (in *input) sessionID(get func(string) (any, bool), number int64) (string, error) {
	switch {
	case in.cfg.Session != "":
		return in.cfg.Session, nil
	case in.cfg.SessionPerRow:
		return fmt.Sprintf("%s-%d", in.run, number), nil
	case in.newSession != "":
		return in.newSession, nil
	}
	columns := []string{in.session}
	if in.session == "" {
		columns = sessionColumns()
	}
	id := textOf(columns, get)
	switch {
	case id != "":
		return id, nil
	case in.session != "" && (in.needsSession || in.cfg.SessionColumn != ""):
		return "", fmt.Errorf("the row has no %q, the column of its session", in.session)
	case in.needsSession:
		return "", fmt.Errorf("the row has no session: it needs a value for %s", strings.Join(columns, " or "))
	}
	return "", nil
}

// userOf returns the user of a row; empty if sessions belong to no users.
func (in *input) userOf(get func(string) (any, bool)) (string, error) {
	if in.cfg.User != "" {
		return in.cfg.User, nil
	}
	columns := []string{in.user}
	if in.user == "" {
		columns = in.defaultUserColumns()
	}
	user := textOf(columns, get)
	if user == "" && in.user != "" {
		return "", fmt.Errorf("the row has no %q, the column of its user", in.user)
	}
	return user, nil
}

// textOf returns the first value that a row has for one of the columns; empty if there
// is none.
func textOf(columns []string, get func(string) (any, bool)) string {
	for _, c := range columns {
		if v, ok := get(c); ok && v != nil {
			if text := value.Text(v); strings.TrimSpace(text) != "" {
				return text
			}
		}
	}
	return ""
}

// newSessionFlags returns the flags that continue the conversation that a run begins.
func (in *input) newSessionFlags() string {
	flags := "--session " + textfmt.ShellQuote(in.newSession)
	if user := cmp.Or(in.cfg.User, in.onlyUser()); user != "" {
		return "--user " + textfmt.ShellQuote(user) + " " + flags
	}
	return flags
}

// onlyUser returns the user of the single row of -i.
func (in *input) onlyUser() string {
	if !in.hasUsers() || len(in.values) != 1 {
		return ""
	}
	user, _ := in.userOf(func(c string) (any, bool) { v, ok := in.values[0][c]; return v, ok })
	return user
}
