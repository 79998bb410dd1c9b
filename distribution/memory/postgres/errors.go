package postgres

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/qtype-dev/qtype/internal/storage"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/memory/store"
)

// Codes of PostgreSQL's appendix A.
const (
	undefinedColumn = "42703"
	uniqueViolation = "23505"
)

func diagnose(err error) (store.ErrorKind, string) {
	var server *pgconn.PgError
	if errors.As(err, &server) {
		return diagnoseServer(server)
	}
	var connecting *pgconn.ConnectError
	switch {
	case errors.As(err, &connecting) && (errors.Is(err, context.DeadlineExceeded) || isTimeout(err)):
		return store.Unavailable, "connection timed out"
	case errors.As(err, &connecting) && isForeignProtocol(err):
		return store.Unavailable, "not a PostgreSQL server"
	case errors.As(err, &connecting):
		return store.Unavailable, "cannot connect: " + withoutHost(errors.Unwrap(connecting))
	case isBroken(err):
		return store.Unavailable, "the connection was lost"
	}
	return store.Unavailable, textfmt.OneLine(err.Error())
}

// isForeignProtocol reports whether another kind of server answered.
func isForeignProtocol(err error) bool {
	var length *pgproto3.ExceededMaxBodyLenErr
	return errors.As(err, &length) || strings.Contains(err.Error(), "unknown message type") // has no type in pgx
}

// problems returns the meaning of SQLSTATE codes and classes (PostgreSQL's
// appendix A). A code precedes its class.
func problems() []struct {
	state   string
	kind    store.ErrorKind
	message string
} {
	return []struct {
		state   string
		kind    store.ErrorKind
		message string
	}{
		{"25006", store.Denied, "the server is read-only: is it a standby?"},
		{"28", store.Denied, "user or password rejected"},
		{"3D000", store.Unavailable, "no such database"},
		{"3F000", store.Unavailable, "no such schema: search_path must name an existing one"},
		{"42501", store.Denied, "the user lacks permission"},
		{"42P07", store.Corrupt, "some of its tables are missing, or belong to another program: set table_prefix in the URL to use other names"},
		{"42P01", store.Corrupt, "a table is missing"},
		{"42703", store.Corrupt, "a table lacks a column that qtype created"},
		{"23", store.Corrupt, "the new data conflicts with stored data"},
		{"53100", store.Full, "the server's disk is full"},
		{"53200", store.Full, "the server is out of memory"},
		{"53300", store.Unavailable, "too many connections"},
		{"55P03", store.Locked, "locked by another process"},
		{"57014", store.Locked, "the server canceled a statement that took too long"},
		{"57P", store.Unavailable, "the server is shutting down or starting up"},
		{"58", store.Unavailable, "the server has a system error"},
		{"XX", store.Corrupt, "the database is damaged"},
	}
}

// diagnoseServer appends the server's message, which holds no password.
func diagnoseServer(server *pgconn.PgError) (store.ErrorKind, string) {
	message := textfmt.OneLine(server.Message)
	for _, p := range problems() {
		if strings.HasPrefix(server.Code, p.state) {
			return p.kind, p.message + " (" + message + ")"
		}
	}
	return store.Unavailable, message
}

// trouble reports whether trying again may help.
func trouble(err error) storage.Trouble {
	var server *pgconn.PgError
	var connecting *pgconn.ConnectError
	switch {
	case errors.As(err, &server):
		for _, state := range []string{"08", "40", "53300", "57P01", "57P02", "57P03", "57P05"} {
			if strings.HasPrefix(server.Code, state) {
				return storage.Short // see PostgreSQL's appendix A: connections, serialization, shutdown and start
			}
		}
	case errors.As(err, &connecting) && isForeignProtocol(err):
	case errors.As(err, &connecting):
		return storage.Unreachable
	case isLost(err):
		return storage.Short
	}
	return storage.Permanent
}

// isLost reports whether a connection broke or the server shut down, so that a
// new connection may work.
func isLost(err error) bool {
	var server *pgconn.PgError
	if errors.As(err, &server) {
		return server.Code == "57P01" || server.Code == "57P02" // admin shutdown, crash shutdown
	}
	var connecting *pgconn.ConnectError
	return err != nil && !errors.As(err, &connecting) && (isBroken(err) || pgconn.SafeToRetry(err))
}

// isBroken reports whether the network failed during a call.
func isBroken(err error) bool {
	var op *net.OpError
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &op) || pgconn.SafeToRetry(err)
}

func isTimeout(err error) bool {
	var op net.Error
	return errors.As(err, &op) && op.Timeout()
}

// parseReason returns why a URL is invalid, without the URL: the text of the
// innermost error, which names only the parameter.
func parseReason(err error) string {
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(err) {
		err = inner
	}
	var parse *pgconn.ParseConfigError
	if errors.As(err, &parse) { // its text includes the URL
		return "check its parameters"
	}
	return textfmt.OneLine(err.Error())
}
