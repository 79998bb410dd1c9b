package storetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/spec/chat"
)

// Server is what a store depends on, in the hands of a test.
type Server interface {
	Kill() error    // puts it down at once
	Restart() error // starts it again, on the same data
	Freeze()        // lets it stop answering
	Thaw()          // lets it go on
}

// RunOutages checks that a store lives through the troubles of its server. The
// store is empty and its uses take patience at most; the suite closes it. Secret
// must be in no error. The patience is some seconds: a busy machine may be late
// by that much.
func RunOutages(t *testing.T, server Server, store memory.Store, patience time.Duration, secret string) {
	t.Cleanup(func() { must(t, store.Close()) })
	t.Run("frozen", func(t *testing.T) { frozen(t, server, store, patience, secret) })
	t.Run("down", func(t *testing.T) { down(t, server, store, secret) })
	t.Run("restarts", func(t *testing.T) { restarts(t, server, store) })
}

// unavailable: err is a clear line about the server.
func unavailable(t *testing.T, err error, secret string) {
	t.Helper()
	var e *memory.StoreError
	if !errors.As(err, &e) || e.Problem != memory.Unavailable {
		t.Fatalf("got %v, want a StoreError that says unavailable", err)
	}
	if secret != "" && strings.Contains(fmt.Sprintf("%v %+v", err, err), secret) {
		t.Errorf("the error tells a secret: %v", err)
	}
	unbroken(t, err)
	t.Log(err)
}

// unbroken: an error is one line.
func unbroken(t *testing.T, err error) {
	t.Helper()
	if text := fmt.Sprintf("%v %+v", err, err); strings.Contains(text, "\n") {
		t.Errorf("the error is not one line: %s", text)
	}
}

// uses are one call of each kind.
func uses(ctx context.Context, s memory.Store, key memory.Key) map[string]func() error {
	return map[string]func() error{
		"head": func() error { _, err := s.Head(ctx, key); return err },
		"entries": func() (err error) {
			for _, err = range s.Entries(ctx, key, memory.Query{}) {
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

// frozen: a server that does not answer costs the store's patience and no more,
// and a caller who gives up need not wait for that either.
func frozen(t *testing.T, server Server, s memory.Store, patience time.Duration, secret string) {
	m := newMemory(t, s)
	must(t, m.Append(t.Context(), "s", chat.Text(chat.User, "before")))
	server.Freeze()
	defer server.Thaw()
	key := memory.Key{Memory: "m", Session: "s"}
	errs := make(chan error)
	all := uses(t.Context(), s, key)
	for name, use := range all {
		go func() {
			began := time.Now()
			err := use()
			if took := time.Since(began); took >= 2*patience { // a second try would have been made
				t.Errorf("%s took %v, patience was %v", name, took, patience)
			}
			errs <- err
		}()
	}
	for range all {
		unavailable(t, <-errs, secret)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience/100)
	defer cancel()
	began := time.Now()
	if _, err := s.Head(ctx, key); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) >= patience {
		t.Errorf("a caller who gave up got %v after %v", err, time.Since(began))
	}
	server.Thaw()
	must(t, m.Append(t.Context(), "s", chat.Text(chat.User, "after")))
	if n := len(entries(t, s, key, memory.Query{})); n != 2 {
		t.Errorf("%d messages, want 2", n)
	}
}

// down: an error while the server is away, and none once it is back.
func down(t *testing.T, server Server, s memory.Store, secret string) {
	m := newMemory(t, s)
	must(t, m.Append(t.Context(), "d", chat.Text(chat.User, "before")))
	must(t, server.Kill())
	unavailable(t, m.Append(t.Context(), "d", chat.Text(chat.User, "meanwhile")), secret)
	for _, use := range uses(t.Context(), s, memory.Key{Memory: "m", Session: "d"}) {
		unavailable(t, use(), secret)
	}
	must(t, server.Restart())
	must(t, m.Append(t.Context(), "d", chat.Text(chat.User, "after")))
	var said []string
	for _, e := range entries(t, s, memory.Key{Memory: "m", Session: "d"}, memory.Query{}) {
		said = append(said, e.Message.Text())
	}
	if strings.Join(said, " ") != "before after" {
		t.Errorf("the history says %q", said)
	}
}

// restarts: writers who try again until they succeed say everything once,
// however often the server is killed meanwhile.
func restarts(t *testing.T, server Server, s memory.Store) {
	const writers, each = 8, 40
	halves := make(chan struct{}, writers*each)
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		inParallel(writers, func(w int) {
			m := newMemory(t, s)
			for i := range each {
				sayOnce(t, m, fmt.Sprint("r", w%2), fmt.Sprintf("%d-%d", w/2, i))
				halves <- struct{}{}
			}
		})
	}()
	for range 3 {
		for range writers * each / 4 {
			<-halves
		}
		must(t, server.Kill())
		must(t, server.Restart())
	}
	<-finished
	for i := range 2 {
		checkSerial(t, s, memory.Key{Memory: "m", Session: fmt.Sprint("r", i)}, writers/2, each)
	}
}

// sayOnce tries until the message is said.
func sayOnce(t *testing.T, m *memory.Memory, session, text string) {
	var turn *memory.Turn
	var err error
	for turn == nil {
		if turn, err = m.Begin(t.Context(), session); !retryingStore(t, err) {
			return
		}
	}
	defer func() { _ = turn.Abort(t.Context(), nil) }() // after a Commit it does nothing; else the next turn would wait for ever
	msg := chat.Text(chat.User, text)
	for _, try := range []func() error{func() error { return turn.Add(msg) }, func() error { return turn.Commit(t.Context()) }} {
		for err := try(); err != nil; err = try() {
			if !retryingStore(t, err) {
				return
			}
		}
	}
}

// retryingStore tells whether trying again may help.
func retryingStore(t *testing.T, err error) bool {
	var e *memory.StoreError
	if err == nil || errors.As(err, &e) && e.Problem == memory.Unavailable {
		return true
	}
	t.Error(err)
	return false
}
