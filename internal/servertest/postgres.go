package servertest

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
)

// Password is the password of the database user of every server.
const Password = "s3cret-word"

// Postgres starts a PostgreSQL server with one database, postgres, and one user,
// postgres. The settings are arguments such as "-c", "fsync=off".
func Postgres(settings ...string) (*Server, error) {
	const debian = "/usr/lib/postgresql/*/bin"
	initdb, err := find("initdb", debian)
	if err != nil {
		return nil, err
	}
	path, err := find("postgres", debian, filepath.Dir(initdb))
	if err != nil {
		return nil, err
	}
	attributes, err := serverUser()
	if err != nil {
		return nil, err
	}
	s := &Server{}
	s.ready = func(s *Server) error { return checkReady(s, filepath.Dir(path)) }
	s.start = func(s *Server) (*exec.Cmd, error) {
		data := filepath.Join(s.Folder, "data")
		args := append([]string{"-D", data, "-p", strconv.Itoa(s.Port), "-c", "listen_addresses=127.0.0.1",
			"-c", "unix_socket_directories=" + s.Folder, "-c", "max_connections=100"}, settings...)
		cmd := exec.Command(path, args...)
		cmd.SysProcAttr = attributes
		return cmd, nil
	}
	if s.Folder, err = newCluster(initdb, attributes); err != nil {
		return nil, err
	}
	return launch(s)
}

// serverUser returns attributes to run a server as another user than root, because
// PostgreSQL refuses to run as root.
func serverUser() (*syscall.SysProcAttr, error) {
	if os.Geteuid() != 0 {
		return &syscall.SysProcAttr{}, nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		u, err = user.LookupId("65534") // the user without permissions
	}
	if err != nil {
		return nil, errors.New("no user to run the server as: neither postgres nor the id 65534 exists")
	}
	uid, uidErr := strconv.ParseUint(u.Uid, 10, 32)
	gid, gidErr := strconv.ParseUint(u.Gid, 10, 32)
	if err := errors.Join(uidErr, gidErr); err != nil {
		return nil, err
	}
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}, nil
}

// newCluster creates the directory of a database cluster.
func newCluster(initdb string, attributes *syscall.SysProcAttr) (string, error) {
	folder, err := os.MkdirTemp("", "qtype-server-")
	if err != nil {
		return "", err
	}
	password := filepath.Join(folder, "password")
	err = os.WriteFile(password, []byte(Password+"\n"), 0o600)
	if err == nil && attributes.Credential != nil {
		uid, gid := int(attributes.Credential.Uid), int(attributes.Credential.Gid)
		err = errors.Join(os.Chown(folder, uid, gid), os.Chown(password, uid, gid))
	}
	if err != nil {
		return "", errors.Join(err, os.RemoveAll(folder))
	}
	cmd := exec.Command(initdb, "-D", filepath.Join(folder, "data"), "-U", "postgres", "--pwfile", password,
		"--auth=scram-sha-256", "--encoding=UTF8", "--locale=C", "--no-sync")
	cmd.Dir, cmd.SysProcAttr = folder, attributes
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", errors.Join(fmt.Errorf("initdb: %w: %s", err, out), os.RemoveAll(folder))
	}
	return folder, nil
}

// checkReady returns an error unless a PostgreSQL server accepts connections.
func checkReady(s *Server, folder string) error {
	isReady, err := find("pg_isready", folder)
	if err != nil {
		return err
	}
	out, err := exec.Command(isReady, "-h", "127.0.0.1", "-p", strconv.Itoa(s.Port)).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// URL returns the URL of a PostgreSQL server's database, with its password.
func (s *Server) URL() string {
	return "postgres://postgres:" + Password + "@" + s.Address() + "/postgres?sslmode=disable"
}

// MariaDB starts a MariaDB server with one database, shop, and one user, shop, whose
// password is Password. The settings are arguments such as "--sql-mode=ANSI".
func MariaDB(settings ...string) (*Server, error) {
	const debian = "/usr/sbin"
	path, err := find("mariadbd", debian)
	if err != nil {
		return nil, err
	}
	install, err := find("mariadb-install-db")
	if err != nil {
		return nil, err
	}
	attributes, err := serverUser()
	if err != nil {
		return nil, err
	}
	s := &Server{ready: checkGreeting}
	s.start = func(s *Server) (*exec.Cmd, error) {
		args := append([]string{"--no-defaults", "--datadir=" + filepath.Join(s.Folder, "data"), "--port=" + strconv.Itoa(s.Port),
			"--bind-address=127.0.0.1", "--socket=" + filepath.Join(s.Folder, "socket"), "--pid-file=" + filepath.Join(s.Folder, "pid"),
			"--init-file=" + filepath.Join(s.Folder, "init.sql"), "--innodb-flush-log-at-trx-commit=0"}, settings...)
		cmd := exec.Command(path, args...)
		cmd.SysProcAttr, cmd.Env = attributes, withTempDir(s.Folder)
		return cmd, nil
	}
	if s.Folder, err = os.MkdirTemp("", "qtype-server-"); err != nil {
		return nil, err
	}
	script := "CREATE DATABASE IF NOT EXISTS shop CHARACTER SET utf8mb4;\n" +
		"CREATE USER IF NOT EXISTS 'shop'@'%' IDENTIFIED BY '" + Password + "';\n" +
		"GRANT ALL ON shop.* TO 'shop'@'%';\n"
	err = os.WriteFile(filepath.Join(s.Folder, "init.sql"), []byte(script), 0o644)
	if err == nil && attributes.Credential != nil {
		err = os.Chown(s.Folder, int(attributes.Credential.Uid), int(attributes.Credential.Gid))
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(s.Folder))
	}
	cmd := exec.Command(install, "--no-defaults", "--datadir="+filepath.Join(s.Folder, "data"), "--auth-root-authentication-method=normal", "--skip-test-db")
	cmd.Dir, cmd.SysProcAttr, cmd.Env = s.Folder, attributes, withTempDir(s.Folder)
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, errors.Join(fmt.Errorf("mariadb-install-db: %w: %s", err, out), os.RemoveAll(s.Folder))
	}
	return launch(s)
}

// withTempDir returns the environment with another directory for temporary files: the
// user of the server may have no access to ours.
func withTempDir(folder string) []string { return append(os.Environ(), "TMPDIR="+folder) }

// checkGreeting returns an error unless a MySQL server sends its greeting, a packet that
// begins with version 10 of the protocol.
func checkGreeting(s *Server) error {
	conn, err := s.dial()
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }() // nothing was written
	head := make([]byte, 5)
	if _, err := io.ReadFull(conn, head); err != nil {
		return err
	}
	if head[4] != 10 {
		return errors.New("the server sent no greeting")
	}
	return nil
}

// TablesVariable is the environment variable with the path of a Python that has pyarrow,
// DuckDB and polars.
const TablesVariable = "QTYPE_TABLES"

// Tables runs a script in the Python of TablesVariable and returns its output.
func Tables(t testing.TB, script string, args ...string) []byte {
	t.Helper()
	python := os.Getenv(TablesVariable)
	if python == "" {
		Need(t, fmt.Errorf("%w: set %s to a python with pyarrow, duckdb and polars", ErrMissing, TablesVariable))
	}
	cmd := exec.Command(python, append([]string{script}, args...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v", script, err)
	}
	return out
}
