package sqldb

import (
	"cmp"
	"strings"

	"github.com/qtype-dev/qtype/internal/awsauth"
	"github.com/qtype-dev/qtype/internal/sqlquery"
	"github.com/qtype-dev/qtype/internal/trust"
)

// allowed returns an error if a document may not use a database, or one of the files that
// its URL names.
func allowed(p *trust.Policy, u *sqlquery.URL) error {
	if p == nil {
		return nil
	}
	for _, option := range []string{"sslcert", "sslkey", "sslrootcert", "ssl_ca", "ssl_cert", "ssl_key"} {
		if file := u.Options[option]; file != "" {
			if err := p.Read(file); err != nil {
				return err
			}
		}
	}
	if u.Dialect == sqlquery.SQLite {
		return allowedFile(p, u)
	}
	usual := "localhost"
	if u.Dialect == sqlquery.Athena {
		usual = awsauth.Host("athena", u.Region())
	}
	hosts := []string{cmp.Or(u.Host, u.Options["host"], usual)}
	if other := u.Options["host"]; other != "" {
		hosts = append(hosts, strings.Split(other, ",")...)
	}
	if socket := u.Options["unix_socket"]; socket != "" {
		hosts = append(hosts, socket)
	}
	for _, host := range hosts {
		if err := p.Service(hostPort(host, u.Port)); err != nil {
			return err
		}
	}
	return nil
}

// allowedFile returns an error if a document may not use an SQLite file.
func allowedFile(p *trust.Policy, u *sqlquery.URL) error {
	if u.Database == "" {
		return nil
	}
	if u.Options["mode"] == "rwc" {
		if err := p.Write(sqlitePath(u)); err != nil {
			return err
		}
	}
	return p.Read(sqlitePath(u))
}
