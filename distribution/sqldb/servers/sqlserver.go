package servers

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/golang-sql/civil"
	mssql "github.com/microsoft/go-mssqldb"
	"github.com/microsoft/go-mssqldb/msdsn"

	"github.com/qtype-dev/qtype/internal/azureauth"
	"github.com/qtype-dev/qtype/internal/sqldb"
	"github.com/qtype-dev/qtype/internal/sqlquery"
	"github.com/qtype-dev/qtype/spec/value"
)

// azureSQL is the resource of tokens for Azure SQL.
const azureSQL = "https://database.windows.net"

// openSQLServer opens a database of SQL Server. Connections are encrypted unless the URL sets another
// value; its server has no sessions that only read, so sqlquery checks the statement.
func openSQLServer(u *sqlquery.URL, a sqldb.Access) (*sql.DB, error) {
	config, err := sqlServerConfig(u)
	if err != nil {
		return nil, err
	}
	c := &sqlServerConnector{url: u, config: config, login: a.Login}
	if a.Azure != nil {
		if c.identity, err = azureauth.New(a.Azure, azureauth.Options{Getenv: a.Env.Getenv, Secret: a.Env.Secret, Policy: a.Env.Policy}); err != nil {
			return nil, err
		}
	}
	return sql.OpenDB(c), nil
}

// sqlServerConfig returns the configuration of a URL.
func sqlServerConfig(u *sqlquery.URL) (msdsn.Config, error) {
	encrypt := map[string]string{"yes": "true", "no": "disable", "strict": "strict"}[cmp.Or(u.Options["encrypt"], "yes")]
	options := url.Values{"encrypt": {encrypt}, "database": {u.Database}, "app name": {cmp.Or(u.Options["app_name"], "qtype")},
		"dial timeout": {strconv.Itoa(int(sqldb.Seconds(u, "connect_timeout", connectTime).Seconds()))}}
	if u.Options["trust_server_certificate"] == "yes" {
		options.Set("trustservercertificate", "true")
	}
	text := url.URL{Scheme: "sqlserver", Host: sqldb.HostPort(cmp.Or(u.Host, "localhost"), cmp.Or(u.Port, u.Dialect.Port())), RawQuery: options.Encode()}
	if u.User != "" {
		text.User = url.UserPassword(u.User, u.Password)
	}
	return msdsn.Parse(text.String())
}

// sqlServerConnector opens connections with the user and password, or the token, of the time.
type sqlServerConnector struct {
	url      *sqlquery.URL
	config   msdsn.Config
	login    sqldb.Login
	identity *azureauth.Identity
}

// Connect opens a connection.
func (c *sqlServerConnector) Connect(ctx context.Context) (driver.Conn, error) {
	config := c.config
	if c.identity != nil {
		connector, err := mssql.NewSecurityTokenConnector(config, func(ctx context.Context) (string, error) { return c.identity.Token(ctx, azureSQL) })
		if err != nil {
			return nil, err
		}
		return connector.Connect(ctx)
	}
	if c.login != nil {
		user, password, err := c.login(ctx, c.url)
		if err != nil {
			return nil, err
		}
		config.User, config.Password = cmp.Or(user, config.User), password
	}
	return mssql.NewConnectorConfig(config).Connect(ctx)
}

// Driver returns the driver.
func (c *sqlServerConnector) Driver() driver.Driver { return &mssql.Driver{} }

// sqlServerArgument converts a run-time value. Dates and times have their types, because
// the meaning of a text depends on the language of the login.
func sqlServerArgument(v any) any {
	switch v := v.(type) {
	case value.Date:
		return civil.Date{Year: v.Year, Month: v.Month, Day: v.Day}
	case value.DateTime:
		if v.Zoned {
			return v.Time // datetimeoffset
		}
		return civil.DateTimeOf(v.Time)
	}
	return sqldb.TextArgument(v)
}

// sqlServerValue converts values of a column. The driver returns decimals as bytes, and all dates and
// times as a time.
func sqlServerValue(typ string) func(any) any {
	switch strings.ToUpper(typ) {
	case "DECIMAL", "NUMERIC", "MONEY", "SMALLMONEY":
		return func(v any) any {
			if digits, ok := v.([]byte); ok {
				return value.Decimal(digits)
			}
			return v
		}
	case "UNIQUEIDENTIFIER":
		return func(v any) any {
			var id mssql.UniqueIdentifier
			if raw, ok := v.([]byte); ok && id.Scan(raw) == nil {
				return id.String()
			}
			return v
		}
	case "REAL":
		return func(v any) any {
			if f, ok := v.(float64); ok {
				return value.FromFloat32(float32(f))
			}
			return v
		}
	}
	return timeColumn(typ, typ == "DATETIMEOFFSET")
}

func sqlServerReason(_ sqldb.Statement, err error) string {
	if reported, ok := errors.AsType[mssql.Error](err); ok {
		return reported.Message
	}
	return ""
}

// clock returns a time of day in ISO form, without zeros at its end.
func clock(t time.Time) string {
	return strings.TrimRight(strings.TrimRight(t.Format("15:04:05.000000000"), "0"), ".")
}

// timeColumn converts dates and times of a column of a type; zoned reports whether it has times with a zone.
func timeColumn(typ string, zoned bool) func(any) any {
	return func(v any) any {
		t, ok := v.(time.Time)
		switch {
		case !ok:
			return v
		case typ == "TIME":
			return clock(t)
		}
		return sqldb.TimeValue(t, typ == "DATE", zoned)
	}
}
