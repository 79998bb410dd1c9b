package remotefs

import (
	"context"
	"sync"
)

// writtenFiles are the files that the steps of a run have written, by what identifies them. The files of
// an attempt become those of the run if the attempt succeeds.
type writtenFiles struct {
	parent *writtenFiles // of the run that the attempt belongs to; nil for a run
	mu     sync.Mutex
	by     map[string]any // the writer of each file
}

type writtenKey struct{}

// WithWritten returns a context of a run that knows which of its steps has written a file; ctx if it is in a run already.
func WithWritten(ctx context.Context) context.Context {
	if writtenOf(ctx) != nil {
		return ctx
	}
	return context.WithValue(ctx, writtenKey{}, &writtenFiles{by: map[string]any{}})
}

// WithAttempt returns the context of an attempt, which may be repeated and then write its files again. keep makes
// its files those of the run.
func WithAttempt(ctx context.Context) (attempt context.Context, keep func()) {
	parent := writtenOf(ctx)
	if parent == nil {
		return ctx, func() {}
	}
	own := &writtenFiles{parent: parent, by: map[string]any{}}
	return context.WithValue(ctx, writtenKey{}, own), func() {
		own.mu.Lock()
		defer own.mu.Unlock()
		parent.mu.Lock()
		defer parent.mu.Unlock()
		for file, writer := range own.by {
			parent.by[file] = writer
		}
	}
}

// Claim notes that a writer writes a file of the run. It reports false if another one has written it.
func Claim(ctx context.Context, path string, writer any) bool {
	own := writtenOf(ctx)
	if own == nil {
		return true
	}
	file := absolute(path)
	for w := own; w != nil; w = w.parent {
		w.mu.Lock()
		by, known := w.by[file]
		w.mu.Unlock()
		if known {
			return by == writer
		}
	}
	own.mu.Lock()
	defer own.mu.Unlock()
	if by, known := own.by[file]; known { // since the check
		return by == writer
	}
	own.by[file] = writer
	return true
}

// Release forgets a file that its writer could not complete.
func Release(ctx context.Context, path string, writer any) {
	own := writtenOf(ctx)
	if own == nil {
		return
	}
	own.mu.Lock()
	defer own.mu.Unlock()
	if file := absolute(path); own.by[file] == writer {
		delete(own.by, file)
	}
}

func writtenOf(ctx context.Context) *writtenFiles {
	w, _ := ctx.Value(writtenKey{}).(*writtenFiles)
	return w
}
