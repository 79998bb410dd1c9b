package sqlquery

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// URL is the address of a database in SQLAlchemy's form:
// dialect+driver://user:password@host:port/database?option=value. The driver's
// name is read and means nothing here.
type URL struct {
	Dialect  Dialect           // the family of databases
	Name     string            // the dialect as it is written, without the driver
	User     string            // who connects; empty where nobody is named
	Password string            // the user's; a secret
	Host     string            // empty for a file, and for the usual local server
	Port     int               // 0 for the usual one
	Database string            // the database's name; for SQLite the file, empty for one in memory
	Options  map[string]string // what follows the question mark, known options only
}

// families says which dialect a name stands for, and which names of drivers go with it.
func families() []family {
	return []family{
		{SQLite, []string{"sqlite"}, []string{"pysqlite", "aiosqlite", "pysqlcipher"}},
		{PostgreSQL, []string{"postgresql", "postgres"}, []string{"psycopg2", "psycopg", "psycopg2cffi", "psycopg_async", "asyncpg", "pg8000"}},
		{MySQL, []string{"mysql", "mariadb"}, []string{"pymysql", "mysqldb", "mysqlconnector", "mariadbconnector", "aiomysql", "asyncmy", "cymysql"}},
	}
}

type family struct {
	dialect Dialect
	names   []string
	drivers []string
}

// optionsOf lists the options that a dialect's URL may have, in alphabetical order.
func optionsOf(d Dialect) []string {
	switch d {
	case SQLite:
		return []string{"cache", "mode", "timeout", "uri"}
	case PostgreSQL:
		return []string{"application_name", "client_encoding", "connect_timeout", "host", "options", "port", "sslcert", "sslkey",
			"sslmode", "sslpassword", "sslrootcert", "target_session_attrs"}
	case MySQL:
		return []string{"charset", "collation", "connect_timeout", "read_timeout", "sql_mode", "ssl_ca", "ssl_cert", "ssl_key",
			"ssl_verify_cert", "ssl_verify_identity", "unix_socket", "write_timeout"}
	}
	return nil
}

// ParseURL reads a database's URL. Its errors never repeat the password.
func ParseURL(text string) (*URL, error) {
	scheme, rest, ok := strings.Cut(strings.TrimSpace(text), "://")
	if !ok || scheme == "" || strings.ContainsAny(scheme, "/@?: ") {
		return nil, errors.New("is not the URL of a database: sqlite:///file.db, postgresql://user@host/database or mysql://user@host/database is expected")
	}
	u := &URL{}
	if err := u.dialect(strings.ToLower(scheme)); err != nil {
		return nil, err
	}
	if u.Dialect != SQLite {
		var err error
		if rest, err = u.userinfo(rest); err != nil {
			return nil, err
		}
	}
	rest, options, _ := strings.Cut(rest, "?")
	host, path, hasPath := strings.Cut(rest, "/")
	if u.Dialect == SQLite {
		return u, cmp.Or(u.file(host, path, hasPath), u.options(options))
	}
	u.Database = path
	return u, cmp.Or(u.server(host), u.options(options))
}

// dialect reads what stands before ://.
func (u *URL) dialect(scheme string) error {
	name, driver, _ := strings.Cut(scheme, "+")
	for _, f := range families() {
		if !slices.Contains(f.names, name) {
			continue
		}
		u.Dialect, u.Name = f.dialect, name
		if driver != "" && !slices.Contains(f.drivers, driver) {
			return fmt.Errorf("the driver %q of %s is not known; known are %s", driver, name, strings.Join(f.drivers, ", "))
		}
		return nil
	}
	return fmt.Errorf("databases of the dialect %q cannot be read: sqlite, postgresql, mysql and mariadb can", name)
}

// userinfo takes the user and the password off, and gives what follows.
func (u *URL) userinfo(rest string) (string, error) {
	before, after, ok := strings.Cut(rest, "@")
	user, password, _ := strings.Cut(before, ":")
	if !ok || strings.ContainsAny(user, "/?") {
		return rest, nil
	}
	// A password may hold an @ that nobody escaped: the host is what follows the last one.
	for {
		more, next, found := strings.Cut(after, "@")
		if !found || strings.ContainsAny(more, "/?") {
			break
		}
		password, after = password+"@"+more, next
	}
	var badUser, badPassword error
	u.User, badUser = url.PathUnescape(user)
	u.Password, badPassword = url.PathUnescape(password)
	if badUser != nil || badPassword != nil {
		return "", errors.New("the user or the password has a % that is not followed by two hexadecimal digits: write %25")
	}
	return after, nil
}

