package sqldb

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite" // the driver named sqlite

	"github.com/qtype-dev/qtype/internal/sqlquery"
)

// connectTime is the default time limit for connecting.
const connectTime = 30 * time.Second

// busyTime is the default wait for a locked SQLite file.
const busyTime = 5 * time.Second

// seconds returns an option as a duration, or a default.
func seconds(u *sqlquery.URL, option string, fallback time.Duration) time.Duration {
	if n := u.Seconds(option); n > 0 {
		return time.Duration(n * float64(time.Second))
	}
	return fallback
}

// openSQLite opens a file for reading. It must exist unless the option mode is rwc.
func openSQLite(u *sqlquery.URL, _ Access) (*sql.DB, error) {
	mode := u.Options["mode"]
	if mode == "" {
		mode = "rw" // not ro: readers of a file in WAL mode write to its index
	}
	busy := seconds(u, "timeout", busyTime).Milliseconds()
	q := url.Values{"mode": {mode}, "_pragma": {fmt.Sprintf("busy_timeout(%d)", busy), "query_only(1)"}}
	if c := u.Options["cache"]; c != "" {
		q.Set("cache", c)
	}
	name := ":memory:"
	if u.Database != "" {
		path := url.URL{Path: filepath.ToSlash(filePath(u))}
		name = path.EscapedPath()
	} else {
		q.Set("mode", "memory")
	}
	return sql.Open("sqlite", "file:"+name+"?"+q.Encode())
}

// filePath returns the path of a URL of a file.
func filePath(u *sqlquery.URL) string {
	if u.Options["uri"] == "true" {
		return strings.TrimPrefix(u.Database, "file:")
	}
	return u.Database
}

// checkFile returns an error for a missing file, which databases report vaguely.
func checkFile(u *sqlquery.URL) error {
	if u.Database == "" || u.Options["mode"] == "rwc" || u.Options["mode"] == "memory" {
		return nil
	}
	info, err := os.Stat(filePath(u))
	switch {
	case errors.Is(err, os.ErrNotExist):
		return errors.New("no such file")
	case err == nil && info.IsDir():
		return errors.New("is a directory, not a database")
	}
	return nil
}

// openPostgres opens a PostgreSQL database. Sessions are read-only unless the option
// `options` sets transaction_read_only.
func openPostgres(u *sqlquery.URL, a Access) (*sql.DB, error) {
	login, err := a.login()
	if err != nil {
		return nil, err
	}
	text := url.URL{Scheme: "postgres", Host: hostPort(u.Host, u.Port), Path: "/" + u.Database}
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

func hostPort(host string, port int) string {
	switch {
	case port > 0:
		return net.JoinHostPort(host, strconv.Itoa(port))
	case strings.Contains(host, ":"):
		return "[" + host + "]"
	}
	return host
}

// openMySQL opens a MySQL or MariaDB database.
func openMySQL(u *sqlquery.URL, a Access) (*sql.DB, error) {
	login, err := a.login()
	if err != nil {
		return nil, err
	}
	config := mysql.NewConfig()
	config.User, config.Passwd, config.DBName = u.User, u.Password, u.Database
	config.Net, config.Addr = "tcp", hostPort(cmp.Or(u.Host, "127.0.0.1"), cmp.Or(u.Port, 3306))
	if socket := u.Options["unix_socket"]; socket != "" {
		config.Net, config.Addr = "unix", socket
	}
	config.Timeout = seconds(u, "connect_timeout", connectTime)
	config.ReadTimeout, config.WriteTimeout = seconds(u, "read_timeout", 0), seconds(u, "write_timeout", 0)
	config.Collation = u.Options["collation"]
	config.Logger = discardLogger{}
	if mode, ok := u.Options["sql_mode"]; ok {
		config.Params = map[string]string{"sql_mode": "'" + strings.ReplaceAll(mode, "'", "''") + "'"}
	}
	if config.TLS, err = mysqlTLS(u); err != nil {
		return nil, err
	}
	if login != nil {
		err := config.Apply(mysql.BeforeConnect(func(ctx context.Context, c *mysql.Config) error {
			user, password, err := login(ctx, u)
			c.User, c.Passwd = cmp.Or(user, c.User), password
			c.AllowCleartextPasswords = c.TLS != nil // tokens are longer than what a hash is made of
			return err
		}))
		if err != nil {
			return nil, err
		}
	}
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(readOnlyConnector{connector}), nil
}

// mysqlTLS returns the TLS configuration, nil for none.
func mysqlTLS(u *sqlquery.URL) (*tls.Config, error) {
	o := u.Options
	verify := o["ssl_verify_cert"] == "true" || o["ssl_verify_cert"] == "1"
	identity := o["ssl_verify_identity"] == "true" || o["ssl_verify_identity"] == "1"
	if o["ssl_ca"] == "" && o["ssl_cert"] == "" && !verify && !identity {
		return nil, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: u.Host}
	if o["ssl_ca"] != "" {
		pem, err := os.ReadFile(o["ssl_ca"])
		if err != nil {
			return nil, fmt.Errorf("ssl_ca: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, errors.New("ssl_ca: no certificate in file")
		}
	}
	if o["ssl_cert"] != "" {
		pair, err := tls.LoadX509KeyPair(o["ssl_cert"], o["ssl_key"])
		if err != nil {
			return nil, fmt.Errorf("ssl_cert and ssl_key: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

// readOnlyConnector makes sessions of a MySQL server read-only.
type readOnlyConnector struct{ driver.Connector }

// Connect opens a session.
func (r readOnlyConnector) Connect(ctx context.Context) (driver.Conn, error) {
	c, err := r.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	exec, ok := c.(driver.ExecerContext)
	if !ok {
		return c, nil
	}
	if _, err := exec.ExecContext(ctx, "SET SESSION TRANSACTION READ ONLY", nil); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// discardLogger discards the MySQL driver's log: its errors are returned too.
type discardLogger struct{}

// Print does nothing.
func (discardLogger) Print(...any) {}
