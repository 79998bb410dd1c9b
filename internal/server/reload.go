package server

import (
	"context"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/qtype-dev/qtype/runtime"
)

// reloadPeriod is the time between two looks at the files of a document. Polling works
// on all file systems, as in qtype validate --watch.
const reloadPeriod = 300 * time.Millisecond

// Loader reads a document again. It returns the files that it has read, also if the
// document has errors.
type Loader func(ctx context.Context) (app *runtime.App, files []string, rejected *ReloadError)

// Watch serves a document again whenever its files change: a valid one replaces the
// former one, the errors of another are shown while the former one is served. It returns
// when ctx ends. report, which may be nil, is called after each reload.
func (s *Server) Watch(ctx context.Context, files []string, load Loader, report func(*ReloadError)) {
	w := &watcher{load: load, files: files, known: statFiles(files)}
	tick := time.NewTicker(reloadPeriod)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if slices.Equal(w.known, statFiles(w.files)) {
			continue
		}
		app, rejected := w.read(ctx)
		if rejected != nil {
			s.RejectReload(rejected)
		} else if app != nil {
			s.Swap(app)
		}
		if report != nil {
			report(rejected)
		}
	}
}

// watcher reads a document whose files change.
type watcher struct {
	load  Loader
	files []string    // of the document when it was read
	known []fileState // of the files when they were read
}

// read reads the document until its files do not change meanwhile: editors write files in
// several steps.
func (w *watcher) read(ctx context.Context) (*runtime.App, *ReloadError) {
	for {
		w.known = statFiles(w.files)
		app, files, rejected := w.load(ctx)
		if rejected != nil { // a file may be missing that is read again when it is back
			files = append(slices.Clone(files), w.files...)
			slices.Sort(files)
			files = slices.Compact(files)
		}
		if len(files) > 0 {
			w.files = files
		}
		now := statFiles(w.files)
		if slices.Equal(w.known, now) || len(w.known) != len(now) || ctx.Err() != nil {
			w.known = now
			return app, rejected
		}
		if app != nil {
			_ = app.Close(ctx) // it was not used
		}
	}
}

// fileState is what changes when a file is written.
type fileState struct {
	size int64
	time time.Time
	mode fs.FileMode
}

func statFiles(files []string) []fileState {
	states := make([]fileState, len(files))
	for i, path := range files {
		if info, err := os.Stat(path); err == nil {
			states[i] = fileState{info.Size(), info.ModTime(), info.Mode()}
		}
	}
	return states
}
