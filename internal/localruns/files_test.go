package localruns_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/localruns"
)

func TestWalk_RegularFiles(t *testing.T) {
	folder := t.TempDir()
	for _, name := range []string{"a.jsonl", "sub/b.jsonl", ".git/c", "sub/node_modules/d"} {
		path := filepath.Join(folder, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(folder, "a.jsonl"), filepath.Join(folder, "link")); err != nil {
		t.Skipf("no symbolic links here: %s", err)
	}
	var found []string
	visit := func(path string, _ fs.DirEntry) error {
		name, err := filepath.Rel(folder, path)
		found = append(found, filepath.ToSlash(name))
		return err
	}
	if err := localruns.EachFile(t.Context(), folder, visit); err != nil {
		t.Fatal(err)
	}
	if want := []string{"a.jsonl", "sub/b.jsonl"}; !slices.Equal(found, want) {
		t.Errorf("got %v, want %v", found, want)
	}
	if err := os.Symlink(folder, folder+"-link"); err != nil {
		t.Fatal(err)
	}
	var linked []string
	err := localruns.EachFile(t.Context(), folder+"-link", func(path string, _ fs.DirEntry) error {
		linked = append(linked, filepath.ToSlash(strings.TrimPrefix(path, folder+"-link"+string(filepath.Separator))))
		return nil
	})
	if want := []string{"a.jsonl", "sub/b.jsonl"}; err != nil || !slices.Equal(linked, want) {
		t.Errorf("a link to a folder: got %v, %v, want %v", linked, err, want)
	}
	if err := localruns.EachFile(t.Context(), filepath.Join(folder, "a.jsonl"), visit); err == nil {
		t.Error("a file: got no error")
	}
	if err := localruns.EachFile(t.Context(), "", visit); err == nil {
		t.Error("an empty name: got no error")
	}
	if err := localruns.EachFile(t.Context(), filepath.Join(folder, "none"), visit); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder that does not exist: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := localruns.EachFile(ended, folder, visit); !errors.Is(err, context.Canceled) {
		t.Errorf("a canceled context: %v", err)
	}
}
