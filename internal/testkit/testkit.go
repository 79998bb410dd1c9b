// Package testkit has the helpers that tests of many packages need. It is for tests
// only.
package testkit

import (
	"context"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// Must ends the test if err is not nil. t is a *testing.T, *testing.B or *rapid.T.
func Must(t interface {
	Helper()
	Fatal(args ...any)
}, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// External returns what an environment variable names, such as a program that is not part of the
// module. Without it, the test is skipped, and fails in CI.
func External(t testing.TB, variable, what string) string {
	t.Helper()
	value := os.Getenv(variable)
	switch {
	case value != "":
	case os.Getenv("QTYPE_CI") != "":
		t.Fatalf("set %s to %s", variable, what)
	default:
		t.Skipf("SKIPPED: set %s to %s, as .ci/run does", variable, what)
	}
	return value
}

// WriteFile writes a file to a new temporary folder and returns its path.
func WriteFile(t testing.TB, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	Must(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// FolderInRAM returns a new temporary folder that is in RAM if the system has such
// folders: for tests with thousands of small commits, which test neither the disk nor
// that data is durable.
func FolderInRAM(t testing.TB) string {
	t.Helper()
	folder, err := os.MkdirTemp("/dev/shm", "qtype") //nolint:usetesting // t.TempDir is on a disk
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { Must(t, os.RemoveAll(folder)) })
	return folder
}

// ReadFile returns the text of a file.
func ReadFile(t testing.TB, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	Must(t, err)
	return string(text)
}

// commandLimit ends a command of a test that hangs, long before the limit of go test,
// so that the failure names the test and shows the output.
const commandLimit = 8 * time.Minute

// Command returns a command that ends with the test, or after a few minutes. Processes
// that it leaves behind with its output open do not delay the test.
func Command(t testing.TB, name string, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), commandLimit)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.WaitDelay = 10 * time.Second
	return cmd
}

// Output runs a command and returns what it wrote to standard output and standard error.
// Unlike CombinedOutput it does not wait for processes that the command leaves behind,
// as browsers do.
func Output(t testing.TB, cmd *exec.Cmd) ([]byte, error) {
	t.Helper()
	file, err := os.CreateTemp(t.TempDir(), "output")
	Must(t, err)
	defer func() { _ = file.Close() }()
	cmd.Stdout, cmd.Stderr = file, file
	failed := cmd.Run()
	out, err := os.ReadFile(file.Name())
	Must(t, err)
	return out, failed
}

// CloseServer closes a server, also if requests are open or clients connect again.
// Server.Close alone waits for open requests without a limit.
func CloseServer(s *httptest.Server) {
	closed := make(chan struct{})
	go func() {
		s.Close()
		close(closed)
	}()
	for {
		s.CloseClientConnections()
		select {
		case <-closed:
			return
		case <-time.After(50 * time.Millisecond):
		}
	}
}
