package sqldb

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/qtype-dev/qtype/internal/awsauth"
	"github.com/qtype-dev/qtype/internal/sqldb/athena"
	"github.com/qtype-dev/qtype/internal/sqldb/remote"
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

// engine is how the databases of a dialect are used.
type engine struct {
	// open opens the connection pool of a database without connecting.
	open func(u *sqlquery.URL, a Access) (*sql.DB, error)
	// argument converts a run-time value for the driver.
	argument func(v any) any
	// value returns the function that converts values of a type of column, in upper case.
	value func(typ string) func(any) any
	// idle is how long an unused connection stays open; 0 for idleTime.
	idle time.Duration
	// host is the server of a URL that names none; nil for localhost.
	host func(u *sqlquery.URL) string
}

// engines returns the table of dialects.
func engines() map[sqlquery.Dialect]engine {
	plain := func(v any) any { return v }
	return map[sqlquery.Dialect]engine{
		sqlquery.SQLite:     {open: openSQLite, argument: textArgument, value: sqliteValue},
		sqlquery.PostgreSQL: {open: openPostgres, argument: postgresArgument, value: postgresValue},
		sqlquery.MySQL:      {open: openMySQL, argument: textArgument, value: mysqlValue},
		sqlquery.SQLServer:  {open: openSQLServer, argument: sqlServerArgument, value: sqlServerValue},
		sqlquery.Athena:     {open: openAthena, argument: func(v any) any { return literal(v) }, value: athenaValue, host: athenaHost},
		sqlquery.BigQuery:   {open: openBigQuery, argument: plain, value: func(string) func(any) any { return plain }, host: bigQueryHost},
		sqlquery.Snowflake:  {open: openSnowflake, argument: plain, value: snowflakeValue, host: snowflakeHost},
		sqlquery.DuckDB:     {open: openDuckDB, argument: plain, value: func(string) func(any) any { return plain }, idle: duckDBIdle},
	}
}

// openPool opens the connection pool of a database without connecting.
func openPool(ctx context.Context, u *sqlquery.URL, a Access) (*sql.DB, error) {
	if a.Env.Policy == nil {
		a.Env.Policy = trust.From(ctx)
	}
	if a.Env.Getenv == nil {
		a.Env.Getenv = os.Getenv
	}
	return engines()[u.Dialect].open(u, a)
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

// login returns how connections to a server log in: with tokens of the AWS identity, if there is one.
func (a Access) login() (Login, error) {
	if a.AWS == nil {
		return a.Login, nil
	}
	signer, err := awsauth.New(a.AWS, a.Env)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, u *sqlquery.URL) (string, string, error) {
		token, err := signer.DatabaseToken(ctx, u.Host, cmp.Or(u.Port, u.Dialect.Port()), u.User, time.Now())
		return "", token, err
	}, nil
}

// openAthena returns the pool for queries of Athena. The identity is that of the document, else
// the keys of the URL, else that of the environment.
func openAthena(u *sqlquery.URL, a Access) (*sql.DB, error) {
	identity := a.AWS
	if identity == nil && u.User != "" {
		identity = &spec.AWSAuth{AccessKeyID: spec.NewSecret(u.User), SecretAccessKey: spec.NewSecret(u.Password)}
	}
	signer, err := awsauth.New(identity, a.Env)
	if err != nil {
		return nil, err
	}
	signer = signer.In(u.Region())
	region, err := signer.Region()
	if err != nil {
		return nil, errors.New("no AWS region: write awsathena+rest://@athena.REGION.amazonaws.com/database")
	}
	config := athena.Config{
		Endpoint: athenaEndpoint(u, region, a.Env.Getenv), Database: u.Database, Catalog: u.Options["catalog_name"],
		Output: u.Options["s3_staging_dir"], WorkGroup: u.Options["work_group"],
		Sign: func(req *http.Request, body []byte) error { return signer.Sign(req, body, "athena") },
	}
	return remote.Open(athena.New(config)), nil
}

func athenaHost(u *sqlquery.URL) string { return cmp.Or(u.Host, awsauth.Host("athena", u.Region())) }

// athenaEndpoint returns the address of the service: that of the environment, else the host of
// the URL, else that of the region.
func athenaEndpoint(u *sqlquery.URL, region string, getenv func(string) string) string {
	if address := awsauth.Endpoint("ATHENA", getenv); address != "" {
		return strings.TrimRight(address, "/") + "/"
	}
	return "https://" + hostPort(cmp.Or(u.Host, awsauth.Host("athena", region)), u.Port) + "/"
}