// server reads host and port.
func (u *URL) server(host string) error {
	name, port, _ := strings.Cut(host, ":")
	if end := strings.LastIndexByte(host, ']'); strings.HasPrefix(host, "[") && end > 0 { // IPv6
		name = host[1:end]
		_, port, _ = strings.Cut(host[end:], ":")
	}
	u.Host = name
	if port == "" {
		return nil
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 {
		return fmt.Errorf("the port %q is not a number from 1 to 65535", port)
	}
	u.Port = int(n)
	return nil
}

// file reads the place of an SQLite file: three slashes before a relative path, four before an absolute one.
func (u *URL) file(host, path string, hasPath bool) error {
	if host != "" {
		return fmt.Errorf("an SQLite file has no host: write sqlite:///%s with three slashes", host)
	}
	if hasPath && path != ":memory:" {
		u.Database = path
	}
	return nil
}

// options reads what follows the question mark.
func (u *URL) options(text string) error {
	if text == "" {
		return nil
	}
	values, err := url.ParseQuery(text)
	if err != nil {
		return errors.New("the options behind the ? cannot be read: option=value&option=value is expected")
	}
	names := make([]string, 0, len(values))
	for name := range values {
		names = append(names, name)
	}
	slices.Sort(names)
	u.Options = map[string]string{}
	known := optionsOf(u.Dialect)
	for _, name := range names {
		switch {
		case !slices.Contains(known, name):
			return fmt.Errorf("the option %q of a %s URL is not known; known are %s", name, u.Name, strings.Join(known, ", "))
		case len(values[name]) > 1:
			return fmt.Errorf("the option %q stands twice", name)
		}
		u.Options[name] = values[name][0]
	}
	return u.check()
}

// check looks at the values that only have a few meanings.
func (u *URL) check() error {
	for _, c := range []struct {
		dialect Dialect
		option  string
		values  []string
	}{
		{SQLite, "mode", []string{"ro", "rw", "rwc", "memory"}},
		{SQLite, "cache", []string{"shared", "private"}},
		{SQLite, "uri", []string{"true", "false"}},
		{PostgreSQL, "sslmode", []string{"disable", "allow", "prefer", "require", "verify-ca", "verify-full"}},
		{PostgreSQL, "client_encoding", []string{"utf8", "UTF8", "utf-8", "UTF-8"}},
		{MySQL, "charset", []string{"utf8mb4", "utf8"}},
		{MySQL, "ssl_verify_cert", []string{"true", "false", "1", "0"}},
		{MySQL, "ssl_verify_identity", []string{"true", "false", "1", "0"}},
	} {
		if v, ok := u.Options[c.option]; ok && c.dialect == u.Dialect && !slices.Contains(c.values, v) {
			return fmt.Errorf("the option %s is %q; it may be %s", c.option, v, strings.Join(c.values, ", "))
		}
	}
	for _, option := range []string{"timeout", "connect_timeout", "read_timeout", "write_timeout"} {
		v, ok := u.Options[option]
		if n, err := strconv.ParseFloat(v, 64); ok && (err != nil || n <= 0 || n > 1e6) {
			return fmt.Errorf("the option %s is %q; a number of seconds above 0 is expected", option, v)
		}
	}
	return nil
}

// Seconds is an option that was checked to be a number of seconds; 0 where it is not there.
func (u *URL) Seconds(option string) float64 {
	n, _ := strconv.ParseFloat(u.Options[option], 64)
	return n
}

// String is the address without its password, for a person.
func (u *URL) String() string {
	if u.Dialect == SQLite {
		if u.Database == "" {
			return "sqlite://"
		}
		return "sqlite:///" + u.Database
	}
	at := u.Host
	if strings.Contains(at, ":") {
		at = "[" + at + "]"
	}
	if u.Port > 0 {
		at += ":" + strconv.Itoa(u.Port)
	}
	if u.User != "" {
		at = u.User + "@" + at
	}
	return u.Name + "://" + at + "/" + u.Database
}
