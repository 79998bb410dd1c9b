package servers

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/qtype-dev/qtype/distribution/sqldb/bigquery"
	"github.com/qtype-dev/qtype/distribution/sqldb/remote"
	"github.com/qtype-dev/qtype/distribution/sqldb/snowflake"
	"github.com/qtype-dev/qtype/internal/googleauth"
	"github.com/qtype-dev/qtype/internal/sqldb"
	"github.com/qtype-dev/qtype/internal/sqlquery"
)

// bigQueryEmulator is the variable that clients of BigQuery read for the address of an emulator.
const bigQueryEmulator = "BIGQUERY_EMULATOR_HOST"

func bigQueryHost(*sqlquery.URL) string { return "bigquery.googleapis.com" }

// openBigQuery returns the pool for queries of BigQuery. The host of the URL is the project, the
// path the dataset.
func openBigQuery(u *sqlquery.URL, a sqldb.Access) (*sql.DB, error) {
	config := bigquery.Config{Endpoint: "https://" + bigQueryHost(u), Project: u.Host, Dataset: strings.ReplaceAll(strings.Trim(u.Database, "/"), "/", "."),
		Location: u.Options["location"], MaxBytes: u.Options["maximum_bytes_billed"]}
	emulator := a.Env.Getenv(bigQueryEmulator)
	if emulator != "" {
		config.Endpoint = strings.TrimRight(emulator, "/")
		if !strings.Contains(emulator, "://") {
			config.Endpoint = "http://" + config.Endpoint
		}
	}
	if a.Login != nil {
		config.Authorize = bearer(u, a.Login)
	}
	var identity *googleauth.Identity
	if config.Authorize == nil && (a.Google != nil || emulator == "") || config.Project == "" {
		if err := googleauth.Allowed(a.Env.Policy, a.Google); err != nil {
			return nil, err
		}
		made, err := googleauth.New(a.Google, a.Env.Getenv)
		if err != nil {
			return nil, err
		}
		identity = made
	}
	switch {
	case config.Authorize != nil:
	case identity != nil:
		config.Authorize = identity.Authorize
	default:
		config.Authorize = func(*http.Request) error { return nil } // emulators have no users
	}
	if config.Project == "" {
		project, err := identity.Project()
		if err != nil {
			return nil, err
		}
		config.Project = project
	}
	return remote.Open(bigquery.New(config)), nil
}

// bearer sends the password of a login as a token.
func bearer(u *sqlquery.URL, login sqldb.Login) func(*http.Request) error {
	return func(req *http.Request) error {
		_, token, err := login(req.Context(), u)
		if err == nil {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		return err
	}
}

// snowflakeHost returns the host of an account. A host with a port is that of a proxy or an emulator.
func snowflakeHost(u *sqlquery.URL) string {
	if u.Port > 0 || strings.Contains(u.Host, ".snowflakecomputing.") {
		return u.Host
	}
	return strings.ReplaceAll(u.Host, "_", "-") + ".snowflakecomputing.com"
}

var errNoToken = errors.New("no token: set an auth of type bearer_token, the option private_key_file, or a programmatic access token as the password of the URL")

// openSnowflake returns the pool for queries of Snowflake. Requests have the token of the auth, else
// one that is signed with the key of the URL, else the password of the URL, a programmatic access token.
func openSnowflake(u *sqlquery.URL, a sqldb.Access) (*sql.DB, error) {
	database, schema, _ := strings.Cut(strings.Trim(u.Database, "/"), "/")
	config := snowflake.Config{Endpoint: cmp.Or(u.Options["protocol"], "https") + "://" + sqldb.HostPort(snowflakeHost(u), u.Port),
		Database: database, Schema: schema, Warehouse: u.Options["warehouse"], Role: u.Options["role"]}
	switch file := u.Options["private_key_file"]; {
	case a.Login != nil:
		config.Authorize = bearer(u, a.Login)
	case file != "":
		config.Authorize = snowflake.NewKeyPair(file, u.Host, u.User).Authorize
	default:
		config.Authorize = bearer(u, func(_ context.Context, u *sqlquery.URL) (string, string, error) {
			if u.Password == "" {
				return "", "", errNoToken
			}
			return u.User, u.Password, nil
		})
	}
	return remote.Open(snowflake.New(config)), nil
}

// snowflakeValue converts values of a column, whose dates and times are in UTC.
func snowflakeValue(typ string) func(any) any {
	typ = strings.ToUpper(typ)
	return timeColumn(typ, typ == "TIMESTAMP_LTZ" || typ == "TIMESTAMP_TZ")
}

// remoteReason explains the value of a parameter that a service does not accept.
func remoteReason(title string) func(sqldb.Statement, error) string {
	return func(s sqldb.Statement, err error) string {
		if reported, ok := errors.AsType[*remote.ParameterError](err); ok && reported.At < len(s.Order) {
			return fmt.Sprintf("the value of :%s %s, which %s does not accept", s.Order[reported.At], reported.Reason, title)
		}
		return ""
	}
}
