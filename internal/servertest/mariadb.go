package servertest

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"
)

// MariaDB starts a MariaDB server with one database, shop, and one user, shop,
// whose password is Password. The settings are arguments such as "--sql-mode=ANSI".
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
	as, err := ordinary()
	if err != nil {
		return nil, err
	}
	s := &Server{ready: greets}
	s.start = func(s *Server) (*exec.Cmd, error) {
		args := append([]string{"--no-defaults", "--datadir=" + filepath.Join(s.Folder, "data"), "--port=" + strconv.Itoa(s.Port),
			"--bind-address=127.0.0.1", "--socket=" + filepath.Join(s.Folder, "socket"), "--pid-file=" + filepath.Join(s.Folder, "pid"),
			"--init-file=" + filepath.Join(s.Folder, "init.sql"), "--innodb-flush-log-at-trx-commit=0"}, settings...)
		cmd := exec.Command(path, args...)
		cmd.SysProcAttr, cmd.Env = as, temporary(s.Folder)
		return cmd, nil
	}
	if s.Folder, err = os.MkdirTemp("", "qtype-server-"); err != nil {
		return nil, err
	}
	script := "CREATE DATABASE IF NOT EXISTS shop CHARACTER SET utf8mb4;\n" +
		"CREATE USER IF NOT EXISTS 'shop'@'%' IDENTIFIED BY '" + Password + "';\n" +
		"GRANT ALL ON shop.* TO 'shop'@'%';\n"
	err = os.WriteFile(filepath.Join(s.Folder, "init.sql"), []byte(script), 0o644)
	if err == nil && as.Credential != nil {
		err = os.Chown(s.Folder, int(as.Credential.Uid), int(as.Credential.Gid))
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(s.Folder))
	}
	cmd := exec.Command(install, "--no-defaults", "--datadir="+filepath.Join(s.Folder, "data"), "--auth-root-authentication-method=normal", "--skip-test-db")
	cmd.Dir, cmd.SysProcAttr, cmd.Env = s.Folder, as, temporary(s.Folder)
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, errors.Join(fmt.Errorf("mariadb-install-db: %w: %s", err, out), os.RemoveAll(s.Folder))
	}
	return launch(s)
}

// temporary is our environment with another folder for temporary files: ours may
// be closed to the user that the server runs as.
func temporary(folder string) []string { return append(os.Environ(), "TMPDIR="+folder) }

// greets tells whether a MySQL server sends its greeting: a packet that begins
// with the version 10 of the protocol.
func greets(s *Server) error {
	conn, err := net.DialTimeout("tcp", s.Address(), time.Second)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }() // nothing was written
	if err := conn.SetDeadline(time.Now().Add(time.Second)); err != nil {
		return err
	}
	head := make([]byte, 5)
	if _, err := io.ReadFull(conn, head); err != nil {
		return err
	}
	if head[4] != 10 {
		return errors.New("the server does not greet")
	}
	return nil
}
