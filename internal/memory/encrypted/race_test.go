package encrypted_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/qtype-dev/qtype/internal/memory/encrypted"
	"github.com/qtype-dev/qtype/internal/memory/inprocess"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/store"
)

// TestStore_ConcurrentWriters checks that a reader never reports tampering while
// others, with their own stores as in other processes, write to, delete and
// recreate the session.
func TestStore_ConcurrentWriters(t *testing.T) {
	for name, newInner := range map[string]func() store.Store{
		"in process": func() store.Store { return inprocess.New() },
		"sqlite":     func() store.Store { s, err := openInner(t.TempDir()); testkit.Must(t, err); return s },
	} {
		t.Run(name, func(t *testing.T) {
			inner := newInner()
			defer func() { testkit.Must(t, inner.Close()) }()
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			var writers, readers sync.WaitGroup
			start := func(group *sync.WaitGroup, times int, do func(m *memory.Memory, n int) error) {
				m := newMemory(t, encrypted.New(inner, name, encrypted.Keys{Key: key(t, "a")}))
				group.Go(func() {
					for n := 0; ctx.Err() == nil && (times == 0 || n < times); n++ {
						if err := do(m, n); err != nil && ctx.Err() == nil && !errors.Is(err, store.ErrConflict) {
							t.Error(err)
						}
					}
				})
			}
			for writer := range 2 {
				start(&writers, 0, func(m *memory.Memory, n int) error {
					return m.Append(ctx, "s", user(fmt.Sprint(writer, "-", n)))
				})
			}
			start(&writers, 0, func(m *memory.Memory, n int) error {
				if n%10 == 9 {
					return m.Clear(ctx, "s")
				}
				turn, err := m.Begin(ctx, "s")
				if err == nil {
					err = turn.Add(user("canceled"))
				}
				if err == nil {
					err = turn.Abort(ctx, errors.New("no answer"))
				}
				return err
			})
			for range 2 {
				start(&readers, 150, func(m *memory.Memory, _ int) error { _, err := readAll(ctx, m, "s"); return err })
			}
			readers.Wait()
			stop()
			writers.Wait()
		})
	}
}
