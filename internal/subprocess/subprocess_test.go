package subprocess_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/qtype-dev/qtype/internal/subprocess"
)

// supervisor is this executable; nil on systems without supervisors.
var supervisor *subprocess.Supervisor

func TestMain(m *testing.M) {
	supervisor = subprocess.Supervise()
	supervisor.OwnChildren()
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		supervisor.Close()
		os.Exit(code)
	}))
}

func TestTail_LastLine(t *testing.T) {
	var tail subprocess.Tail
	if tail.LastLine() != "" {
		t.Error("LastLine of an empty Tail is not empty")
	}
	_, _ = tail.Write([]byte("one\n"))
	_, _ = tail.Write([]byte(strings.Repeat("x", 10_000) + "\n"))
	_, _ = tail.Write([]byte("the \x1b last\n\n  \n"))
	if got := tail.LastLine(); got != "the \x1b last" {
		t.Errorf("the last line is %q", got)
	}
	_, _ = tail.Write([]byte(strings.Repeat("é", 1000)))
	if got := []rune(tail.LastLine()); len(got) != 300 || got[299] != '…' {
		t.Errorf("a long line has %d characters", len(got))
	}
}

func TestEnvironment(t *testing.T) {
	all := map[string]string{"PATH": "/bin", "HOME": "/home/ada", "OPENAI_API_KEY": "sk-1", "PYTHONPATH": "/p", "LANG": ""}
	got := subprocess.Environment(func(name string) string { return all[name] }, map[string]string{"KEY": "k", "HOME": "/other"}, "PYTHONPATH")
	if want := []string{"HOME=/other", "KEY=k", "PATH=/bin", "PYTHONPATH=/p"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestFind(t *testing.T) {
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"run": 0o700, "text": 0o600} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"), mode); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ name, path, want, err string }{
		{"run", dir, filepath.Join(dir, "run"), ""},
		{"./run", "", filepath.Join(dir, "run"), ""},
		{filepath.Join(dir, "run"), "", filepath.Join(dir, "run"), ""},
		{"run", ".", "", `program "run" not found in PATH`}, // not in the current directory
		{"./text", "", "", "is not executable"},
		{"./none", "", "", "not found"},
		{"./", "", "", "is not a regular file"},
		{"", dir, "", `invalid program name ""`},
	} {
		got, err := subprocess.Find(c.name, dir, c.path)
		if got != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%q: got %q, %v", c.name, got, err)
		}
	}
}
