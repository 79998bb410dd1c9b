package sqldb

import (
	"cmp"
	"context"
	"database/sql"
	"os"
	"strings"
	"time"

	"github.com/qtype-dev/qtype/internal/awsauth"
	"github.com/qtype-dev/qtype/internal/parts"
	"github.com/qtype-dev/qtype/internal/sqlquery"
	"github.com/qtype-dev/qtype/internal/subprocess"
	"github.com/qtype-dev/qtype/internal/trust"
	"github.com/qtype-dev/qtype/spec"
)

// Access is how connections log in. The zero Access uses the credentials of the URL, and for
// services those of the environment.
type Access struct {
	Login  Login            // the user and password of a server; nil for those of the URL
	AWS    *spec.AWSAuth    // an identity, whose tokens are passwords of servers in Amazon RDS; nil for none
	Google *spec.VertexAuth // an identity of Google Cloud; nil for none
	Azure  *spec.AzureAuth  // an identity of Microsoft Entra ID, whose tokens log in to Azure SQL; nil for none
	Kind   string           // the type of the auth, such as basic; empty without one
	Env    awsauth.Options  // for identities, and programs

	Supervisor *subprocess.Supervisor // starts processes of DuckDB; may be nil
}

// Login returns the user and the password for a new connection to a server. An empty user
// is that of the URL.
type Login func(ctx context.Context, u *sqlquery.URL) (user, password string, err error)

// Drivers are the databases that a program can query, by their dialects.
type Drivers map[sqlquery.Dialect]Driver

type driversKey struct{}

// WithDrivers returns a context in which Open knows only the databases of a table; a nil table is
// that of the core.
func WithDrivers(ctx context.Context, table Drivers) context.Context {
	return context.WithValue(ctx, driversKey{}, table)
}

// driverOf returns the driver of a dialect in a context.
func driverOf(ctx context.Context, dialect sqlquery.Dialect) (Driver, error) {
	table, _ := ctx.Value(driversKey{}).(Drivers)
	if table == nil {
		table = Core()
	}
	driver, found := table[dialect]
	if !found {
		return driver, &parts.MissingError{Kind: parts.Database, Name: string(dialect)}
	}
	return driver, nil
}

// Driver is how the databases of a dialect are used.
type Driver struct {
	// Open opens the connection pool of a database without connecting.
	Open func(u *sqlquery.URL, a Access) (*sql.DB, error)
	// Argument converts a run-time value for the driver.
	Argument func(v any) any
	// Value returns the function that converts values of a type of column, in upper case.
	Value func(typ string) func(any) any
	// Reason returns the message of an error of the driver; empty for one of another kind.
	Reason func(s Statement, err error) string
	// Idle is how long an unused connection stays open; 0 for five minutes.
	Idle time.Duration
	// Host is the server of a URL that names none; nil for localhost.
	Host func(u *sqlquery.URL) string
	// Program is the program in which queries run; empty for none.
	Program string
}

// Statement is a query whose error is explained.
type Statement struct {
	Query *sqlquery.Query
	Text  string   // as in the document
	Order []string // the parameter of each placeholder
}

// Core returns the table of the databases of the core. The caller may add others.
func Core() Drivers {
	return Drivers{sqlquery.SQLite: {Open: openSQLite, Argument: TextArgument, Value: sqliteValue, Reason: sqliteReason}}
}

// openPool opens the connection pool of a database without connecting.
func (d Driver) openPool(ctx context.Context, u *sqlquery.URL, a Access) (*sql.DB, error) {
	if a.Env.Policy == nil {
		a.Env.Policy = trust.From(ctx)
	}
	if a.Env.Getenv == nil {
		a.Env.Getenv = os.Getenv
	}
	return d.Open(u, a)
}

// kind returns the type of the auth, empty without one.
func (a Access) kind() string {
	switch {
	case a.Kind != "":
		return a.Kind
	case a.AWS != nil:
		return "aws"
	case a.Login != nil:
		return "basic"
	}
	return ""
}

// allowed returns an error if a document may not use a database, or one of the files that
// its URL names.
func (d Driver) allowed(p *trust.Policy, u *sqlquery.URL) error {
	if p == nil {
		return nil
	}
	for _, option := range []string{"sslcert", "sslkey", "sslrootcert", "ssl_ca", "ssl_cert", "ssl_key", "private_key_file"} {
		if file := u.Options[option]; file != "" {
			if err := p.Read(file); err != nil {
				return err
			}
		}
	}
	if u.Dialect.IsFile() {
		return d.allowedFile(p, u)
	}
	usual := func(*sqlquery.URL) string { return cmp.Or(u.Host, u.Options["host"], "localhost") }
	if d.Host != nil {
		usual = d.Host
	}
	hosts := []string{usual(u)}
	if other := u.Options["host"]; other != "" {
		hosts = append(hosts, strings.Split(other, ",")...)
	}
	if socket := u.Options["unix_socket"]; socket != "" {
		hosts = append(hosts, socket)
	}
	for _, host := range hosts {
		if err := p.Service(HostPort(host, u.Port)); err != nil {
			return err
		}
	}
	return nil
}

// allowedFile returns an error if a document may not use the file of a database.
func (d Driver) allowedFile(p *trust.Policy, u *sqlquery.URL) error {
	if d.Program != "" {
		if err := p.Program(d.Program); err != nil {
			return err
		}
	}
	if u.Database == "" {
		return nil
	}
	if u.Options["mode"] == "rwc" {
		if err := p.Write(filePath(u)); err != nil {
			return err
		}
	}
	return p.Read(filePath(u))
}
