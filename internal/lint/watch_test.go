package lint_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/qtype-dev/qtype/internal/lint"
)

// watching starts a watcher. poll lets it poll and returns what it shows, nil if
// nothing changed.
func watching(t *testing.T, find lint.Finder) (poll func() []string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	waits := make(chan chan struct{}) // the watcher waits until the channel that it sends is closed
	var shown []string
	w := lint.Watcher{
		Find: find, Load: options(),
		Show: func(results []lint.Result, found error) error {
			shown = append(shown, "shown")
			for _, r := range results {
				shown = append(shown, r.Document.String()+": "+strings.Join(positions(r.Diagnostics), ", "))
			}
			if found != nil {
				shown = append(shown, found.Error())
			}
			return nil
		},
		Wait: func(ctx context.Context, d time.Duration) error {
			if d < 100*time.Millisecond {
				return nil // the debounce delay
			}
			goOn := make(chan struct{})
			select {
			case waits <- goOn:
			case <-ctx.Done():
				return ctx.Err()
			}
			select {
			case <-goOn:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		},
	}
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run returned %v", err)
		}
	})
	held := <-waits
	return func() []string {
		result := shown
		shown = nil
		if result != nil {
			return result // of the first check
		}
		close(held)
		held = <-waits
		result, shown = shown, nil
		return result
	}
}

func TestWatcher(t *testing.T) {
	folder(t, map[string]string{"specs/a.qtype.yaml": valid, "specs/b.qtype.yaml": "id: b\nmodels: !include parts.yaml\n"})
	poll := watching(t, lint.Finder{Paths: []string{"specs"}})
	for i, step := range []struct {
		do   func()
		want []string
	}{
		{func() {}, []string{"shown", "specs/a.qtype.yaml: ", "specs/b.qtype.yaml: QT006 specs/b.qtype.yaml:2:18"}},
		{func() {}, nil},
		{func() { write(t, "specs/a.qtype.yaml", broken) }, []string{"shown", "specs/a.qtype.yaml: QT202 specs/a.qtype.yaml:11:48", "specs/b.qtype.yaml: QT006 specs/b.qtype.yaml:2:18"}},
		{func() {}, nil},
		{func() { write(t, "specs/parts.yaml", "[]") }, []string{"shown", "specs/a.qtype.yaml: QT202 specs/a.qtype.yaml:11:48", "specs/b.qtype.yaml: "}},
		{func() { write(t, "specs/parts.yaml", "[1]") }, []string{"shown", "specs/a.qtype.yaml: QT202 specs/a.qtype.yaml:11:48", "specs/b.qtype.yaml: QT105 specs/parts.yaml:1:2"}},
		{func() { write(t, "specs/c.qtype.yaml", "id: c\n"); os.Remove("specs/b.qtype.yaml") }, []string{"shown", "specs/a.qtype.yaml: QT202 specs/a.qtype.yaml:11:48", "specs/c.qtype.yaml: "}},
		{func() { os.Rename("specs", "away") }, []string{"shown", "specs: QT001 specs"}},
		{func() {}, nil},
		{func() { os.Rename("away", "specs"); write(t, "specs/a.qtype.yaml", valid) }, []string{"shown", "specs/a.qtype.yaml: ", "specs/c.qtype.yaml: "}},
	} {
		step.do()
		if d := cmp.Diff(step.want, poll()); d != "" {
			t.Errorf("poll %d: %s", i, d)
		}
	}
}

func TestWatcher_Catalogue(t *testing.T) {
	folder(t, map[string]string{"a.qtype.yaml": valid})
	poll := watching(t, lint.Finder{Paths: []string{"a.qtype.yaml"}})
	for _, step := range []struct{ catalogue, want string }{{"", ""}, {"[1]", "QT012 models.yaml:1:1"}, {"catalogue: []", ""}} {
		if step.catalogue != "" {
			write(t, "models.yaml", step.catalogue)
		}
		if d := cmp.Diff([]string{"shown", "a.qtype.yaml: " + step.want}, poll()); d != "" {
			t.Errorf("%q: %s", step.catalogue, d)
		}
	}
}

func TestWatcher_NoFiles(t *testing.T) {
	folder(t, nil)
	w := lint.Watcher{Find: lint.Finder{Paths: []string{"*.yaml"}}, Load: options()}
	if err := w.Run(t.Context()); err == nil || err.Error() != "no file matches *.yaml" {
		t.Errorf("Run returned %v", err)
	}
}

// TestWatcher_EndsOnShowError uses the default timer.
func TestWatcher_EndsOnShowError(t *testing.T) {
	folder(t, map[string]string{"a.yaml": valid})
	gone := errors.New("gone")
	times := 0
	w := lint.Watcher{Find: lint.Finder{Paths: []string{"a.yaml"}}, Load: options(), Show: func([]lint.Result, error) error {
		if times++; times == 2 {
			return gone
		}
		write(t, "a.yaml", broken)
		return nil
	}}
	if err := w.Run(t.Context()); !errors.Is(err, gone) || times != 2 {
		t.Errorf("Run returned %[2]v after %[1]d checks", times, err)
	}
}
