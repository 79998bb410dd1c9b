// Package servertest starts real servers for tests, on free loopback ports and in
// temporary directories. They end with the test process, even if it crashes.
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

// Server is a server, which may have been stopped by Kill.
type Server struct {
	Port   int    // on 127.0.0.1
	Folder string // directory of its data
	More   []int  // other ports that clients use; nil for most servers

	start func(*Server) (*exec.Cmd, error) // returns the command
	ready func(*Server) error              // returns an error until the server is ready
	stdin io.Closer                        // of guard: the server runs while it is open
	claim io.Closer                        // reserves the port
	cmd   *exec.Cmd
	pid   int
}

// ErrMissing reports that the server's program is not installed.
var ErrMissing = errors.New("the server's program is not installed")

// Need ends the test if err is not nil. It skips the test if the program is not
// installed, unless QTYPE_CI is set.
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

// Shared is a server for all tests of a package, started by the first that needs it.
type Shared struct {
	Start func() (*Server, error)

	once   sync.Once
	server *Server
	err    error
}

// Get returns the running server. On error it ends the test, as Need does.
func (s *Shared) Get(t testing.TB) *Server {
	t.Helper()
	s.once.Do(func() { s.server, s.err = s.Start() })
	Need(t, s.err)
	return s.server
}

// Around wraps a run of tests so that the server is closed at its end, before goroutine
// leaks are checked.
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

// find returns the path of a program on PATH or in one of the directories.
func find(name string, dirs ...string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	for _, pattern := range dirs {
		found, _ := filepath.Glob(filepath.Join(pattern, name))
		if len(found) > 0 {
			return found[len(found)-1], nil
		}
	}
	return "", fmt.Errorf("%s: %w", name, ErrMissing)
}

// launch assigns a directory and a port to a new server and starts it.
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

// Address returns host and port.
func (s *Server) Address() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.Port)) }

// dial connects to the server, with a time limit of a second for the connection and its use.
func (s *Server) dial() (net.Conn, error) {
	conn, err := net.DialTimeout("tcp", s.Address(), time.Second)
	if err != nil {
		return nil, err
	}
	if err := conn.SetDeadline(time.Now().Add(time.Second)); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

// guard is a shell script that runs a server until its standard input ends, which
// happens when the test process ends. The server writes to the log alone, because its first line
// may precede its process id.
const guard = `"$@" </dev/null >&2 & echo $!; cat >/dev/null; kill -9 $! 2>/dev/null; wait`

// Restart starts a server, again on the same port and data, and waits until it is ready.
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
	defer func() { _ = log.Close() }() // inherited by the server
	cmd.Stderr = log
	if s.stdin, err = cmd.StdinPipe(); err != nil {
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
	if s.pid, err = strconv.Atoi(strings.TrimSpace(first)); err != nil {
		return err
	}
	return s.waitReady()
}

// waitReady polls until the server is ready.
func (s *Server) waitReady() error {
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
	return fmt.Errorf("the server on port %d is not ready: %w\n%s", s.Port, err, log)
}

// Kill ends the server immediately, as a power failure would.
func (s *Server) Kill() error {
	if s.cmd == nil {
		return nil
	}
	for _, pid := range s.signal(syscall.SIGKILL) {
		for alive(pid) { // then its port and shared memory are free
			time.Sleep(time.Millisecond)
		}
	}
	err := s.stdin.Close()
	_ = s.cmd.Wait() // always an error: it was killed
	s.cmd, s.pid = nil, 0
	return err
}

// Freeze stops the server's processes: connections stay open, but get no answers.
func (s *Server) Freeze() { s.signal(syscall.SIGSTOP) }

// Thaw continues a frozen server.
func (s *Server) Thaw() { s.signal(syscall.SIGCONT) }

// signal sends a signal to the server and its children, and returns their ids.
func (s *Server) signal(sig syscall.Signal) []int {
	if s.pid == 0 { // 0 means the process group of the test
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

// alive reports whether a process runs and is not a zombie.
func alive(pid int) bool {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(raw), ") ")
	return !strings.HasPrefix(rest, "Z") && !strings.HasPrefix(rest, "X")
}

// Close ends the server and removes its data.
func (s *Server) Close() error {
	return errors.Join(s.Kill(), s.claim.Close(), os.RemoveAll(s.Folder))
}
