package remotefs

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// writtenFiles are the files that the steps of a run have written.
type writtenFiles struct {
	mu sync.Mutex
	by map[string]any // the writer of each file, by what identifies it
}

// attempt is what may be repeated and then write its files again.
type attempt struct {
	outer *attempt       // the one that it is part of; nil for none
	files map[string]any // the files that it has written, and their writers
}

type writtenKey struct{}

type attemptKey struct{}

// WithWritten returns a context of a run that knows which of its steps has written a file; ctx if it is in a run already.
func WithWritten(ctx context.Context) context.Context {
	if writtenOf(ctx) != nil {
		return ctx
	}
	return context.WithValue(ctx, writtenKey{}, &writtenFiles{by: map[string]any{}})
}

// WithAttempt returns the context of an attempt. fail notes that it has failed, so that its files may be written again.
func WithAttempt(ctx context.Context) (within context.Context, fail func()) {
	w := writtenOf(ctx)
	if w == nil {
		return ctx, func() {}
	}
	a := &attempt{outer: attemptOf(ctx), files: map[string]any{}}
	return context.WithValue(ctx, attemptKey{}, a), func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		for file, writer := range a.files {
			w.remove(file, writer)
		}
	}
}

// Claim notes that a writer writes a file of the run. It reports false if another one has written it.
func Claim(ctx context.Context, path string, writer any) bool {
	w := writtenOf(ctx)
	if w == nil {
		return true
	}
	file := absolute(path)
	w.mu.Lock()
	defer w.mu.Unlock()
	if by, known := w.by[file]; known {
		return by == writer
	}
	w.by[file] = writer
	for a := attemptOf(ctx); a != nil; a = a.outer {
		a.files[file] = writer
	}
	return true
}

// Release forgets a file that its writer could not complete.
func Release(ctx context.Context, path string, writer any) {
	w := writtenOf(ctx)
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.remove(absolute(path), writer)
}

// remove forgets the file of a writer. The caller holds the lock.
func (w *writtenFiles) remove(file string, writer any) {
	if w.by[file] == writer {
		delete(w.by, file)
	}
}

func writtenOf(ctx context.Context) *writtenFiles {
	w, _ := ctx.Value(writtenKey{}).(*writtenFiles)
	return w
}

func attemptOf(ctx context.Context) *attempt {
	a, _ := ctx.Value(attemptKey{}).(*attempt)
	return a
}

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

// removeAbandoned removes the temporary files of a local file whose programs were killed. A
// program locks the file that it writes.
func removeAbandoned(final string) {
	dir, base := filepath.Split(final)
	if dir == "" {
		dir = "."
	}
	entries, _ := os.ReadDir(dir) // a folder that cannot be listed is left alone
	for _, e := range entries {
		rest, ok := strings.CutPrefix(e.Name(), "."+base+".")
		id, temporary := strings.CutSuffix(rest, ".tmp")
		if ok && temporary && len(id) == 12 && strings.Trim(id, "0123456789abcdef") == "" && e.Type().IsRegular() {
			removeUnlocked(filepath.Join(dir, e.Name()))
		}
	}
}
