package servertest

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
)

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
