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
	mssql "github.com/microsoft/go-mssqldb"
	"modernc.org/sqlite"

	"github.com/qtype-dev/qtype/internal/httpx"
	"github.com/qtype-dev/qtype/internal/sqldb/remote"
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
	var postgresErr *pgconn.PgError
	var mysqlErr *mysql.MySQLError
	var sqliteErr *sqlite.Error
	var sqlServerErr mssql.Error
	var netErr *net.OpError
	var parameterErr *remote.ParameterError
	switch {
	case errors.As(err, &postgresErr):
		return s.postgresReason(postgresErr)
	case errors.As(err, &mysqlErr):
		return mysqlErr.Message
	case errors.As(err, &sqlServerErr):
		return sqlServerErr.Message
	case errors.As(err, &sqliteErr):
		return sqliteReason(sqliteErr)
	case errors.As(err, &parameterErr) && parameterErr.At < len(s.order):
		return fmt.Sprintf("the value of :%s %s, which %s does not accept", s.order[parameterErr.At], parameterErr.Reason, s.url.Dialect.Title())
	case errors.As(err, &netErr) && netErr.Op == "dial":
		return "cannot connect: " + netErr.Err.Error()
	case errors.Is(err, driver.ErrBadConn), errors.Is(err, mysql.ErrInvalidConn), errors.Is(err, io.ErrUnexpectedEOF):
		return "the connection was lost"
	}
	if at, typ, ok := typeMismatch(err); ok && at < len(s.order) {
		return fmt.Sprintf("the value of :%s does not have the type %s, which the database expects", s.order[at], typ)
	}
	return err.Error()
}

// typeMismatch parses the error of PostgreSQL's driver for a value that does not fit
// its placeholder. The driver has no error type for it.
func typeMismatch(err error) (at int, typ string, ok bool) {
	if n, _ := fmt.Sscanf(err.Error(), "failed to encode args[%d]:", &at); n != 1 {
		return 0, "", false
	}
	_, typ, ok = strings.Cut(err.Error(), " format for ")
	typ, _, _ = strings.Cut(typ, " (OID")
	return at, typ, ok
}

// postgresReason returns the server's message with its position and hints.
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

// sqliteReason returns SQLite's message without its number.
func sqliteReason(err *sqlite.Error) string {
	reason := err.Error()
	if i := strings.LastIndex(reason, " ("); i > 0 && strings.HasSuffix(reason, ")") {
		reason = reason[:i]
	}
	return strings.TrimPrefix(reason, "SQL logic error: ")
}
