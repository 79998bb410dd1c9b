package storecopy_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/qtype-dev/qtype/internal/memory/encrypted"
	"github.com/qtype-dev/qtype/internal/memory/inprocess"
	"github.com/qtype-dev/qtype/internal/memory/ranking"
	"github.com/qtype-dev/qtype/internal/memory/segments"
	"github.com/qtype-dev/qtype/internal/memory/sqlite"
	"github.com/qtype-dev/qtype/internal/memory/storecopy"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/memory/transcript"
	"github.com/qtype-dev/qtype/spec/chat"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// runes counts characters.
type runes struct{}

func (runes) Count(text string) int { return len([]rune(text)) }

func newMemory(t *testing.T, store store.Store) *memory.Memory {
	t.Helper()
	m, err := memory.New(memory.Config{ID: "m", Policy: "message_window", Limits: memory.Limits{"max_messages": 3}, Counter: runes{}}, store)
	testkit.Must(t, err)
	return m
}

func say(t *testing.T, m *memory.Memory, session string, n int) {
	t.Helper()
	testkit.Must(t, m.Turn(t.Context(), session, func(turn *memory.Turn) error {
		return errors.Join(turn.Add(chat.Text(chat.User, fmt.Sprint("q", n)), chat.Text(chat.Assistant, fmt.Sprint("a", n))), turn.Set("n", fmt.Appendf(nil, "%d", n)))
	}))
}

func export(t *testing.T, m *memory.Memory, session string) string {
	t.Helper()
	var b bytes.Buffer
	testkit.Must(t, transcript.Export(t.Context(), m, session, &b))
	return b.String()
}

func newKey(t *testing.T, b byte) encrypted.Key {
	t.Helper()
	k, err := encrypted.ParseKey(base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{b}, 32)))
	testkit.Must(t, err)
	return k
}

// TestCopy copies from a file to an encrypted one and from there with another key, and
// again after turns on both sides.
func TestCopy(t *testing.T) {
	open := func(name string, keys ...byte) store.Store {
		s, err := sqlite.Open(filepath.Join(testkit.FolderInRAM(t), name))
		testkit.Must(t, err)
		t.Cleanup(func() { testkit.Must(t, s.Close()) })
		if len(keys) == 0 {
			return s
		}
		return encrypted.New(s, name, encrypted.Keys{Key: newKey(t, keys[0])})
	}
	stores := []store.Store{open("a.db"), open("b.db", 1), open("c.db", 2), inprocess.New()}
	source := newMemory(t, stores[0])
	for n := range 4 {
		say(t, source, "s", n)
		say(t, source, fmt.Sprint("s", n), n)
	}
	testkit.Must(t, source.Edit(t.Context(), "s", 7, chat.Text(chat.User, "edited")))
	testkit.Must(t, source.Delete(t.Context(), "s", 8))
	testkit.Must(t, source.Rewind(t.Context(), "s1", 1))
	for i, to := range stores[1:] {
		report, err := storecopy.Copy(t.Context(), stores[i], to, "m")
		testkit.Must(t, err)
		if report.Copied != 5 || report.Messages != 17 || report.Same+report.Newer+len(report.Conflicts) != 0 {
			t.Errorf("got %+v", report)
		}
		target := newMemory(t, to)
		for _, session := range []string{"s", "s0", "s1"} {
			if want, got := export(t, source, session), export(t, target, session); want != got {
				t.Errorf("session %s is\n%s, want\n%s", session, got, want)
			}
		}
	}
	target := newMemory(t, stores[3])
	say(t, source, "s", 9)
	say(t, target, "s2", 9)
	testkit.Must(t, target.Clear(t.Context(), "s3"))
	say(t, target, "s3", 1)
	report, err := storecopy.Copy(t.Context(), stores[0], stores[3], "m")
	testkit.Must(t, err)
	if report.Copied != 1 || report.Same != 2 || report.Newer != 1 || len(report.Conflicts) != 1 || report.Conflicts[0] != "s3" {
		t.Errorf("got %+v", report)
	}
	if want, got := export(t, source, "s"), export(t, target, "s"); want != got {
		t.Errorf("session s is\n%s, want\n%s", got, want)
	}
}

// interrupted is a store whose changes fail after some.
type interrupted struct {
	store.Store
	left int
}

func (s *interrupted) Apply(ctx context.Context, key store.Key, c store.Change) error {
	if s.left--; s.left < 0 {
		return errors.New("the server is gone")
	}
	return s.Store.Apply(ctx, key, c)
}

// TestCopy_Interrupted checks that a session of several changes is copied again from its
// beginning.
func TestCopy_Interrupted(t *testing.T) {
	from, to := inprocess.New(), inprocess.New()
	source := newMemory(t, from)
	var msgs []chat.Message
	for n := range 12_000 {
		msgs = append(msgs, chat.Text(chat.User, fmt.Sprint(n)))
	}
	testkit.Must(t, source.Append(t.Context(), "s", msgs...))
	for left := range 3 {
		if _, err := storecopy.Copy(t.Context(), from, &interrupted{to, left}, "m"); err == nil {
			t.Fatal("the error of the store is lost")
		}
	}
	report, err := storecopy.Copy(t.Context(), from, to, "m")
	testkit.Must(t, err)
	if report.Copied != 1 || report.Messages != 12_000 {
		t.Errorf("got %+v", report)
	}
	if want, got := export(t, source, "s"), export(t, newMemory(t, to), "s"); want != got {
		t.Error("the copy differs")
	}
}

// TestCopy_DuringTurns checks that a session that turns change is copied in one of its states.
func TestCopy_DuringTurns(t *testing.T) {
	from, to := inprocess.New(), inprocess.New()
	source, target := newMemory(t, from), newMemory(t, to)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for n := range 200 {
			say(t, source, "s", n)
		}
	}()
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		if _, err := storecopy.Copy(t.Context(), from, to, "m"); err != nil && !errors.Is(err, store.ErrConflict) {
			t.Error(err)
		}
	}
	if want, got := export(t, source, "s"), export(t, target, "s"); want != got {
		t.Errorf("got\n%s, want\n%s", got, want)
	}
}

// TestCopy_StoredWords copies the stored index of words, which the copy uses.
func TestCopy_StoredWords(t *testing.T) {
	from, to := inprocess.New(), inprocess.New()
	m := newMemory(t, from)
	var all []chat.Message
	for i := range segments.MinMessages {
		all = append(all, chat.Text(chat.User, fmt.Sprint("note ", i)))
	}
	testkit.Must(t, m.Append(t.Context(), "s", all...))
	testkit.Must(t, m.StoreWords(t.Context(), "s"))
	_, err := storecopy.Copy(t.Context(), from, to, "m")
	testkit.Must(t, err)
	copied := newMemory(t, to)
	head, err := copied.Head(t.Context(), "s")
	testkit.Must(t, err)
	words, err := copied.Words(t.Context(), store.SessionHead{Session: "s", Head: head})
	testkit.Must(t, err)
	var c ranking.Corpus
	testkit.Must(t, words.AddTo(t.Context(), &c, 0, 1, words.To(), true))
	if c.Len() != len(all) {
		t.Errorf("the copy has the words of %d messages", c.Len())
	}
}
