// Package lsptest holds sample documents and starts servers for the tests of the language server.
package lsptest

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Documents returns the YAML files of the repository's examples and test data by
// path, and those below the folder of the environment variable QTYPE_FIXTURES if
// it is set. Some are invalid on purpose.
func Documents(t testing.TB) map[string]string {
	t.Helper()
	root := moduleRoot(t)
	folders := []string{root + "/examples", root + "/validate/testdata", root + "/loader/testdata"}
	if more := os.Getenv("QTYPE_FIXTURES"); more != "" {
		folders = append(folders, more)
	}
	found := map[string]string{}
	for _, folder := range folders {
		err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error { //nolint:gosec // likewise
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".yaml") {
				return err
			}
			text, err := os.ReadFile(path) //nolint:gosec // a folder that the developer names
			found[path] = string(text)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(found) < 3 {
		t.Fatalf("found %d documents", len(found))
	}
	return found
}

// moduleRoot returns the folder with go.mod above the working directory, which
// is that of the tested package.
func moduleRoot(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			t.Fatal("no go.mod above the working directory")
		}
		dir = parent
	}
}
