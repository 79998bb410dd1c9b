package remotefs

import (
	"context"
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
