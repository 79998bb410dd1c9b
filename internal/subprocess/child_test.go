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

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestTheLastLineIsKept(t *testing.T) {
	var tail subprocess.Tail
	if tail.LastLine() != "" {
		t.Error("there is a line before any")
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

func TestAnEnvironmentHoldsNoSecrets(t *testing.T) {
	all := map[string]string{"PATH": "/bin", "HOME": "/home/ada", "OPENAI_API_KEY": "sk-1", "PYTHONPATH": "/p", "LANG": ""}
	got := subprocess.Environment(func(name string) string { return all[name] }, map[string]string{"KEY": "k", "HOME": "/other"}, "PYTHONPATH")
	if want := []string{"HOME=/other", "KEY=k", "PATH=/bin", "PYTHONPATH=/p"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestFind(t *testing.T) {
	folder := t.TempDir()
	for name, mode := range map[string]os.FileMode{"run": 0o700, "text": 0o600} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte("#!/bin/sh\n"), mode); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ name, path, want, err string }{
		{"run", folder, filepath.Join(folder, "run"), ""},
		{"./run", "", filepath.Join(folder, "run"), ""},
		{filepath.Join(folder, "run"), "", filepath.Join(folder, "run"), ""},
		{"run", ".", "", `there is not a program "run" in PATH`}, // not of the current folder
		{"./text", "", "", "cannot be executed"},
		{"./none", "", "", "there is not a program"},
		{"./", "", "", "is no file"},
		{"", folder, "", `"" is not a program`},
	} {
		got, err := subprocess.Find(c.name, folder, c.path)
		if got != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%q: got %q, %v", c.name, got, err)
		}
	}
}
