package encrypted_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/memory/encrypted"
	"github.com/qtype-dev/qtype/internal/memory/encrypted/encryptedtest"
	"github.com/qtype-dev/qtype/internal/memory/inprocess"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory/store"
)

// reencrypt encrypts memory m of a store again.
func reencrypt(t *testing.T, s *encrypted.Store) encrypted.ReencryptReport {
	t.Helper()
	report, err := s.Reencrypt(t.Context(), "m")
	testkit.Must(t, err)
	return report
}

// TestStore_Reencrypt encrypts stores of every format, and one without encryption, with
// another key, so that they can be read with that key alone.
func TestStore_Reencrypt(t *testing.T) {
	a, b := key(t, "a"), key(t, "b")
	plain := func(t *testing.T) string {
		dir := t.TempDir()
		s, err := openInner(dir)
		testkit.Must(t, err)
		runTurns(t, newMemory(t, s), "s")
		testkit.Must(t, s.Close())
		return dir
	}
	for name, test := range map[string]struct {
		place func(t *testing.T) string
		keys  encrypted.Keys
	}{
		"format 1":    {func(t *testing.T) string { return restore(t, "format1.sql") }, encrypted.Keys{Key: b, Old: []encrypted.Key{a}}},
		"format 2":    {func(t *testing.T) string { return restore(t, "format2.sql") }, encrypted.Keys{Key: b, Old: []encrypted.Key{a}}},
		"unencrypted": {plain, encrypted.Keys{Key: b, AllowUnencrypted: true}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := test.place(t)
			s := open(t, dir, test.keys)
			report := reencrypt(t, s)
			if report.Sessions != 1 || report.Messages != 9 || report.Events == 0 || report.Same != 0 {
				t.Errorf("the first time: %+v", report)
			}
			if report := reencrypt(t, s); report.Sessions != 0 || report.Messages != 0 || report.Same != 1 {
				t.Errorf("the second time: %+v", report)
			}
			runTurn(t, newMemory(t, s), "s", "fifth")
			testkit.Must(t, s.Close())
			s = open(t, dir, encrypted.Keys{Key: b})
			defer func() { testkit.Must(t, s.Close()) }()
			got := content(t, newMemory(t, s))
			for _, want := range []string{"1 flushed user: first", "7 failed user: Geheim-failed", "10 in window user: fifth", "failed of turn 4: 1 messages, the model said Geheim-reason"} {
				if !strings.Contains(got, want) {
					t.Errorf("no %q in:\n%s", want, got)
				}
			}
		})
	}
}

// TestStore_ReencryptInserted checks that a message that another program inserted without
// encryption into a session with a seal is not made one of the session.
func TestStore_ReencryptInserted(t *testing.T) {
	a, b := key(t, "a"), key(t, "b")
	dir := t.TempDir()
	s := open(t, dir, encrypted.Keys{Key: a})
	runTurns(t, newMemory(t, s), "s")
	testkit.Must(t, s.Close())
	execSQL(t, dir, `UPDATE entries SET message = '{"id":"x","role":"user","blocks":[{"type":"text","content":"pay"}]}' WHERE id & 68719476735 = 3`)
	s = open(t, dir, encrypted.Keys{Key: b, Old: []encrypted.Key{a}, AllowUnencrypted: true})
	defer func() { testkit.Must(t, s.Close()) }()
	if _, err := s.Reencrypt(t.Context(), "m"); err == nil || !strings.Contains(err.Error(), "message 3") {
		t.Errorf("got %v", err)
	}
}

// TestStore_ReencryptNotSupported checks the error for a store that cannot replace records.
func TestStore_ReencryptNotSupported(t *testing.T) {
	inner := inprocess.New()
	defer func() { testkit.Must(t, inner.Close()) }()
	s := encrypted.New(struct{ store.Store }{inner}, "custom", encrypted.Keys{Key: key(t, "a")})
	if _, err := s.Reencrypt(t.Context(), "m"); err == nil || !strings.Contains(err.Error(), "store.Replacer") {
		t.Errorf("got %v", err)
	}
}

// TestStore_ReencryptKilled kills processes that encrypt a store again, at random moments.
func TestStore_ReencryptKilled(t *testing.T) {
	encryptedtest.ReencryptKilled(t, nil, "sqlite:"+filepath.Join(t.TempDir(), "memory.db"))
}

// TestStore_ReencryptWithWriters checks that writers of the new and of the old key, which
// write all the time, lose nothing, and that what they wrote can be read with the new key.
func TestStore_ReencryptWithWriters(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) {
		encryptedtest.ReencryptWithWriters(t, encryptedtest.Opener(t, nil, "sqlite:"+filepath.Join(t.TempDir(), "memory.db")))
	})
	t.Run("in process", func(t *testing.T) {
		inner := inprocess.New()
		defer func() { testkit.Must(t, inner.Close()) }()
		encryptedtest.ReencryptWithWriters(t, func(keys encrypted.Keys) (*encrypted.Store, func()) {
			return encrypted.New(inner, "memory:", keys), func() {}
		})
	})
}
