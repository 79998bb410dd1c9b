package remotefs

import (
	"context"
	"maps"
	"os"
	"slices"
	"sync"
)

// TemporaryFiles are the local files under temporary names that a program writes, so that
// it can remove them before it exits at once.
type TemporaryFiles struct {
	mu    sync.Mutex
	paths map[string]bool
}

type temporaryKey struct{}

// WithTemporaryFiles returns a context in which Create notes temporary files in t.
func WithTemporaryFiles(ctx context.Context, t *TemporaryFiles) context.Context {
	return context.WithValue(ctx, temporaryKey{}, t)
}

// temporaryFilesOf returns those of a context; nil for none.
func temporaryFilesOf(ctx context.Context) *TemporaryFiles {
	t, _ := ctx.Value(temporaryKey{}).(*TemporaryFiles)
	return t
}

// Empty reports whether there is no temporary file.
func (t *TemporaryFiles) Empty() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.paths) == 0
}

// Remove removes all temporary files. Files that are written to later remain removed, and new
// ones cannot be created.
func (t *TemporaryFiles) Remove() {
	t.mu.Lock() // and not unlocked: the program ends
	for _, path := range slices.Sorted(maps.Keys(t.paths)) {
		_ = os.Remove(path) // there is nowhere to report it
	}
}

// create creates a temporary file and notes it.
func (t *TemporaryFiles) create(path string) (*os.File, error) {
	if t == nil {
		return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		if t.paths == nil {
			t.paths = map[string]bool{}
		}
		t.paths[path] = true
	}
	return f, err
}

// done notes that a file is no longer temporary.
func (t *TemporaryFiles) done(path string) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.paths, path)
}
