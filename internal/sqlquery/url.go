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

// URL is a database address in SQLAlchemy's form:
// dialect+driver://user:password@host:port/database?option=value. The driver is
// checked and otherwise ignored.
type URL struct {
	Dialect  Dialect
	Name     string            // dialect as written, without the driver
	User     string            // may be empty
	Password string            // secret
	Host     string            // empty for a file and for the default server
	Port     int               // 0 for the default
	Database string            // name; for SQLite and DuckDB the path, empty for a database in memory
	Options  map[string]string // known options only
}

// ParseURL parses a database URL. Errors do not contain the password.
func ParseURL(text string) (*URL, error) {
	scheme, rest, ok := strings.Cut(strings.TrimSpace(text), "://")
	if !ok || scheme == "" || strings.ContainsAny(scheme, "/@?: ") {
		return nil, errors.New("invalid database URL: expected sqlite:///file.db, postgresql://user@host/database or mysql://user@host/database")
	}
	u := &URL{}
	if err := u.dialect(strings.ToLower(scheme)); err != nil {
		return nil, err
	}
	if !u.Dialect.IsFile() {
		var err error
		if rest, err = u.userinfo(rest); err != nil {
			return nil, err
		}
	}
	rest, options, _ := strings.Cut(rest, "?")
	host, path, hasPath := strings.Cut(rest, "/")
	if u.Dialect.IsFile() {
		return u, cmp.Or(u.file(host, path, hasPath), u.options(options))
	}
	u.Database = path
	return u, cmp.Or(u.server(host), u.options(options), u.checkAthena(), u.checkBigQuery(), u.checkSnowflake())
}

// dialect parses the part before ://.
func (u *URL) dialect(scheme string) error {
	name, driver, _ := strings.Cut(scheme, "+")
	for _, f := range families() {
		if !slices.Contains(f.names, name) {
			continue
		}
		u.Dialect, u.Name = f.dialect, name
		switch {
		case driver != "" && len(f.drivers) == 0:
			return fmt.Errorf("unknown driver %q: a URL of %s begins with %s://", driver, f.title, name)
		case driver != "" && !slices.Contains(f.drivers, driver):
			return fmt.Errorf("unknown driver %q of %s; use one of %s", driver, name, strings.Join(f.drivers, ", "))
		}
		return nil
	}
	var names []string
	for _, f := range families() {
		names = append(names, f.names...)
	}
	return fmt.Errorf("unsupported database dialect %q; use one of %s", name, strings.Join(names, ", "))
}

// userinfo parses the user and the password and returns the rest.
func (u *URL) userinfo(rest string) (string, error) {
	before, after, ok := strings.Cut(rest, "@")
	user, password, _ := strings.Cut(before, ":")
	if !ok || strings.ContainsAny(user, "/?") {
		return rest, nil
	}
	// The password may have an unescaped @: the host follows the last one.
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
		return "", errors.New("invalid % in the user or the password: write %25")
	}
	return after, nil
}

// server parses host and port.
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
		return fmt.Errorf("invalid port %q: use a number from 1 to 65535", port)
	}
	u.Port = int(n)
	return nil
}

// file parses the path of a file: relative after three slashes, absolute
// after four.
func (u *URL) file(host, path string, hasPath bool) error {
	if host != "" {
		return fmt.Errorf("a %s URL has no host: write %s:///%s with three slashes", u.Dialect.family().title, u.Name, host)
	}
	if hasPath && path != ":memory:" {
		u.Database = path
	}
	return nil
}

// options parses the query of the URL.
func (u *URL) options(text string) error {
	if text == "" {
		return nil
	}
	values, err := url.ParseQuery(text)
	if err != nil {
		return errors.New("invalid options: expected option=value&option=value after the ?")
	}
	names := make([]string, 0, len(values))
	for name := range values {
		names = append(names, name)
	}
	slices.Sort(names)
	u.Options = map[string]string{}
	known := u.Dialect.family().options
	for _, name := range names {
		switch {
		case !slices.Contains(known, name):
			return fmt.Errorf("unknown option %q of a %s URL; use one of %s", name, u.Name, strings.Join(known, ", "))
		case len(values[name]) > 1:
			return fmt.Errorf("duplicate option %q", name)
		}
		u.Options[name] = values[name][0]
	}
	return cmp.Or(u.check(), u.checkDuckDB())
}

