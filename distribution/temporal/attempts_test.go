package temporal

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/qtype-dev/qtype/internal/durable"
	"github.com/qtype-dev/qtype/internal/testkit"
)

// TestAttempts_Frozen: an attempt that was frozen learns that another one has begun, and what it has added since is not valid.
func TestAttempts_Frozen(t *testing.T) {
	b, ctx := newBlobs(durable.Config{Blobs: t.TempDir()}), t.Context()
	began := time.Unix(1_800_000_000, 0)
	start := func() (*attemptList, *journal) {
		began = began.Add(time.Second)
		j := newJournal(ctx, b, callsName("run", 0, 0))
		j.segment = newSegment(began)
		t.Cleanup(j.close)
		all := &attemptList{blobs: b, folder: "run", own: j.segment}
		testkit.Must(t, all.begin(ctx))
		return all, j
	}
	replayed := func(all *attemptList) (keys []string) {
		testkit.Must(t, all.replay(ctx, func(e *entry) { keys = append(keys, e.Key) }))
		testkit.Must(t, all.confirm(ctx))
		return keys
	}
	first, frozen := start()
	replayed(first)
	testkit.Must(t, frozen.add(entry{Key: "before"}))
	testkit.Must(t, first.check(ctx))
	second, j := start()
	if got := replayed(second); !cmp.Equal(got, []string{"before"}) {
		t.Error(got)
	}
	if err := first.check(ctx); !errors.Is(err, errLost) {
		t.Errorf("the frozen attempt: %v", err)
	}
	testkit.Must(t, frozen.add(entry{Key: "too late"}))
	testkit.Must(t, j.add(entry{Key: "after"}))
	testkit.Must(t, second.check(ctx))
	third, _ := start()
	if got := replayed(third); !cmp.Equal(got, []string{"before", "after"}) {
		t.Error(got)
	}
	late := &attemptList{blobs: b, folder: "run", own: newSegment(began.Add(-1500 * time.Millisecond))}
	if err := late.begin(ctx); !errors.Is(err, errLost) {
		t.Errorf("an attempt that begins after a later one: %v", err)
	}
}
