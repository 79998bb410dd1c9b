//go:build unix

package checkpoint_test

import (
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/qtype-dev/qtype/internal/checkpoint"
	"github.com/qtype-dev/qtype/internal/testkit"
)

// TestJournal_NotRegular has other things in the place of a journal. None of them is
// opened, so that nothing waits for a pipe and no target of a link is changed.
func TestJournal_NotRegular(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	victim := testkit.WriteFile(t, "victim", "kept")
	testkit.Must(t, os.Symlink(victim, at("link")))
	testkit.Must(t, os.Symlink(at("nothing"), at("dangling")))
	testkit.Must(t, os.Symlink("/dev/null", at("null")))
	testkit.Must(t, syscall.Mkfifo(at("fifo"), 0o600))
	testkit.Must(t, os.Mkdir(at("folder"), 0o700))
	listener, err := net.Listen("unix", at("s"))
	testkit.Must(t, err)
	defer listener.Close()
	for path, what := range map[string]string{
		at("link"): "a symbolic link", at("dangling"): "a symbolic link", at("null"): "a symbolic link", at("fifo"): "a pipe",
		at("folder"): "a folder", at("s"): "a socket", "/dev/zero": "a device", "/dev/full": "a device",
	} {
		want := path + ": is " + what + ", not a regular file; remove it"
		if _, err := checkpoint.Open(path, testKey); err == nil || err.Error() != want {
			t.Errorf("Open: %v", err)
		}
		if _, err := checkpoint.Create(path, checkpoint.Header{}, testKey); err == nil || err.Error() != want {
			t.Errorf("Create: %v", err)
		}
	}
	if text := testkit.ReadFile(t, victim); text != "kept" {
		t.Errorf("the target of the link is now %q", text)
	}
	if _, err := os.Lstat(at("nothing")); err == nil {
		t.Error("the target of the link was created")
	}
}

// TestJournal_FullDisk has no room for the header: nothing is left that a later run would find.
func TestJournal_FullDisk(t *testing.T) {
	var old syscall.Rlimit
	testkit.Must(t, syscall.Getrlimit(syscall.RLIMIT_FSIZE, &old))
	signal.Ignore(syscall.SIGXFSZ)
	defer signal.Reset(syscall.SIGXFSZ)
	path := filepath.Join(t.TempDir(), "j")
	few := old
	few.Cur = 10
	testkit.Must(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &few))
	_, err := checkpoint.Create(path, checkpoint.Header{Flow: "main"}, testKey)
	testkit.Must(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &old))
	if err == nil || !strings.Contains(err.Error(), "cannot be written: file too large") {
		t.Error(err)
	}
	if _, err := os.Lstat(path); !os.IsNotExist(err) {
		t.Error("half a journal is left")
	}
	j, err := checkpoint.Create(path, checkpoint.Header{Flow: "main"}, testKey)
	testkit.Must(t, err)
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Error(info, err)
	}
	testkit.Must(t, j.Close())
}
