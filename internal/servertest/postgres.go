package servertest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
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
