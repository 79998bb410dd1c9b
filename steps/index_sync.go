package steps

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/qtype-dev/qtype/index"
	"github.com/qtype-dev/qtype/internal/filter"
	"github.com/qtype-dev/qtype/spec"
)

// syncPage is how many entries are listed and removed at once.
const syncPage = 1000

// IndexCounter counts what a step did to an index. It is safe for concurrent use.
type IndexCounter struct {
	written, unchanged, removed atomic.Int64
	kept                        atomic.Pointer[string]
}

// IndexCounts is what a step did to an index.
type IndexCounts struct {
	Written   int64  // entries that were new or changed
	Unchanged int64  // entries that the index already had
	Removed   int64  // entries that the run did not contain
	Kept      string // why nothing was removed although the step has sync; empty otherwise
}

// Counts returns the counts so far.
func (c *IndexCounter) Counts() IndexCounts {
	counts := IndexCounts{Written: c.written.Load(), Unchanged: c.unchanged.Load(), Removed: c.removed.Load()}
	if kept := c.kept.Load(); kept != nil {
		counts.Kept = *kept
	}
	return counts
}

// IndexWriter is implemented by steps that write to an index.
type IndexWriter interface{ Counts() *IndexCounter }

// indexSync removes from an index what a run did not contain. A nil *indexSync does
// nothing.
type indexSync struct {
	index    index.Index
	counts   *IndexCounter
	scope    filter.Filter // what may be removed; nil for all
	failures func() int64  // rows that failed in the run, also rows that a step dropped
	failed   bool          // a failed row has passed the step
	contains bool          // the run contains an entry
	// missing are the entries of the index from before the run that the run has not contained so
	// far; nil before the first write. What another run adds meanwhile is not among them.
	missing map[digest]struct{}
}

func newIndexSync(u *indexUpsert, s *spec.IndexUpsert, env *Env) (*indexSync, error) {
	scope, err := filter.Parse(s.SyncFilters)
	if err != nil {
		return nil, fmt.Errorf("sync_%w", err)
	}
	failures := env.Failures
	if failures == nil {
		failures = func() int64 { return 0 }
	}
	return &indexSync{index: u.index, counts: &u.counts, scope: scope, failures: failures}, nil
}

// add notes that the run contains entries, before they are written.
func (s *indexSync) add(ctx context.Context, ids []string) error {
	if s == nil || len(ids) == 0 {
		return nil
	}
	if s.missing == nil {
		missing := map[digest]struct{}{}
		for e, err := range s.index.Entries(ctx, index.Page{Filter: s.scope}) {
			if err != nil {
				return errListing(err)
			}
			missing[digestOf(e.ID)] = struct{}{}
		}
		s.missing = missing
	}
	s.contains = true
	for _, id := range ids {
		delete(s.missing, digestOf(id))
	}
	return nil
}

func errListing(err error) error {
	return fmt.Errorf("listing the index to remove what the run did not contain: %w", err)
}

// fail notes that a row has failed.
func (s *indexSync) fail() {
	if s != nil {
		s.failed = true
	}
}

// finish removes the other entries at the end of the run, unless it may have missed some.
func (s *indexSync) finish(ctx context.Context) error {
	why := ""
	switch {
	case s.failed || s.failures() > 0:
		why = "rows failed"
	case partialReason(ctx) != "":
		why = partialReason(ctx)
	case !s.contains:
		why = "the run contained no entries"
	}
	if why != "" {
		s.counts.kept.Store(&why)
		return nil
	}
	if len(s.missing) == 0 {
		return nil
	}
	page := index.Page{Limit: syncPage, Filter: s.scope}
	for {
		var listed int
		var gone []string
		for e, err := range s.index.Entries(ctx, page) {
			if err != nil {
				return errListing(err)
			}
			listed++
			page.After = e.ID
			if _, missing := s.missing[digestOf(e.ID)]; missing {
				gone = append(gone, e.ID)
			}
		}
		if len(gone) > 0 {
			if err := s.index.Delete(ctx, gone); err != nil {
				return err
			}
			s.counts.removed.Add(int64(len(gone)))
		}
		if listed < syncPage {
			return nil
		}
	}
}

// The reasons of WithPartialInput.
const (
	PartialInput = "the run read only a part of its input"
	RowsFailed   = "rows failed"
	MayHaveLost  = "rows that an earlier run has finished may have failed"
)

type partialInputKey struct{}

// WithPartialInput returns a context for a run. At its end, reason returns why it may miss a part of
// its input, so that no step takes what is missing for removed; empty if it does not.
func WithPartialInput(ctx context.Context, reason func() string) context.Context {
	return context.WithValue(ctx, partialInputKey{}, reason)
}

// partialReason returns the reason of WithPartialInput.
func partialReason(ctx context.Context) string {
	if reason, ok := ctx.Value(partialInputKey{}).(func() string); ok {
		return reason()
	}
	return ""
}
