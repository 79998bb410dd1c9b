package sqldb

import (
	"cmp"
	"strings"

	"github.com/qtype-dev/qtype/internal/sqlquery"
	"github.com/qtype-dev/qtype/internal/trust"
)

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
