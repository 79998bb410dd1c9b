package sqldb

import (
	"database/sql/driver"
	"errors"
	"io"
	"net"
	"strings"

	"modernc.org/sqlite"

	"github.com/qtype-dev/qtype/internal/httpx"
	"github.com/qtype-dev/qtype/internal/textfmt"
)

// Error is an error of a query or its database.
type Error struct {
	Database string // its URL without the password
	Reason   string // message for the user
	Err      error  // the cause
}

// Error returns the database and the reason.
func (e *Error) Error() string { return e.Database + ": " + e.Reason }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// explain converts a driver's error to an *Error: one line, without the password.
func (s *Source) explain(err error) error {
	var explained *Error
	if errors.As(err, &explained) {
		return err
	}
	reason := textfmt.OneLine(s.errorText(err))
	return &Error{Database: s.url.String(), Reason: httpx.Scrub(reason, s.url.Password), Err: err}
}

func (s *Source) errorText(err error) string {
	if s.driver.Reason != nil {
		if reason := s.driver.Reason(Statement{Query: s.query, Text: s.text, Order: s.order}, err); reason != "" {
			return reason
		}
	}
	var netErr *net.OpError
	switch {
	case errors.As(err, &netErr) && netErr.Op == "dial":
		return "cannot connect: " + netErr.Err.Error()
	case errors.Is(err, driver.ErrBadConn), errors.Is(err, io.ErrUnexpectedEOF):
		return "the connection was lost"
	}
	return err.Error()
}

// sqliteReason returns SQLite's message without its number.
func sqliteReason(_ Statement, err error) string {
	sqliteErr, ok := errors.AsType[*sqlite.Error](err)
	if !ok {
		return ""
	}
	reason := sqliteErr.Error()
	if i := strings.LastIndex(reason, " ("); i > 0 && strings.HasSuffix(reason, ")") {
		reason = reason[:i]
	}
	return strings.TrimPrefix(reason, "SQL logic error: ")
}
