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

// Watcher checks documents again whenever one of their files changes. It looks
// at the files at intervals instead of asking the operating system to tell: that
// works on every file system, also on those of networks and containers, and
// there is nothing to leak (docs/decisions/007-watch-by-polling.md).
type Watcher struct {
	Find Finder         // which documents; folders are searched again at each look
	Load loader.Options // how they are read
	// Show is called with the results of the first check and after each change; an
	// error ends the watching. An error of Find is handed over in place of results,
	// but for the first one, which ends the watching.
	Show func(results []Result, found error) error
	// Wait waits between two looks; it ends with an error when ctx does. A timer
	// where it is nil.
	Wait func(ctx context.Context, d time.Duration) error
}

// How long to wait between looks. A look over very many files takes long itself:
// then the waiting is longer, so that it is a twentieth of the time at most.
const (
	interval    = 300 * time.Millisecond
	debounce    = 50 * time.Millisecond // after a change, for editors write in several steps
	maxCPUShare = 20
)

// Run watches until ctx ends, which is no error.
func (w *Watcher) Run(ctx context.Context) error {
	own := *w
	watch := watching{Watcher: &own, known: map[Document]*watched{}}
	if watch.Wait == nil {
		watch.Wait = timer
	}
	if err := watch.all(ctx); ctx.Err() == nil {
		return err
	}
	return nil // to be interrupted is how it ends
}

// watching is a Watcher at work.
type watching struct {
	*Watcher
	known  map[Document]*watched
	failed string // the error of Find that was shown last; empty after a check
}

// all checks everything, then looks and looks again until something fails.
func (w *watching) all(ctx context.Context) error {
	documents, err := w.Find.Find(ctx)
	if err != nil {
		return err
	}
	if err := w.check(ctx, documents); err != nil {
		return err
	}
	for took := time.Duration(0); ; {
		if err := w.Wait(ctx, max(interval, maxCPUShare*took)); err != nil {
			return err
		}
		if took, err = w.poll(ctx); err != nil {
			return err
		}
	}
}

// poll checks again what changed, and tells how long the looking alone took.
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

// lost shows why documents cannot be found any more, once.
func (w *watching) lost(ctx context.Context, found error) error {
	if ctx.Err() != nil || found.Error() == w.failed {
		return ctx.Err()
	}
	w.failed = found.Error()
	return w.Show(nil, found)
}

// check checks what is new or changed and shows everything.
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
				return ctx.Err() // half-read documents are not shown
			}
			now.done = true
		}
		all = append(all, now.again())
	}
	maps.DeleteFunc(w.known, func(d Document, _ *watched) bool { return !current[d] })
	return w.Show(settle(all), nil)
}

// recheck makes the entries of documents that are new or changed, with the states
// of the files that are sure to be read. All of them before the first check: the
// documents of a page share one reading of it.
func (w *watching) recheck(documents []Document) {
	for _, d := range documents {
		if old := w.known[d]; old != nil && old.done && !old.changed() {
			continue
		}
		now := &watched{stamps: map[string]fileState{}}
		for _, path := range []string{".env", filepath.Join(filepath.Dir(d.Path), ".env"), d.Path} {
			now.stamps[path] = statFile(path)
		}
		w.known[d] = now
	}
}

// again is a copy whose faults can be added to.
func (c pendingResult) again() pendingResult {
	c.Faults = c.Faults[:len(c.Faults):len(c.Faults)]
	return c
}

// watched is a document as it was checked last.
type watched struct {
	pendingResult
	done   bool                 // checked is there
	stamps map[string]fileState // of every file that it was read from, by path
}

// watch notes each file before it is opened, so that a change while it is read
// is seen at the next look. Files that are not there are noted, too.
func (d *watched) watch(below opener) opener {
	return func(ctx context.Context, path string) (io.ReadCloser, error) {
		if _, noted := d.stamps[path]; !noted {
			d.stamps[path] = statFile(path)
		}
		if below == nil {
			return nil, nil
		}
		return below(ctx, path)
	}
}

func (d *watched) changed() bool {
	for path, was := range d.stamps {
		if statFile(path) != was {
			return true
		}
	}
	return false
}

// anyChanged tells whether documents came, went or changed.
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

// fileState tells one state of a file from another without reading it.
type fileState struct {
	there bool
	mode  fs.FileMode
	size  int64
	time  int64 // nanoseconds since 1970
}

func statFile(path string) fileState {
	info, err := os.Stat(path)
	if err != nil {
		return fileState{}
	}
	return fileState{true, info.Mode(), info.Size(), info.ModTime().UnixNano()}
}

// timer waits by the clock.
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
