package sqldb

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"
	"modernc.org/sqlite"
)

// Error says what went wrong between a query and its database.
type Error struct {
	Database string // its address without the password
	Reason   string // what is wrong, in a user's words
	Err      error  // what lies below
}

// Error names the database.
func (e *Error) Error() string { return e.Database + ": " + e.Reason }

// Unwrap is what lies below.
func (e *Error) Unwrap() error { return e.Err }

// explain puts a driver's error in a user's words: one line, no password.
func (s *Source) explain(err error) error {
	var told *Error
	if errors.As(err, &told) {
		return err
	}
	reason := strings.Join(strings.Fields(s.errorText(err)), " ")
	if p := s.url.Password; p != "" {
		reason = strings.ReplaceAll(reason, p, "***")
	}
	return &Error{Database: s.url.String(), Reason: reason, Err: err}
}

func (s *Source) errorText(err error) string {
	var ofPostgres *pgconn.PgError
	var ofMySQL *mysql.MySQLError
	var ofSQLite *sqlite.Error
	var ofNet *net.OpError
	switch {
	case errors.As(err, &ofPostgres):
		return s.postgresReason(ofPostgres)
	case errors.As(err, &ofMySQL):
		return ofMySQL.Message
	case errors.As(err, &ofSQLite):
		return sqliteReason(ofSQLite)
	case errors.As(err, &ofNet) && ofNet.Op == "dial":
		return "cannot be reached: " + ofNet.Err.Error()
	case errors.Is(err, driver.ErrBadConn), errors.Is(err, mysql.ErrInvalidConn), errors.Is(err, io.ErrUnexpectedEOF):
		return "the connection broke"
	}
	if at, typ, ok := typeMismatch(err); ok && at < len(s.order) {
		return fmt.Sprintf("the value of :%s does not fit the type %s that the database expects there", s.order[at], typ)
	}
	return err.Error()
}

// typeMismatch finds out which value PostgreSQL's driver could not bring to the type
// of its place; the driver has no error value for that.
func typeMismatch(err error) (at int, typ string, ok bool) {
	if n, _ := fmt.Sscanf(err.Error(), "failed to encode args[%d]:", &at); n != 1 {
		return 0, "", false
	}
	_, typ, ok = strings.Cut(err.Error(), " format for ")
	typ, _, _ = strings.Cut(typ, " (OID")
	return at, typ, ok
}

// postgresReason is the server's message with its place in the query and its hint.
func (s *Source) postgresReason(err *pgconn.PgError) string {
	reason := err.Message
	if line, column, ok := s.query.Origin(s.text, int(err.Position)); ok && err.Position > 0 {
		reason = fmt.Sprintf("query line %d, column %d: %s", line, column, reason)
	}
	for _, more := range []string{err.Detail, err.Hint} {
		if more != "" {
			reason += " (" + strings.TrimSuffix(more, ".") + ")"
		}
	}
	return reason
}

// sqliteReason is SQLite's message without its number.
func sqliteReason(err *sqlite.Error) string {
	reason := err.Error()
	if i := strings.LastIndex(reason, " ("); i > 0 && strings.HasSuffix(reason, ")") {
		reason = reason[:i]
	}
	return strings.TrimPrefix(reason, "SQL logic error: ")
}
