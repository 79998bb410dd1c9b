// Package servertest starts real database servers for tests, on free loopback
// ports and in folders of their own. They end with the test process, however
// it ends.
package servertest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Server is a running server, or one that Kill has put down.
type Server struct {
	Port   int    // on 127.0.0.1
	Folder string // where its data are

	start func(*Server) (*exec.Cmd, error) // how to start it
	ready func(*Server) error              // whether it answers
	keep  io.Closer                        // while this is open the server runs
	claim io.Closer                        // while this is open the port is the server's
	cmd   *exec.Cmd
	pid   int
}

// ErrMissing says that a server's program is not installed.
var ErrMissing = errors.New("the server's program is not installed")

// Need ends the test where err says that there is no server: it skips it where
// the program is not installed, unless QTYPE_CI is set.
func Need(t testing.TB, err error) {
	t.Helper()
	switch {
	case err == nil:
	case errors.Is(err, ErrMissing) && os.Getenv("QTYPE_CI") == "":
		t.Skipf("SKIPPED, NOT TESTED: %v", err)
	default:
		t.Fatal(err)
	}
}

// Shared is a server for all tests of a package: the first one that needs it
// starts it.
type Shared struct {
	Start func() (*Server, error) // starts the server

	once   sync.Once
	server *Server
	err    error
}

// Get is the running server. Without one it ends the test, as Need does.
func (s *Shared) Get(t testing.TB) *Server {
	t.Helper()
	s.once.Do(func() { s.server, s.err = s.Start() })
	Need(t, s.err)
	return s.server
}

// Around is a run of a package's tests with the server's end behind it, before
// anybody looks for goroutines that are left.
func (s *Shared) Around(m interface{ Run() int }) interface{ Run() int } { return &mainRunner{m, s} }

type mainRunner struct {
	tests interface{ Run() int }
	*Shared
}

// Run runs the tests.
func (a *mainRunner) Run() int {
	code := a.tests.Run()
	if a.server != nil {
		if err := a.server.Close(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return code
}

// find is where a program is, on PATH or in one of the folders.
func find(name string, folders ...string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	for _, pattern := range folders {
		found, _ := filepath.Glob(filepath.Join(pattern, name))
		if len(found) > 0 {
			return found[len(found)-1], nil
		}
	}
	return "", fmt.Errorf("%s: %w", name, ErrMissing)
}

// launch gives a new server a folder and a port and starts it.
func launch(s *Server) (*Server, error) {
	var err error
	if s.Folder == "" {
		if s.Folder, err = os.MkdirTemp("", "qtype-server-"); err != nil {
			return nil, err
		}
	}
	if s.Port, s.claim, err = claim(); err != nil {
		return nil, err
	}
	if err := s.Restart(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Address is host and port.
func (s *Server) Address() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.Port)) }

// guard runs a server beside a reader of its own input: the input ends with the
// test process, and then so does the server.
const guard = `"$@" </dev/null & echo $!; cat >/dev/null; kill -9 $! 2>/dev/null; wait`

// Restart starts a server that was killed, on the same port and data, and waits
// until it answers.
func (s *Server) Restart() error {
	program, err := s.start(s)
	if err != nil {
		return err
	}
	cmd := exec.Command("sh", append([]string{"-c", guard, "sh"}, program.Args...)...)
	cmd.Dir, cmd.Env, cmd.SysProcAttr = s.Folder, program.Env, program.SysProcAttr
	log, err := os.OpenFile(filepath.Join(s.Folder, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }() // the server has it by then
	cmd.Stderr = log
	if s.keep, err = cmd.StdinPipe(); err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	s.cmd = cmd
	first, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return fmt.Errorf("%s did not start: %w", program.Path, err)
	}
	go func() { _, _ = io.Copy(io.Discard, out) }() // what it prints is of no interest
	if s.pid, err = strconv.Atoi(strings.TrimSpace(first)); err != nil {
		return err
	}
	return s.await()
}

// await tries until the server answers. There is nothing to wait for but time.
func (s *Server) await() error {
	var err error
	for deadline := time.Now().Add(5 * time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if err = s.ready(s); err == nil {
			return nil
		}
		if !alive(s.pid) {
			break
		}
	}
	log, _ := os.ReadFile(filepath.Join(s.Folder, "log"))
	return fmt.Errorf("the server on port %d does not answer: %w\n%s", s.Port, err, log)
}

// Kill puts the server down at once, as a power cut would.
func (s *Server) Kill() error {
	if s.cmd == nil {
		return nil
	}
	for _, pid := range s.signal(syscall.SIGKILL) {
		for alive(pid) { // its port and its shared memory are free afterwards
			time.Sleep(time.Millisecond)
		}
	}
	err := s.keep.Close()
	_ = s.cmd.Wait() // it was killed, so it did not end well
	s.cmd, s.pid = nil, 0
	return err
}

// Freeze stops the server's processes: connections stay, answers do not come.
func (s *Server) Freeze() { s.signal(syscall.SIGSTOP) }

// Thaw lets a frozen server go on.
func (s *Server) Thaw() { s.signal(syscall.SIGCONT) }

// signal reaches the server and its children, and tells who they are. Those
// that ended meanwhile do not matter.
func (s *Server) signal(sig syscall.Signal) []int {
	if s.pid == 0 { // to the system that number means this process and its whole group
		return nil
	}
	pids := []int{s.pid}
	raw, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", s.pid, s.pid))
	for _, child := range strings.Fields(string(raw)) {
		if pid, err := strconv.Atoi(child); err == nil {
			pids = append(pids, pid)
		}
	}
	for _, pid := range pids {
		_ = syscall.Kill(pid, sig)
	}
	return pids
}

// alive tells whether a process runs; one that nobody has waited for does not.
func alive(pid int) bool {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(raw), ") ")
	return !strings.HasPrefix(rest, "Z") && !strings.HasPrefix(rest, "X")
}

// Close puts the server down and removes its data.
func (s *Server) Close() error {
	return errors.Join(s.Kill(), s.claim.Close(), os.RemoveAll(s.Folder))
}