// check validates options with a fixed set of values.
func (u *URL) check() error {
	for option, values := range u.Dialect.family().values {
		if v, ok := u.Options[option]; ok && !slices.Contains(values, v) {
			return fmt.Errorf("invalid option %s %q: use one of %s", option, v, strings.Join(values, ", "))
		}
	}
	for _, option := range []string{"timeout", "connect_timeout", "read_timeout", "write_timeout"} {
		v, ok := u.Options[option]
		if n, err := strconv.ParseFloat(v, 64); ok && (err != nil || n <= 0 || n > 1e6) {
			return fmt.Errorf("invalid option %s %q: use a number of seconds above 0", option, v)
		}
	}
	return nil
}

// checkAthena validates what a URL of Athena needs.
func (u *URL) checkAthena() error {
	if u.Dialect != Athena {
		return nil
	}
	folder, group := u.Options["s3_staging_dir"], u.Options["work_group"]
	switch {
	case folder == "" && group == "":
		return errors.New("a URL of Athena needs s3_staging_dir=s3://bucket/folder/, or a work_group with a folder for results")
	case folder != "" && !strings.HasPrefix(folder, "s3://"):
		return fmt.Errorf("invalid option s3_staging_dir %q: expected s3://bucket/folder/", folder)
	case (u.User == "") != (u.Password == ""):
		return errors.New("the user of a URL of Athena is an access key, and its password the key that signs: set both, or none")
	}
	return nil
}

// Region returns the AWS region of a URL of Athena, empty for that of the identity.
func (u *URL) Region() string {
	if region := u.Options["region_name"]; region != "" {
		return region
	}
	parts := strings.Split(u.Host, ".")
	if len(parts) > 2 && parts[0] == "athena" {
		return parts[1]
	}
	return ""
}

// checkBigQuery validates what a URL of BigQuery needs: bigquery://project/dataset.
func (u *URL) checkBigQuery() error {
	if u.Dialect != BigQuery {
		return nil
	}
	if u.User != "" || u.Port > 0 {
		return errors.New("a URL of BigQuery has no user, password and port: write bigquery://project/dataset")
	}
	if limit, ok := u.Options["maximum_bytes_billed"]; ok {
		if n, err := strconv.ParseInt(limit, 10, 64); err != nil || n <= 0 {
			return fmt.Errorf("invalid option maximum_bytes_billed %q: use a number of bytes above 0", limit)
		}
	}
	return nil
}

// checkSnowflake validates what a URL of Snowflake needs: snowflake://user:token@account/database/schema.
func (u *URL) checkSnowflake() error {
	switch {
	case u.Dialect != Snowflake:
		return nil
	case u.Host == "":
		return errors.New("a URL of Snowflake needs an account: write snowflake://user@account/database/schema?warehouse=name")
	case u.Options["private_key_file"] != "" && u.User == "":
		return errors.New("a URL of Snowflake with private_key_file needs the user of the key: write snowflake://user@account/database")
	}
	return nil
}

// Limits of a process of DuckDB.
const maxThreads = 256

// checkDuckDB validates the limits of a URL of DuckDB, and that it names a file.
func (u *URL) checkDuckDB() error {
	if u.Dialect != DuckDB {
		return nil
	}
	if v, ok := u.Options["threads"]; ok {
		if n, err := strconv.Atoi(v); err != nil || n < 1 || n > maxThreads {
			return fmt.Errorf("invalid option threads %q: use a number from 1 to %d", v, maxThreads)
		}
	}
	if v, ok := u.Options["memory_limit"]; ok && !isSize(v) {
		return fmt.Errorf("invalid option memory_limit %q: use a number with MB or GB, such as 4GB", v)
	}
	return nil
}

// isSize reports whether a text is a whole number of MB or GB.
func isSize(text string) bool {
	digits := strings.TrimRight(text, "MGBimgb")
	unit := strings.ToUpper(text[len(digits):])
	n, err := strconv.Atoi(digits)
	return err == nil && n > 0 && slices.Contains([]string{"MB", "GB", "MIB", "GIB"}, unit)
}

// Seconds returns the value of a validated option in seconds, 0 if it is not set.
func (u *URL) Seconds(option string) float64 {
	n, _ := strconv.ParseFloat(u.Options[option], 64)
	return n
}

// String returns the URL without the password.
func (u *URL) String() string {
	if u.Dialect.IsFile() {
		if u.Database == "" {
			return u.Name + "://"
		}
		return u.Name + ":///" + u.Database
	}
	host := u.Host
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if u.Port > 0 {
		host += ":" + strconv.Itoa(u.Port)
	}
	if u.User != "" {
		host = u.User + "@" + host
	}
	return u.Name + "://" + host + "/" + u.Database
}
