package servers

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/qtype-dev/qtype/internal/sqldb"
	"github.com/qtype-dev/qtype/internal/sqlquery"
	"github.com/qtype-dev/qtype/spec/value"
)

// openPostgres opens a PostgreSQL database. Sessions are read-only unless the option
// `options` sets transaction_read_only.
func openPostgres(u *sqlquery.URL, a sqldb.Access) (*sql.DB, error) {
	login, err := loginOf(a)
	if err != nil {
		return nil, err
	}
	text := url.URL{Scheme: "postgres", Host: sqldb.HostPort(u.Host, u.Port), Path: "/" + u.Database}
	if u.User != "" {
		text.User = url.UserPassword(u.User, u.Password)
	}
	options := url.Values{}
	for name, v := range u.Options {
		if name != "client_encoding" { // always UTF-8
			options.Set(name, v)
		}
	}
	text.RawQuery = options.Encode()
	config, err := pgx.ParseConfig(text.String())
	if err != nil {
		return nil, err
	}
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = connectTime
	}
	var hooks []stdlib.OptionOpenDB
	if !strings.Contains(u.Options["options"], "transaction_read_only") {
		hooks = append(hooks, stdlib.OptionAfterConnect(func(ctx context.Context, c *pgx.Conn) error {
			_, err := c.Exec(ctx, "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY")
			return err
		}))
	}
	if login != nil {
		hooks = append(hooks, stdlib.OptionBeforeConnect(func(ctx context.Context, c *pgx.ConnConfig) error {
			user, password, err := login(ctx, u)
			c.User, c.Password = cmp.Or(user, c.User), password
			return err
		}))
	}
	return stdlib.OpenDB(*config, hooks...), nil
}

// postgresArgument converts a run-time value for PostgreSQL, where lists are arrays.
func postgresArgument(v any) any {
	switch v := v.(type) {
	case int64:
		return number{pgtype.Int8{Int64: v, Valid: true}, value.Text(v)}
	case value.DateTime:
		return v.String()
	case []any:
		items := make([]any, len(v))
		for i, item := range v {
			items[i] = postgresArgument(item)
		}
		return items
	}
	return sqldb.TextArgument(v)
}

// number is a whole number that PostgreSQL may also use as text.
type number struct {
	pgtype.Int8
	text string
}

// TextValue returns the digits.
func (n number) TextValue() (pgtype.Text, error) {
	return pgtype.Text{String: n.text, Valid: true}, nil
}

// postgresValue converts values of a PostgreSQL column. The elements of an array are
// texts, which the declared type converts.
func postgresValue(typ string) func(any) any {
	if element, ok := strings.CutPrefix(typ, "_"); ok && element != "" {
		types := pgtype.NewMap()
		array, known := types.TypeForName(strings.ToLower(typ))
		return func(v any) any {
			text, isText := v.(string)
			var items pgtype.Array[*string]
			if !known || !isText || types.Scan(array.OID, pgtype.TextFormatCode, []byte(text), &items) != nil {
				return v
			}
			return nested(items.Elements, items.Dims)
		}
	}
	return func(v any) any {
		switch v := v.(type) {
		case time.Time:
			return sqldb.TimeValue(v, typ == "DATE", typ == "TIMESTAMPTZ")
		case []byte:
			if typ != "BYTEA" {
				return string(v) // JSON
			}
		case string:
			if typ == "NUMERIC" {
				return value.Decimal(v)
			}
		case float64:
			if typ == "FLOAT4" {
				return value.FromFloat32(float32(v))
			}
		}
		return v
	}
}

// nested returns the elements of an array as lists, one in the other for each dimension.
func nested(items []*string, dimensions []pgtype.ArrayDimension) []any {
	if len(dimensions) > 1 {
		out := make([]any, dimensions[0].Length)
		size := len(items) / len(out)
		for i := range out {
			out[i] = nested(items[i*size:(i+1)*size], dimensions[1:])
		}
		return out
	}
	out := make([]any, len(items))
	for i, item := range items {
		if item != nil {
			out[i] = *item
		}
	}
	return out
}

// postgresReason returns the message of an error with the place in the query.
func postgresReason(s sqldb.Statement, err error) string {
	if reported, ok := errors.AsType[*pgconn.PgError](err); ok {
		return serverReason(s, reported)
	}
	if at, typ, ok := typeMismatch(err); ok && at < len(s.Order) {
		return fmt.Sprintf("the value of :%s does not have the type %s, which the database expects", s.Order[at], typ)
	}
	return ""
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

// serverReason returns the server's message with its position and hints.
func serverReason(s sqldb.Statement, err *pgconn.PgError) string {
	reason := err.Message
	if line, column, ok := s.Query.Origin(s.Text, int(err.Position)); ok && err.Position > 0 {
		reason = fmt.Sprintf("query line %d, column %d: %s", line, column, reason)
	}
	for _, more := range []string{err.Detail, err.Hint} {
		if more != "" {
			reason += " (" + strings.TrimSuffix(more, ".") + ")"
		}
	}
	return reason
}
