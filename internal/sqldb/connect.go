package sqldb

import (
	"database/sql"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	_ "modernc.org/sqlite" // the driver named sqlite

	"github.com/qtype-dev/qtype/internal/sqlquery"
)

// busyTime is the default wait for a locked SQLite file.
const busyTime = 5 * time.Second

// Seconds returns an option as a duration, or a default.
func Seconds(u *sqlquery.URL, option string, fallback time.Duration) time.Duration {
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
	busy := Seconds(u, "timeout", busyTime).Milliseconds()
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

// HostPort returns the address of a server; port is 0 for none.
func HostPort(host string, port int) string {
	switch {
	case port > 0:
		return net.JoinHostPort(host, strconv.Itoa(port))
	case strings.Contains(host, ":"):
		return "[" + host + "]"
	}
	return host
}
