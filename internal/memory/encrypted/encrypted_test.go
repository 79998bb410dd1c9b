package encrypted_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/qtype-dev/qtype/internal/memory/encrypted"
	"github.com/qtype-dev/qtype/internal/memory/encrypted/encryptedtest"
	"github.com/qtype-dev/qtype/internal/memory/inprocess"
	"github.com/qtype-dev/qtype/internal/memory/sqlite"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/memory/storetest"
	"github.com/qtype-dev/qtype/spec/chat"
)

func TestMain(m *testing.M) {
	encryptedtest.Main(nil)
	testkit.AllowWaiting()
	goleak.VerifyTestMain(m)
}

// key returns a key made of one letter.
func key(t testing.TB, letter string) encrypted.Key {
	t.Helper()
	k, err := encrypted.ParseKey(base64.StdEncoding.EncodeToString([]byte(strings.Repeat(letter, 32))))
	testkit.Must(t, err)
	return k
}

func open(t testing.TB, dir string, keys encrypted.Keys) *encrypted.Store {
	t.Helper()
	inner, err := openInner(dir)
	testkit.Must(t, err)
	return encrypted.New(inner, dir, keys)
}

func openInner(dir string) (*sqlite.Store, error) {
	return sqlite.Open(filepath.Join(dir, "memory.db"))
}

func TestStore_Contract(t *testing.T) {
	keys := encrypted.Keys{Key: key(t, "a")}
	t.Run("in process", func(t *testing.T) {
		t.Parallel()
		storetest.Run(t, func(*testing.T) store.Store { return encrypted.New(inprocess.New(), "memory:", keys) })
	})
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		storetest.RunDurable(t, func(t *testing.T, dir string) store.Store { return open(t, dir, keys) })
	})
}

