package sqlite_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/memory/sqlite"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/spec/chat"
)

// runes counts characters.
type runes struct{}

func (runes) Count(text string) int { return len([]rune(text)) }

func newMemory(t testing.TB, s store.Store) *memory.Memory {
	t.Helper()
	m, err := memory.New(memory.Config{ID: "m", Limits: memory.Limits{"token_limit": 200, "chat_history_token_ratio": 0.5, "token_flush_size": 20}, Counter: runes{}}, s)
	testkit.Must(t, err)
	return m
}

// appendText appends one message to session s.
func appendText(ctx context.Context, m *memory.Memory, text string) error {
	return m.Append(ctx, "s", chat.Text(chat.User, text))
}

// TestOpen_CreatesFileOnFirstWrite checks that reading creates nothing, and the
// permissions of what a write creates.
func TestOpen_CreatesFileOnFirstWrite(t *testing.T) {
	folder := filepath.Join(t.TempDir(), ".qtype")
	path := filepath.Join(folder, "memory.db")
	store := open(t, path)
	defer func() { testkit.Must(t, store.Close()) }()
	m := newMemory(t, store)
	if w, err := m.Window(t.Context(), "s"); err != nil || len(w.Entries) > 0 {
		t.Errorf("%v, %v", w, err)
	}
	if l, err := m.Sessions(t.Context()); err != nil || len(l) > 0 {
		t.Errorf("%v, %v", l, err)
	}
	testkit.Must(t, m.Clear(t.Context(), "s"))
	if _, err := os.Stat(folder); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("reading created the directory: %v", err)
	}
	testkit.Must(t, appendText(t.Context(), m, "hello"))
	for name, want := range map[string]fs.FileMode{folder: 0o700, path: 0o600, path + "-wal": 0o600} {
		info, err := os.Stat(name)
		testkit.Must(t, err)
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%s has mode %o, want %o", name, got, want)
		}
	}
}

// TestOpen_UnusualNames checks that a name is never read as a URI or a parameter.
func TestOpen_UnusualNames(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a b.db", "a?b=c.db", "50%.db", "%41.db", "#1.db", "ä日🙂.db", "a&b;c'd\".db", "file:x.db", ":memory:"} {
		path := filepath.Join(dir, name)
		first := open(t, path)
		testkit.Must(t, appendText(t.Context(), newMemory(t, first), name))
		testkit.Must(t, first.Close())
		if _, err := os.Stat(path); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		second := open(t, path)
		w, err := newMemory(t, second).Window(t.Context(), "s")
		testkit.Must(t, err)
		if len(w.Entries) != 1 || w.Entries[0].Message.Text() != name {
			t.Errorf("%s holds %v", name, w.Entries)
		}
		testkit.Must(t, second.Close())
	}
	t.Chdir(dir)
	relative := open(t, "relative.db")
	testkit.Must(t, appendText(t.Context(), newMemory(t, relative), "x"))
	testkit.Must(t, relative.Close())
	if _, err := os.Stat(filepath.Join(dir, "relative.db")); err != nil {
		t.Error(err)
	}
}

// wantWriteError runs a write and checks its error.
func wantWriteError(t *testing.T, backend *sqlite.Store, kind store.ErrorKind, message string) {
	t.Helper()
	err := appendText(t.Context(), newMemory(t, backend), strings.Repeat("x", 2000))
	var e *store.Error
	if !errors.As(err, &e) || e.Problem != kind || e.Location != backend.Location() ||
		!strings.Contains(err.Error(), message) || strings.Contains(err.Error(), "\n") {
		t.Errorf("got %v, want %s: %s", err, kind, message)
	}
}

