// Package testkit has the helpers that tests of many packages need. It is for tests
// only.
package testkit

import (
	"os"
	"path/filepath"
	"testing"
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

// WriteFile writes a file to a new temporary folder and returns its path.
func WriteFile(t testing.TB, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	Must(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// ReadFile returns the text of a file.
func ReadFile(t testing.TB, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	Must(t, err)
	return string(text)
}