func TestParseKey(t *testing.T) {
	raw := bytes.Repeat([]byte{0xfb, 0xef}, 16)
	want, err := encrypted.ParseKey(hex.EncodeToString(raw))
	testkit.Must(t, err)
	for _, text := range []string{base64.StdEncoding.EncodeToString(raw), base64.URLEncoding.EncodeToString(raw),
		base64.RawStdEncoding.EncodeToString(raw), " " + base64.StdEncoding.EncodeToString(raw) + "\n", strings.ToUpper(hex.EncodeToString(raw))} {
		if got, err := encrypted.ParseKey(text); err != nil || got != want {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, bad := range []string{"", "correct horse battery staple", "hunter2", base64.StdEncoding.EncodeToString(raw[:31]),
		base64.StdEncoding.EncodeToString(append(raw, 1)), hex.EncodeToString(raw[:16])} {
		if _, err := encrypted.ParseKey(bad); err == nil || bad != "" && strings.Contains(err.Error(), bad) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if text := fmt.Sprintf("%v %+v %#v %s %x %d", want, want, want, want, want, want); strings.Contains(text, "fb") && strings.Contains(text, "fbef") {
		t.Errorf("a key prints as %s", text)
	}
}

// fillSession sets every field that a message, an event and a value have. Each
// secret text contains "Geheim".
func fillSession(t *testing.T, s store.Store) {
	t.Helper()
	m, err := memory.New(memory.Config{ID: "m", Counter: letters{}}, s)
	testkit.Must(t, err)
	turn, err := m.Begin(t.Context(), "s")
	testkit.Must(t, err)
	turn.System("be Geheim-kind")
	testkit.Must(t, turn.Add(
		chat.Message{Role: chat.User, Name: "Geheim-bo", Blocks: []chat.Block{{Type: "text", Text: "Geheim-question"}, {Type: "image", Data: []byte("Geheim-pixels"), MimeType: "image/x-Geheim"}}},
		chat.Message{Role: chat.Assistant}.With(chat.ToolCall{ID: "Geheim-call", Name: "Geheim-tool", Arguments: `{"a":"Geheim-argument"}`}),
		chat.Message{Role: chat.Tool, ToolCallID: "Geheim-call", Blocks: []chat.Block{{Type: "text", Text: "Geheim-result"}}}))
	testkit.Must(t, turn.Commit(t.Context()))
	turn, err = m.Begin(t.Context(), "s")
	testkit.Must(t, err)
	testkit.Must(t, turn.Add(chat.Text(chat.User, "Geheim-failed")))
	testkit.Must(t, turn.Abort(t.Context(), errors.New("the tool said Geheim-reason")))
}

type letters struct{}

func (letters) Count(text string) int { return len(text) }

// TestStore_HidesText searches the files of a store for secret texts.
func TestStore_HidesText(t *testing.T) {
	for _, c := range []struct {
		name   string
		keys   *encrypted.Keys
		hidden bool
	}{{"encrypted", &encrypted.Keys{Key: key(t, "a")}, true}, {"plain", nil, false}} {
		dir := t.TempDir()
		inner, err := sqlite.Open(filepath.Join(dir, "memory.db"))
		testkit.Must(t, err)
		var backend store.Store = inner
		if c.keys != nil {
			backend = encrypted.New(inner, dir, *c.keys)
		}
		fillSession(t, backend)
		found := 0
		files, err := filepath.Glob(filepath.Join(dir, "*")) // including the log, which exists while the store is open
		testkit.Must(t, err)
		for _, f := range files {
			raw, err := os.ReadFile(f)
			testkit.Must(t, err)
			found += bytes.Count(raw, []byte("Geheim")) + bytes.Count(raw, []byte("R2VoZWlt")) // and in base64
		}
		if (found == 0) != c.hidden {
			t.Errorf("%s: found %d times in %v", c.name, found, files)
		}
		testkit.Must(t, backend.Close())
	}
}

// TestStore_KeyRotation reads data of an old key as long as that key is given.
func TestStore_KeyRotation(t *testing.T) {
	dir := t.TempDir()
	a, b := key(t, "a"), key(t, "b")
	s := open(t, dir, encrypted.Keys{Key: a})
	fillSession(t, s)
	testkit.Must(t, s.Close())
	s = open(t, dir, encrypted.Keys{Key: b, Old: []encrypted.Key{a}})
	fillSession(t, s)
	if got := strings.Count(history(t, s), "Geheim-question"); got != 2 {
		t.Errorf("%d questions, want 2", got)
	}
	testkit.Must(t, s.Close())
	for _, keys := range []encrypted.Keys{{Key: a}, {Key: b}, {Key: key(t, "c"), Old: []encrypted.Key{b}}} {
		s := open(t, dir, keys)
		err := firstError(t, s)
		var e *store.Error
		if !errors.As(err, &e) || e.Problem != store.WrongKey || !strings.Contains(err.Error(), dir) || strings.Contains(err.Error(), "\n") {
			t.Errorf("keys %v: %v", keys, err)
		}
		testkit.Must(t, s.Close())
	}
}

// history returns all messages as text.
func history(t *testing.T, s store.Store) string {
	t.Helper()
	var text strings.Builder
	for e, err := range s.Entries(t.Context(), store.Key{Memory: "m", Session: "s"}, store.Query{}) {
		testkit.Must(t, err)
		text.WriteString(string(e.Message.Role) + ": " + e.Message.Text() + "\n")
	}
	return text.String()
}

func firstError(t *testing.T, s store.Store) error {
	key := store.Key{Memory: "m", Session: "s"}
	if _, err := s.Head(t.Context(), key); err != nil {
		return err
	}
	for _, err := range s.Entries(t.Context(), key, store.Query{}) {
		if err != nil {
			return err
		}
	}
	for _, err := range s.Events(t.Context(), key) {
		if err != nil {
			return err
		}
	}
	return nil
}

// TestStore_UnencryptedData reads data that was stored before the encryption.
func TestStore_UnencryptedData(t *testing.T) {
	dir := t.TempDir()
	inner, err := sqlite.Open(filepath.Join(dir, "memory.db"))
	testkit.Must(t, err)
	fillSession(t, inner)
	testkit.Must(t, inner.Close())
	s := open(t, dir, encrypted.Keys{Key: key(t, "a")})
	var e *store.Error
	if err := firstError(t, s); !errors.As(err, &e) || e.Problem != store.Corrupt || !strings.Contains(err.Error(), "allow_unencrypted") {
		t.Errorf("got %v", err)
	}
	testkit.Must(t, s.Close())
	s = open(t, dir, encrypted.Keys{Key: key(t, "a"), AllowUnencrypted: true})
	fillSession(t, s)
	testkit.Must(t, firstError(t, s))
	if got := strings.Count(history(t, s), "Geheim-question"); got != 2 {
		t.Errorf("%d questions, want 2", got)
	}
	testkit.Must(t, s.Close())
}

// BenchmarkRead reads a window of 20 messages of 400 characters.
func BenchmarkRead(b *testing.B) {
	k, err := encrypted.ParseKey(strings.Repeat("5a", 32))
	testkit.Must(b, err)
	for name, backend := range map[string]store.Store{"plain": inprocess.New(), "encrypted": encrypted.New(inprocess.New(), "memory:", encrypted.Keys{Key: k})} {
		m, err := memory.New(memory.Config{ID: "m", Counter: letters{}}, backend)
		testkit.Must(b, err)
		for range 20 {
			testkit.Must(b, m.Append(b.Context(), "s", chat.Text(chat.User, strings.Repeat("many words ", 36))))
		}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				for _, err := range backend.Entries(b.Context(), store.Key{Memory: "m", Session: "s"}, store.Query{}) {
					testkit.Must(b, err)
				}
			}
		})
	}
}

// sharedStore is a store with the clock of a server.
type sharedStore struct{ *inprocess.Store }

func (sharedStore) Time(context.Context) (time.Time, error) { return time.Time{}, nil }

// TestIsServer checks that a store which wraps another one is one of several machines only if that is.
func TestIsServer(t *testing.T) {
	keys := encrypted.Keys{Key: key(t, "a")}
	observed := func(context.Context, string) func(error) { return nil }
	for inner, want := range map[store.Store]bool{inprocess.New(): false, sharedStore{inprocess.New()}: true} {
		wrapped := encrypted.New(inner, "memory:", keys)
		for _, s := range []store.Store{inner, wrapped, store.Observe(inner, observed), store.Observe(wrapped, observed)} {
			if store.IsServer(s) != want {
				t.Errorf("IsServer(%T over %T) is %t", s, inner, !want)
			}
		}
	}
	if store.IsServer(nil) {
		t.Error("nil is a server")
	}
}
