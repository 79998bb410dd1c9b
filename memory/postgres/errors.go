package postgres

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/qtype-dev/qtype/internal/paging"
	"github.com/qtype-dev/qtype/memory"
)

// Codes of PostgreSQL's appendix A.
const (
	undefinedColumn = "42703"
	uniqueViolation = "23505"
)

// explain makes one clear line of what the server, the network or the driver
// says. Ctx is the bounded one: it knows who ran out of time.
func (s *Store) explain(ctx context.Context, err error) error {
	var known *memory.StoreError
	if err == nil || errors.Is(err, memory.ErrConflict) || errors.Is(err, memory.ErrDuplicateMessage) || errors.As(err, &known) {
		return err
	}
	if slow, stopped := paging.Cause(ctx); slow {
		return &memory.StoreError{Place: s.place, Problem: memory.Unavailable, Message: context.Cause(ctx).Error(), Err: err}
	} else if stopped != nil {
		return stopped
	}
	problem, message := diagnose(err)
	return &memory.StoreError{Place: s.place, Problem: problem, Message: message, Err: err}
}

func diagnose(err error) (memory.ErrorKind, string) {
	var fault *pgconn.PgError
	if errors.As(err, &fault) {
		return diagnoseServer(fault)
	}
	var connecting *pgconn.ConnectError
	switch {
	case errors.As(err, &connecting) && (errors.Is(err, context.DeadlineExceeded) || timedOut(err)):
		return memory.Unavailable, "it does not take a connection"
	case errors.As(err, &connecting) && isForeignSchema(err):
		return memory.Unavailable, "what answers there does not speak PostgreSQL's protocol"
	case errors.As(err, &connecting):
		return memory.Unavailable, "it cannot be reached: " + withoutHost(errors.Unwrap(connecting))
	case broken(err):
		return memory.Unavailable, "the connection was lost"
	}
	return memory.Unavailable, oneLine(err)
}

// isForeignSchema tells whether what answered a connection was no PostgreSQL server.
func isForeignSchema(err error) bool {
	var length *pgproto3.ExceededMaxBodyLenErr
	return errors.As(err, &length) || strings.Contains(err.Error(), "unknown message type") // this one has no type
}

// problems are what the classes of SQLSTATE mean (PostgreSQL's appendix A), the
// longest prefix first.
func problems() []struct {
	state   string
	problem memory.ErrorKind
	message string
} {
	return []struct {
		state   string
		problem memory.ErrorKind
		message string
	}{
		{"25006", memory.Denied, "it only lets read: is it a standby?"},
		{"28", memory.Denied, "it refuses the user or the password"},
		{"3D000", memory.Unavailable, "there is no such database"},
		{"3F000", memory.Unavailable, "there is no such schema; search_path names one that exists"},
		{"42501", memory.Denied, "the user lacks permission"},
		{"42P07", memory.Corrupt, "its tables are not all there, or another program's; table_prefix in the URL chooses other names"},
		{"42P01", memory.Corrupt, "a table is missing"},
		{"42703", memory.Corrupt, "a table is not as qtype made it"},
		{"23", memory.Corrupt, "what it holds contradicts what is to be added"},
		{"53100", memory.Full, "no room is left on its disk"},
		{"53200", memory.Full, "it is out of memory"},
		{"53300", memory.Unavailable, "it takes no more connections"},
		{"55P03", memory.Locked, "another program keeps it locked"},
		{"57014", memory.Locked, "it cancelled the statement, which took too long"},
		{"57P", memory.Unavailable, "it is shutting down or starting up"},
		{"58", memory.Unavailable, "its disk or its system fails"},
		{"XX", memory.Corrupt, "the database is damaged"},
	}
}

// diagnoseServer adds the server's own words, which name no password.
func diagnoseServer(fault *pgconn.PgError) (memory.ErrorKind, string) {
	words := strings.Join(strings.Fields(fault.Message), " ")
	for _, p := range problems() {
		if strings.HasPrefix(fault.Code, p.state) {
			return p.problem, p.message + " (" + words + ")"
		}
	}
	return memory.Unavailable, words
}

// lost tells whether err says that a connection broke, or that the server was
// just going: then a new connection may do.
func lost(err error) bool {
	var fault *pgconn.PgError
	if errors.As(err, &fault) {
		return fault.Code == "57P01" || fault.Code == "57P02" // it shuts down; it crashed
	}
	var connecting *pgconn.ConnectError
	return err != nil && !errors.As(err, &connecting) && (broken(err) || pgconn.SafeToRetry(err))
}

// broken tells whether the network failed under a connection.
func broken(err error) bool {
	var op *net.OpError
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &op) || pgconn.SafeToRetry(err)
}

func timedOut(err error) bool {
	var op net.Error
	return errors.As(err, &op) && op.Timeout()
}

// reason is why a URL cannot be used, without the URL: that of the innermost
// error, which knows the parameter only.
func reason(err error) string {
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(err) {
		err = inner
	}
	var parse *pgconn.ParseConfigError
	if errors.As(err, &parse) { // its text holds the URL
		return "is a parameter misspelt?"
	}
	return oneLine(err)
}