func TestApply_Errors(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		testkit.Must(t, os.WriteFile(path, data, 0o600))
		return path
	}
	t.Run("not a database", func(t *testing.T) {
		wantWriteError(t, open(t, write("text.db", bytes.Repeat([]byte("no database "), 1000))), store.Corrupt, "text.db: not a SQLite database")
	})
	t.Run("directory", func(t *testing.T) {
		wantWriteError(t, open(t, dir), store.Unavailable, "the path is a directory, not a file")
	})
	t.Run("parent is a file", func(t *testing.T) {
		wantWriteError(t, open(t, filepath.Join(write("file", nil), "memory.db")), store.Unavailable, "a parent of its path is a file")
	})
	t.Run("other program", func(t *testing.T) {
		path := filepath.Join(dir, "other.db")
		sqlExec(t, path, "CREATE TABLE t (a)")
		wantWriteError(t, open(t, path), store.Corrupt, "not a qtype database: another program created it")
	})
	t.Run("newer", func(t *testing.T) {
		path := filepath.Join(dir, "newer.db")
		sqlExec(t, path, "PRAGMA application_id = 1903458672; PRAGMA user_version = 99")
		wantWriteError(t, open(t, path), store.TooNew, "written by a newer version of qtype (format 99, this version supports up to 1)")
	})
	t.Run("damaged", func(t *testing.T) {
		path := filepath.Join(dir, "damaged.db")
		backend := open(t, path)
		for range 20 {
			testkit.Must(t, appendText(t.Context(), newMemory(t, backend), strings.Repeat("x", 3000)))
		}
		testkit.Must(t, backend.Close())
		data, err := os.ReadFile(path)
		testkit.Must(t, err)
		copy(data[4096:], bytes.Repeat([]byte{0xA5}, len(data)-4096))
		testkit.Must(t, os.WriteFile(path, data, 0o600))
		again := open(t, path)
		wantWriteError(t, again, store.Corrupt, "damaged.db: the database is damaged")
		testkit.Must(t, again.Close())
	})
	t.Run("no name", func(t *testing.T) {
		if _, err := sqlite.Open(""); err == nil || !strings.Contains(err.Error(), "the path is empty") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("closed", func(t *testing.T) {
		backend := open(t, filepath.Join(dir, "closed.db"))
		testkit.Must(t, backend.Close())
		wantWriteError(t, backend, store.Unavailable, "the file is closed")
	})
}

func sqlExec(t *testing.T, path, statements string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	testkit.Must(t, err)
	_, err = db.ExecContext(t.Context(), statements)
	testkit.Must(t, err)
	testkit.Must(t, db.Close())
}

// TestApply_NoPermission needs a user who is not root.
func TestApply_NoPermission(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root has all permissions")
	}
	dir := t.TempDir()
	testkit.Must(t, os.Chmod(dir, 0o500))
	wantWriteError(t, open(t, filepath.Join(dir, "deep", "memory.db")), store.Denied, "no permission")
}

// TestApply_DiskFull checks that acknowledged messages survive, and that writing
// continues once there is space.
func TestApply_DiskFull(t *testing.T) {
	backend := open(t, filepath.Join(t.TempDir(), "memory.db"))
	defer func() { testkit.Must(t, backend.Close()) }()
	testkit.Must(t, backend.LimitPages(t.Context(), "40"))
	m := newMemory(t, backend)
	acknowledged := 0
	var err error
	for err == nil {
		if err = appendText(t.Context(), m, fmt.Sprintf("%05d%s", acknowledged, strings.Repeat("x", 2000))); err == nil {
			acknowledged++
		}
	}
	var e *store.Error
	if !errors.As(err, &e) || e.Problem != store.Full || !strings.Contains(err.Error(), "disk full") {
		t.Fatalf("after %d: %v", acknowledged, err)
	}
	testkit.Must(t, backend.LimitPages(t.Context(), "1000000"))
	testkit.Must(t, appendText(t.Context(), m, "on"))
	n := 0
	for entry, err := range m.History(t.Context(), "s") {
		testkit.Must(t, err)
		if want := fmt.Sprintf("%05d", n); n < acknowledged && !strings.HasPrefix(entry.Message.Text(), want) {
			t.Fatalf("message %d is %.20s", n, entry.Message.Text())
		}
		n++
	}
	if n != acknowledged+1 {
		t.Errorf("%d messages, want %d", n, acknowledged+1)
	}
}

// TestApply_Locked locks the file for longer than a write waits.
func TestApply_Locked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "memory.db")
	backend := open(t, path)
	defer func() { testkit.Must(t, backend.Close()) }()
	testkit.Must(t, backend.DisableBusyTimeout(t.Context()))
	other, err := sql.Open("sqlite", "file:"+path+"?_txlock=immediate")
	testkit.Must(t, err)
	defer func() { testkit.Must(t, other.Close()) }()
	tx, err := other.BeginTx(t.Context(), nil)
	testkit.Must(t, err)
	wantWriteError(t, backend, store.Locked, "memory.db: locked by another process")
	testkit.Must(t, tx.Rollback())
	testkit.Must(t, appendText(t.Context(), newMemory(t, backend), "now"))
}

func TestApply_Canceled(t *testing.T) {
	path := filepath.Join(t.TempDir(), "memory.db")
	store := open(t, path)
	defer func() { testkit.Must(t, store.Close()) }()
	m := newMemory(t, store)
	testkit.Must(t, appendText(t.Context(), m, "0"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := appendText(ctx, m, "1"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	testkit.Must(t, appendText(t.Context(), m, "2"))
	w, err := m.Window(t.Context(), "s")
	testkit.Must(t, err)
	if len(w.Entries) != 2 {
		t.Errorf("%d messages", len(w.Entries))
	}
}

func TestQueriesUseIndexes(t *testing.T) {
	store := open(t, filepath.Join(t.TempDir(), "memory.db"))
	defer func() { testkit.Must(t, store.Close()) }()
	plans, err := store.Plans(t.Context())
	testkit.Must(t, err)
	for _, plan := range plans {
		if strings.Contains(plan, "SCAN") && !strings.Contains(plan, "json_each") {
			t.Errorf("scan of a table: %s", plan)
		}
		if strings.Contains(plan, "entries") && !strings.Contains(plan, "message_id=?") && !strings.Contains(plan, "rowid>?") {
			t.Errorf("scan of a session: %s", plan)
		}
	}
}
