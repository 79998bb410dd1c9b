package lint

import (
	"context"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"time"

	"github.com/qtype-dev/qtype/loader"
)

// Watcher checks documents again when their files change. It polls the files: network
// drives and container mounts often send no notifications.
type Watcher struct {
	Find Finder         // documents to watch; folders are searched in every poll
	Load loader.Options // options of the loader
	// Show receives the results of the first check and after each change. Its error
	// ends Run. found is an error of Find after the first check, in place of
	// results.
	Show func(results []Result, found error) error
	// Wait waits between polls and returns an error when ctx is canceled. The
	// default is a timer.
	Wait func(ctx context.Context, d time.Duration) error
}

// If a poll of many files takes long, the interval grows, so that polling takes at
// most a twentieth of the time.
const (
	pollInterval = 300 * time.Millisecond
	debounce     = 50 * time.Millisecond // editors write a file in several steps
	maxCPUShare  = 20
)

// Run watches until ctx is canceled, which is not an error.
func (w *Watcher) Run(ctx context.Context) error {
	own := *w
	watch := watching{Watcher: &own, known: map[Document]*watched{}}
	if watch.Wait == nil {
		watch.Wait = timer
	}
	if err := watch.all(ctx); ctx.Err() == nil {
		return err
	}
	return nil // canceled
}

// watching is a running Watcher.
type watching struct {
	*Watcher
	known  map[Document]*watched
	failed string // the last reported error of Find; empty after a check
}

// all checks all documents, then polls until an error occurs.
func (w *watching) all(ctx context.Context) error {
	documents, err := w.Find.Find(ctx)
	if err != nil {
		return err
	}
	if err := w.check(ctx, documents); err != nil {
		return err
	}
	for took := time.Duration(0); ; {
		if err := w.Wait(ctx, max(pollInterval, maxCPUShare*took)); err != nil {
			return err
		}
		if took, err = w.poll(ctx); err != nil {
			return err
		}
	}
}

// poll checks changed documents, and returns how long polling took without the
// checks.
func (w *watching) poll(ctx context.Context) (took time.Duration, err error) {
	begin := time.Now()
	documents, err := w.Find.Find(ctx)
	if err != nil {
		return time.Since(begin), w.lost(ctx, err)
	}
	changed := w.failed != "" || anyChanged(w.known, documents)
	took = time.Since(begin)
	if !changed {
		return took, nil
	}
	if err := w.Wait(ctx, debounce); err != nil {
		return took, err
	}
	if documents, err = w.Find.Find(ctx); err != nil {
		return took, w.lost(ctx, err)
	}
	return took, w.check(ctx, documents)
}

// lost reports an error of Find, unless it was the last one reported.
func (w *watching) lost(ctx context.Context, found error) error {
	if ctx.Err() != nil || found.Error() == w.failed {
		return ctx.Err()
	}
	w.failed = found.Error()
	return w.Show(nil, found)
}

// check checks new and changed documents and shows all results.
func (w *watching) check(ctx context.Context, documents []Document) error {
	w.failed = ""
	checker := newChecker(w.Load)
	w.recheck(documents)
	all := make([]pendingResult, 0, len(documents))
	current := map[Document]bool{}
	for _, d := range documents {
		current[d] = true
		now := w.known[d]
		if !now.done {
			now.pendingResult = checker.check(ctx, d, now.watch(w.Load.Open))
			if ctx.Err() != nil {
				return ctx.Err() // the check is incomplete
			}
			now.done = true
		}
		all = append(all, now.again())
	}
	maps.DeleteFunc(w.known, func(d Document, _ *watched) bool { return !current[d] })
	return w.Show(settle(all), nil)
}

// recheck creates the entries of new and changed documents with the states of their
// files. It does so before the first check, as the documents of a page share its
// content.
func (w *watching) recheck(documents []Document) {
	for _, d := range documents {
		if old := w.known[d]; old != nil && old.done && !old.changed() {
			continue
		}
		now := &watched{files: map[string]fileState{}}
		folder := filepath.Dir(d.Path)
		for _, path := range []string{".env", filepath.Join(folder, ".env"), os.Getenv(loader.CatalogueVariable), filepath.Join(folder, loader.CatalogueFile), d.Path} {
			now.files[path] = statFile(path)
		}
		w.known[d] = now
	}
}

// again returns a copy whose diagnostics can be appended to.
func (c pendingResult) again() pendingResult {
	c.Diagnostics = c.Diagnostics[:len(c.Diagnostics):len(c.Diagnostics)]
	return c
}

// watched is a checked document.
type watched struct {
	pendingResult
	done  bool                 // pendingResult is set
	files map[string]fileState // files that it was read from, by path
}

// watch records the state of each file, also missing ones, before it is opened, so
// that the next poll detects changes during the check.
func (d *watched) watch(below Opener) Opener {
	return func(ctx context.Context, path string) (io.ReadCloser, error) {
		if _, noted := d.files[path]; !noted {
			d.files[path] = statFile(path)
		}
		if below == nil {
			return nil, nil
		}
		return below(ctx, path)
	}
}

func (d *watched) changed() bool {
	for path, was := range d.files {
		if statFile(path) != was {
			return true
		}
	}
	return false
}

// anyChanged reports whether documents were added, removed or changed.
func anyChanged(known map[Document]*watched, documents []Document) bool {
	if len(known) != len(documents) {
		return true
	}
	for _, d := range documents {
		if known[d] == nil || known[d].changed() {
			return true
		}
	}
	return false
}

// fileState identifies a version of a file without reading it.
type fileState struct {
	exists bool
	mode   fs.FileMode
	size   int64
	time   int64 // Unix time in nanoseconds
}

func statFile(path string) fileState {
	info, err := os.Stat(path) //nolint:gosec // the files are those of the user
	if err != nil {
		return fileState{}
	}
	return fileState{true, info.Mode(), info.Size(), info.ModTime().UnixNano()}
}

func timer(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
