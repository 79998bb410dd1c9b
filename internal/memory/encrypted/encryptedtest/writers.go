package encryptedtest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/qtype-dev/qtype/internal/memory/encrypted"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/spec/chat"
)

// ReencryptWithWriters checks that writers of the new and of the old key, which write all the time, lose nothing, and
// that what they wrote can be read with the new key. open opens the same store each time.
func ReencryptWithWriters(t *testing.T, open func(encrypted.Keys) (*encrypted.Store, func())) {
	t.Helper()
	a, b := keyOf(t, 1), keyOf(t, 2)
	const sessions, messages, writers, each = 3, 100, 8, 60
	s, closeFirst := open(encrypted.Keys{Key: a})
	defer closeFirst()
	for i := range sessions {
		m := NewMemory(t, s)
		for n := range messages {
			testkit.Must(t, m.Append(t.Context(), fmt.Sprint("s", i), chat.Text(chat.User, fmt.Sprint("first-", n))))
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var all sync.WaitGroup
	var acknowledged [writers]atomic.Int64
	for w := range writers {
		keys := encrypted.Keys{Key: b, Old: []encrypted.Key{a}}
		if w == 0 {
			keys = encrypted.Keys{Key: a, Old: []encrypted.Key{b}} // it has the new key, and does not use it yet
		}
		own, closeOwn := open(keys)
		m := NewMemory(t, own)
		all.Go(func() {
			defer closeOwn()
			for n := 0; ctx.Err() == nil && n < each; n++ {
				err := m.Append(t.Context(), fmt.Sprint("s", n%sessions), chat.Text(chat.User, fmt.Sprint(w, "-", n)))
				if err != nil {
					t.Error(err)
					return
				}
				acknowledged[w].Add(1)
			}
		})
	}
	both, closeBoth := open(encrypted.Keys{Key: b, Old: []encrypted.Key{a}})
	defer closeBoth()
	report, err := both.Reencrypt(t.Context(), "m")
	stop()
	all.Wait()
	var stored *store.Error
	if err != nil && (!errors.As(err, &stored) || stored.Problem != store.Locked) { // the writer of the old key was faster each time
		t.Fatal(err)
	}
	after, err := both.Reencrypt(t.Context(), "m")
	testkit.Must(t, err)
	t.Logf("with writers: %+v; afterwards: %+v", report, after)
	if n := report.Messages + after.Messages; n < sessions*messages {
		t.Errorf("%d messages were encrypted again, want at least %d", n, sessions*messages)
	}
	strict, closeStrict := open(encrypted.Keys{Key: b})
	defer closeStrict()
	found := map[string]int64{}
	for i := range sessions {
		for e, err := range strict.Entries(t.Context(), store.Key{Memory: "m", Session: fmt.Sprint("s", i)}, store.Query{}) {
			testkit.Must(t, err)
			writer, _, _ := strings.Cut(e.Message.Text(), "-")
			found[writer]++
		}
	}
	if found["first"] != sessions*messages {
		t.Errorf("%d of the first messages, want %d", found["first"], sessions*messages)
	}
	for w := range writers {
		if n := acknowledged[w].Load(); found[fmt.Sprint(w)] != n {
			t.Errorf("writer %d: %d messages were acknowledged, %d found", w, n, found[fmt.Sprint(w)])
		}
	}
}
