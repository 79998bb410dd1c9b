package storetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/spec/chat"
)

// Server is a server that a test controls.
type Server interface {
	Kill() error    // kills it
	Restart() error // starts it again with the same data
	Freeze()        // suspends it
	Thaw()          // resumes it
}

// RunOutages checks a store whose server is suspended, killed and restarted. The
// store is empty and its operations fail after timeout, which is several seconds
// because a busy machine may be that late; the suite closes it. No error may
// contain secret.
func RunOutages(t *testing.T, server Server, store store.Store, timeout time.Duration, secret string) {
	t.Cleanup(func() { testkit.Must(t, store.Close()) })
	t.Run("frozen", func(t *testing.T) { frozen(t, server, store, timeout, secret) })
	t.Run("down", func(t *testing.T) { down(t, server, store, secret) })
	t.Run("restarts", func(t *testing.T) { restarts(t, server, store) })
	t.Run("answer", func(t *testing.T) { answerOutlasts(t, server, store, timeout) })
}

// checkUnavailable checks that err is a StoreError of kind Unavailable in one line.
func checkUnavailable(t *testing.T, err error, secret string) {
	t.Helper()
	var e *store.StoreError
	if !errors.As(err, &e) || e.Problem != store.Unavailable {
		t.Fatalf("got %v, want a StoreError of kind Unavailable", err)
	}
	if secret != "" && strings.Contains(fmt.Sprintf("%v %+v", err, err), secret) {
		t.Errorf("the error contains a secret: %v", err)
	}
	checkOneLine(t, err)
	t.Log(err)
}

// checkOneLine checks that an error is one line.
func checkOneLine(t *testing.T, err error) {
	t.Helper()
	if text := fmt.Sprintf("%v %+v", err, err); strings.Contains(text, "\n") {
		t.Errorf("the error is not one line: %s", text)
	}
}

// operations returns one call of each kind.
func operations(ctx context.Context, s store.Store, key store.Key) map[string]func() error {
	return map[string]func() error{
		"head": func() error { _, err := s.Head(ctx, key); return err },
		"entries": func() (err error) {
			for _, err = range s.Entries(ctx, key, store.Query{}) {
				if err != nil {
					break
				}
			}
			return err
		},
		"sessions": func() (err error) {
			for _, err = range s.Sessions(ctx, key.Memory) {
				if err != nil {
					break
				}
			}
			return err
		},
	}
}

// frozen checks that operations on a suspended server fail after the timeout, and
// at once if the caller cancels.
func frozen(t *testing.T, server Server, s store.Store, timeout time.Duration, secret string) {
	m := newMemory(t, s)
	testkit.Must(t, m.Append(t.Context(), "s", chat.Text(chat.User, "before")))
	server.Freeze()
	defer server.Thaw()
	key := store.Key{Memory: "m", Session: "s"}
	errs := make(chan error)
	all := operations(t.Context(), s, key)
	for name, use := range all {
		go func() {
			began := time.Now()
			err := use()
			if took := time.Since(began); took >= 2*timeout { // it tried a second time
				t.Errorf("%s took %v, the timeout was %v", name, took, timeout)
			}
			errs <- err
		}()
	}
	for range all {
		checkUnavailable(t, <-errs, secret)
	}
	ctx, cancel := context.WithTimeout(t.Context(), timeout/100)
	defer cancel()
	began := time.Now()
	if _, err := s.Head(ctx, key); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) >= timeout {
		t.Errorf("a cancelled call returned %v after %v", err, time.Since(began))
	}
	server.Thaw()
	testkit.Must(t, m.Append(t.Context(), "s", chat.Text(chat.User, "after")))
	if n := len(entries(t, s, key, store.Query{})); n != 2 {
		t.Errorf("%d messages, want 2", n)
	}
}

// down checks that operations fail after the timeout if the server stays down, and not afterwards.
func down(t *testing.T, server Server, s store.Store, secret string) {
	m := newMemory(t, s)
	testkit.Must(t, m.Append(t.Context(), "d", chat.Text(chat.User, "before")))
	testkit.Must(t, server.Kill())
	all := operations(t.Context(), s, store.Key{Memory: "m", Session: "d"})
	all["append"] = func() error { return m.Append(t.Context(), "d", chat.Text(chat.User, "meanwhile")) }
	errs := make(chan error)
	for _, use := range all {
		go func() { errs <- use() }()
	}
	for range all {
		checkUnavailable(t, <-errs, secret)
	}
	testkit.Must(t, server.Restart())
	testkit.Must(t, m.Append(t.Context(), "d", chat.Text(chat.User, "after")))
	var added []string
	for _, e := range entries(t, s, store.Key{Memory: "m", Session: "d"}, store.Query{}) {
		added = append(added, e.Message.Text())
	}
	if strings.Join(added, " ") != "before after" {
		t.Errorf("the history is %q", added)
	}
}

// restarts checks that writers which try again add everything once, while the
// server is killed several times.
func restarts(t *testing.T, server Server, s store.Store) {
	const writers, each = 8, 40
	halves := make(chan struct{}, writers*each)
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		inParallel(writers, func(w int) {
			m := newMemory(t, s)
			for i := range each {
				addOnce(t, m, fmt.Sprint("r", w%2), fmt.Sprintf("%d-%d", w/2, i))
				halves <- struct{}{}
			}
		})
	}()
	for range 3 {
		for range writers * each / 4 {
			<-halves
		}
		testkit.Must(t, server.Kill())
		testkit.Must(t, server.Restart())
	}
	<-finished
	for i := range 2 {
		checkSerial(t, s, store.Key{Memory: "m", Session: fmt.Sprint("r", i)}, writers/2, each)
	}
}

// answerOutlasts checks that a turn with an answer is stored although the server is down for
// longer than the timeout.
func answerOutlasts(t *testing.T, server Server, s store.Store, timeout time.Duration) {
	m := newMemory(t, s)
	turn, err := m.Begin(t.Context(), "answer")
	testkit.Must(t, err)
	testkit.Must(t, turn.Add(chat.Text(chat.User, "question"), chat.Text(chat.Assistant, "answer")))
	testkit.Must(t, server.Kill())
	committed := make(chan error)
	go func() { committed <- turn.Commit(t.Context()) }()
	time.Sleep(timeout + timeout/10)
	testkit.Must(t, server.Restart())
	testkit.Must(t, <-committed)
	if n := len(entries(t, s, store.Key{Memory: "m", Session: "answer"}, store.Query{})); n != 2 {
		t.Errorf("%d messages, want 2", n)
	}
}

// addOnce tries until the message is added.
func addOnce(t *testing.T, m *memory.Memory, session, text string) {
	var turn *memory.Turn
	var err error
	for turn == nil {
		if turn, err = m.Begin(t.Context(), session); !isRetryable(t, err) {
			return
		}
	}
	defer func() { _ = turn.Abort(t.Context(), nil) }() // does nothing after Commit; otherwise the next turn would never begin
	msg := chat.Text(chat.User, text)
	for _, try := range []func() error{func() error { return turn.Add(msg) }, func() error { return turn.Commit(t.Context()) }} {
		for err := try(); err != nil; err = try() {
			if !isRetryable(t, err) {
				return
			}
		}
	}
}

// isRetryable reports whether trying again may help.
func isRetryable(t *testing.T, err error) bool {
	var e *store.StoreError
	if err == nil || errors.As(err, &e) && e.Problem == store.Unavailable {
		return true
	}
	t.Error(err)
	return false
}
