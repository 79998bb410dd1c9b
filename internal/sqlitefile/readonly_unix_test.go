//go:build unix

package sqlitefile_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/qtype-dev/qtype/internal/sqlitefile"
	"github.com/qtype-dev/qtype/internal/testkit"
)

// readOnlyFile names the file that TestReadOnly reads in a process without permissions.
const readOnlyFile = "QTYPE_TEST_READ_ONLY_FILE"

// TestReadOnly checks that a file can be read where neither it nor its folder can be
// written, and that changes, and upgrades, are rejected. Permissions do not hold for root, so
// the test runs itself as another user.
func TestReadOnly(t *testing.T) {
	if path := os.Getenv(readOnlyFile); path != "" {
		readReadOnly(t, path)
		return
	}
	folder := publicFolder(t)
	path := filepath.Join(folder, "file.db")
	if n := rows(t, open(path, first, second)); n != 1 {
		t.Fatalf("%d rows", n)
	}
	testkit.Must(t, os.Chmod(path, 0o444))
	cmd := exec.CommandContext(t.Context(), copyOfTest(t, folder), "-test.run=^TestReadOnly$", "-test.v")
	cmd.Dir, cmd.Env = folder, append(os.Environ(), readOnlyFile+"="+path)
	if os.Getuid() == 0 {
		const unprivileged = 65534
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: unprivileged, Gid: unprivileged}}
	}
	testkit.Must(t, os.Chmod(folder, 0o555))
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: TestReadOnly") {
		t.Errorf("%v\n%s", err, out)
	}
}

// limitedFile names the file that TestOpen_TooManyFiles opens in a process with few descriptors.
const limitedFile = "QTYPE_TEST_LIMITED_FILE"

// TestOpen_TooManyFiles checks that a process that cannot open more files says so, and does not
// take the file for one that it may only read. The limit is that of a process.
func TestOpen_TooManyFiles(t *testing.T) {
	if path := os.Getenv(limitedFile); path != "" {
		openLimited(t, path)
		return
	}
	path := filepath.Join(t.TempDir(), "file.db")
	if n := rows(t, open(path, first, second)); n != 1 {
		t.Fatalf("%d rows", n)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestOpen_TooManyFiles$", "-test.v")
	cmd.Env = append(os.Environ(), limitedFile+"="+path)
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: TestOpen_TooManyFiles") {
		t.Errorf("%v\n%s", err, out)
	}
}

func openLimited(t *testing.T, path string) {
	var limit syscall.Rlimit
	testkit.Must(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit))
	last, err := os.Open(path)
	testkit.Must(t, err)
	before := limit.Cur
	for free := range 6 { // descriptors
		limit.Cur = uint64(last.Fd()) + 1 + uint64(free)
		testkit.Must(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit))
		f := open(path, first, second)
		_, err := f.Open(t.Context(), true)
		if err == nil { // the runtime may hold some of the lower descriptors
			if free == 0 {
				t.Error("the file was opened without a descriptor")
			}
			testkit.Must(t, f.Close(nil))
			continue
		}
		if kind, message := sqlitefile.Diagnose(err); kind != sqlitefile.Unavailable || !strings.Contains(message, "open files") {
			t.Errorf("with %d descriptors: %d, %s", free, kind, message)
		}
	}
	limit.Cur = before
	testkit.Must(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit))
	testkit.Must(t, last.Close())
}

// publicFolder returns a new folder that every user can read.
func publicFolder(t *testing.T) string {
	folder, err := os.MkdirTemp("", "qtype-read-only-") //nolint:usetesting // the parent of t.TempDir is private
	testkit.Must(t, err)
	testkit.Must(t, os.Chmod(folder, 0o755))
	t.Cleanup(func() {
		testkit.Must(t, os.Chmod(folder, 0o755))
		testkit.Must(t, os.RemoveAll(folder))
	})
	return folder
}

// copyOfTest copies this program into a folder: its own may be private.
func copyOfTest(t *testing.T, folder string) string {
	self, err := os.Executable()
	testkit.Must(t, err)
	raw, err := os.ReadFile(self)
	testkit.Must(t, err)
	program := filepath.Join(folder, "program")
	testkit.Must(t, os.WriteFile(program, raw, 0o755))
	return program
}

func readReadOnly(t *testing.T, path string) {
	if n := rows(t, open(path, first, second)); n != 1 {
		t.Errorf("%d rows", n)
	}
	f := open(path, first, second)
	c, err := f.Open(t.Context(), true)
	testkit.Must(t, err)
	_, err = c.Write.ExecContext(t.Context(), "INSERT INTO t VALUES (2)")
	if kind, message := sqlitefile.Diagnose(err); kind != sqlitefile.Denied || message != "no permission to write the file" {
		t.Errorf("got %v %q", kind, message)
	}
	testkit.Must(t, f.Close(nil))
	_, err = open(path, first, second, "SELECT 1").Open(t.Context(), true)
	if kind, message := sqlitefile.Diagnose(err); kind != sqlitefile.Denied || !strings.HasPrefix(message, "written by an older version") {
		t.Errorf("got %v %q", kind, message)
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	testkit.Must(t, err)
	if len(entries) != 2 {
		t.Errorf("the folder has %v", entries)
	}
}
