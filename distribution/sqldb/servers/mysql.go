package servers

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/go-sql-driver/mysql"

	"github.com/qtype-dev/qtype/internal/sqldb"
	"github.com/qtype-dev/qtype/internal/sqlquery"
	"github.com/qtype-dev/qtype/spec/value"
)

// openMySQL opens a MySQL or MariaDB database.
func openMySQL(u *sqlquery.URL, a sqldb.Access) (*sql.DB, error) {
	login, err := loginOf(a)
	if err != nil {
		return nil, err
	}
	config := mysql.NewConfig()
	config.User, config.Passwd, config.DBName = u.User, u.Password, u.Database
	config.Net, config.Addr = "tcp", sqldb.HostPort(cmp.Or(u.Host, "127.0.0.1"), cmp.Or(u.Port, 3306))
	if socket := u.Options["unix_socket"]; socket != "" {
		config.Net, config.Addr = "unix", socket
	}
	config.Timeout = sqldb.Seconds(u, "connect_timeout", connectTime)
	config.ReadTimeout, config.WriteTimeout = sqldb.Seconds(u, "read_timeout", 0), sqldb.Seconds(u, "write_timeout", 0)
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

// mysqlValue converts values of a MySQL column. The driver returns texts and decimals
// as bytes.
func mysqlValue(typ string) func(any) any {
	isBytes := strings.HasSuffix(typ, "BLOB") || strings.HasSuffix(typ, "BINARY") || typ == "GEOMETRY"
	return func(v any) any {
		b, ok := v.([]byte)
		switch {
		case !ok:
			if f, isFloat := v.(float32); isFloat {
				return value.FromFloat32(f)
			}
			return v
		case typ == "BIT" && len(b) <= 8:
			var n uint64
			for _, c := range b {
				n = n<<8 | uint64(c)
			}
			return value.FromGo(n)
		case isBytes || !utf8.Valid(b):
			return b
		case typ == "DECIMAL":
			return value.Decimal(b)
		}
		return string(b)
	}
}

func mysqlReason(_ sqldb.Statement, err error) string {
	if reported, ok := errors.AsType[*mysql.MySQLError](err); ok {
		return reported.Message
	}
	if errors.Is(err, mysql.ErrInvalidConn) {
		return "the connection was lost"
	}
	return ""
}
