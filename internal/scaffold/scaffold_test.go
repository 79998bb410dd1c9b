package scaffold_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/scaffold"
)

// TestWrite checks the files that every project has. The tests of the command
// validate and run the projects.
func TestWrite(t *testing.T) {
	for _, name := range scaffold.Names() {
		folder := filepath.Join(t.TempDir(), "deep", "down")
		written, err := scaffold.Write(folder, name, scaffold.Schemas{Document: "the schema", Tests: "the other"})
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{".env.example", ".github/workflows/qtype.yml", ".gitignore", "README.md", "app.qtype.yaml", "app.qtype-test.yaml", "qtype.schema.json", "qtype-test.schema.json"} {
			path := filepath.Join(folder, filepath.FromSlash(want))
			if content, err := os.ReadFile(path); err != nil || len(content) == 0 || !slices.Contains(written, path) {
				t.Errorf("%s: %s: %v", name, want, err)
			}
		}
		app, _ := os.ReadFile(filepath.Join(folder, "app.qtype.yaml"))
		if !strings.HasPrefix(string(app), "# yaml-language-server: $schema=qtype.schema.json\n") {
			t.Errorf("%s: the first line names no schema", name)
		}
		before := len(written)
		if written, err = scaffold.Write(folder, name, scaffold.Schemas{Document: "the schema", Tests: "the other"}); len(written) > 0 {
			t.Errorf("%s: wrote again %v", name, written)
		}
		var exists *scaffold.ExistsError
		if !errors.As(err, &exists) || len(exists.Paths) != before {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestWrite_Symlink checks that a dangling symbolic link is not followed.
func TestWrite_Symlink(t *testing.T) {
	folder := t.TempDir()
	if err := os.Symlink(filepath.Join(t.TempDir(), "elsewhere"), filepath.Join(folder, ".gitignore")); err != nil {
		t.Skip(err)
	}
	var exists *scaffold.ExistsError
	if _, err := scaffold.Write(folder, "chat", scaffold.Schemas{}); !errors.As(err, &exists) {
		t.Errorf("got %v", err)
	}
}

func TestWrite_UnknownTemplate(t *testing.T) {
	if _, err := scaffold.Write(t.TempDir(), "talk", scaffold.Schemas{}); err == nil || !strings.Contains(err.Error(), "available: chat, batch, rag, agent") {
		t.Errorf("got %v", err)
	}
}
