package sqldb

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/qtype-dev/qtype/internal/awsauth"
	"github.com/qtype-dev/qtype/internal/sqldb/athena"
	"github.com/qtype-dev/qtype/internal/sqlquery"
	"github.com/qtype-dev/qtype/internal/trust"
	"github.com/qtype-dev/qtype/spec"
)

// Access is how connections log in. The zero Access uses the credentials of the URL and, for
// Athena, those of the environment.
type Access struct {
	Login Login           // the user and password of a server; nil for those of the URL
	AWS   *spec.AWSAuth   // an identity, whose tokens are passwords of servers in Amazon RDS; nil for none
	Env   awsauth.Options // for identities
}

// Login returns the user and the password for a new connection to a server. An empty user
// is that of the URL.
type Login func(ctx context.Context, u *sqlquery.URL) (user, password string, err error)

// openPool opens the connection pool of a database without connecting.
func openPool(ctx context.Context, u *sqlquery.URL, a Access) (*sql.DB, error) {
	if a.Env.Policy == nil {
		a.Env.Policy = trust.From(ctx)
	}
	switch u.Dialect {
	case sqlquery.Athena:
		return openAthena(u, a)
	case sqlquery.SQLite:
		return openSQLite(u)
	}
	if a.AWS != nil {
		signer, err := awsauth.New(a.AWS, a.Env)
		if err != nil {
			return nil, err
		}
		a.Login = func(ctx context.Context, u *sqlquery.URL) (string, string, error) {
			token, err := signer.DatabaseToken(ctx, u.Host, cmp.Or(u.Port, u.Dialect.Port()), u.User, time.Now())
			return "", token, err
		}
	}
	if u.Dialect == sqlquery.MySQL {
		return openMySQL(u, a.Login)
	}
	return openPostgres(u, a.Login)
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
	return sql.OpenDB(athena.NewConnector(config)), nil
}

// athenaEndpoint returns the address of the service: that of the environment, else the host of
// the URL, else that of the region.
func athenaEndpoint(u *sqlquery.URL, region string, getenv func(string) string) string {
	if address := awsauth.Endpoint("ATHENA", getenv); address != "" {
		return strings.TrimRight(address, "/") + "/"
	}
	return "https://" + hostPort(cmp.Or(u.Host, awsauth.Host("athena", region)), u.Port) + "/"
}
