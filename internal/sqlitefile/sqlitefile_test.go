package sqlitefile_test

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/qtype-dev/qtype/internal/sqlitefile"
	"github.com/qtype-dev/qtype/internal/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	first  = "CREATE TABLE t (a UNIQUE)"
	second = "INSERT INTO t VALUES (1)"
)

func open(path string, migrations ...string) *sqlitefile.File[string] {
	return sqlitefile.New(path, sqlitefile.Config[string]{
		ApplicationID: 0x71740001,
		Migrations:    migrations,
		Pragmas:       []string{"journal_mode(WAL)"},
		Prepare:       func(context.Context, *sql.DB, *sql.DB) (string, error) { return "prepared", nil },
	})
}

// rows opens a file and counts the rows of its table.
func rows(t *testing.T, f *sqlitefile.File[string]) (n int) {
	t.Helper()
	c, err := f.Open(t.Context(), true)
	testkit.Must(t, err)
	if c.Statements != "prepared" {
		t.Errorf("statements %q", c.Statements)
	}
	testkit.Must(t, c.Read.QueryRowContext(t.Context(), "SELECT count(*) FROM t").Scan(&n))
	testkit.Must(t, f.Close(nil))
	return n
}

// TestFile_Replaced: a file that was deleted, or replaced, is not used any more, and operations that
// use it end.
func TestFile_Replaced(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file.db")
	f := sqlitefile.New(path, sqlitefile.Config[string]{
		ApplicationID: 0x71740001, Replaceable: true, Migrations: []string{first}, Pragmas: []string{"journal_mode(WAL)"},
		Prepare: func(context.Context, *sql.DB, *sql.DB) (string, error) { return "prepared", nil },
	})
	count := func(c *sqlitefile.Conn[string]) (n int) {
		testkit.Must(t, c.Read.QueryRowContext(t.Context(), "SELECT count(*) FROM t").Scan(&n))
		return n
	}
	former, err := f.Open(t.Context(), true)
	testkit.Must(t, err)
	if same, err := f.Open(t.Context(), false); same != former || err != nil || count(former) != 0 {
		t.Errorf("opened again: %v", err)
	}
	remove := func() {
		for _, suffix := range []string{"", "-wal", "-shm"} {
			if err := os.Remove(path + suffix); err != nil {
				t.Skip("SKIPPED: an open file cannot be removed")
			}
		}
	}
	remove()
	if c, err := f.Open(t.Context(), false); c != nil || err != nil {
		t.Errorf("deleted: got %v, %v", c, err)
	}
	other := open(path, first)
	c, err := other.Open(t.Context(), true)
	testkit.Must(t, err)
	_, err = c.Write.ExecContext(t.Context(), second)
	testkit.Must(t, errors.Join(err, other.Close(nil)))
	c, err = f.Open(t.Context(), false)
	testkit.Must(t, err)
	if n := count(c); n != 1 {
		t.Errorf("replaced: %d rows", n)
	}
	if n := count(former); n != 0 {
		t.Errorf("the file before: %d rows", n)
	}
	remove()
	c, err = f.Open(t.Context(), true)
	testkit.Must(t, err)
	if n := count(c); n != 0 {
		t.Errorf("replaced again: %d rows", n)
	}
	testkit.Must(t, f.Close(nil))
}

func TestFile_CreatesAndMigrates(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dir", "file.db")
	f := open(path, first)
	if c, err := f.Open(t.Context(), false); c != nil || err != nil {
		t.Errorf("got %v, %v", c, err)
	}
	if _, err := os.Stat(filepath.Dir(path)); !os.IsNotExist(err) {
		t.Errorf("reading created the directory: %v", err)
	}
	if n := rows(t, f); n != 0 {
		t.Errorf("%d rows", n)
	}
	for range 2 { // a migration is applied once
		if n := rows(t, open(path, first, second)); n != 1 {
			t.Errorf("%d rows", n)
		}
	}
	if _, err := open(path, first).Open(t.Context(), true); !isKind(err, sqlitefile.TooNew, "written by a newer version of qtype (format 2, this version supports up to 1)") {
		t.Errorf("got %v", err)
	}
	if _, err := f.Open(t.Context(), true); !errors.Is(err, sqlitefile.ErrClosed) {
		t.Errorf("got %v", err)
	}
}

func isKind(err error, want sqlitefile.Kind, message string) bool {
	if err == nil {
		return false
	}
	kind, text := sqlitefile.Diagnose(err)
	return kind == want && strings.Contains(text, message)
}

func TestFile_Close(t *testing.T) {
	f := open(filepath.Join(t.TempDir(), "file.db"), first)
	testkit.Must(t, f.Close(func(*sqlitefile.Conn[string]) error { t.Error("called for a file that is not open"); return nil }))
	f = open(filepath.Join(t.TempDir(), "file.db"), first)
	_, err := f.Open(t.Context(), true)
	testkit.Must(t, err)
	failed := errors.New("failed")
	if err := f.Close(func(*sqlitefile.Conn[string]) error { return failed }); !errors.Is(err, failed) {
		t.Errorf("got %v", err)
	}
}

func TestDiagnose(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "text.db")
	testkit.Must(t, os.WriteFile(text, []byte(strings.Repeat("not a database ", 1000)), 0o600))
	foreign := filepath.Join(dir, "foreign.db")
	db, err := sql.Open("sqlite", foreign)
	testkit.Must(t, err)
	_, err = db.ExecContext(t.Context(), "CREATE TABLE x (y)")
	testkit.Must(t, errors.Join(err, db.Close()))
	for path, want := range map[string]struct {
		kind    sqlitefile.Kind
		message string
	}{
		dir:                         {sqlitefile.Unavailable, "the path is a directory, not a file"},
		text:                        {sqlitefile.Damaged, "not a SQLite database, or damaged"},
		foreign:                     {sqlitefile.Foreign, "another program created it"},
		filepath.Join(text, "a.db"): {sqlitefile.Unavailable, "a parent of its path is a file"},
	} {
		if _, err := open(path, first).Open(t.Context(), true); !isKind(err, want.kind, want.message) {
			t.Errorf("%s: %v", path, err)
		}
	}
	f := open(filepath.Join(dir, "file.db"), first)
	c, err := f.Open(t.Context(), true)
	testkit.Must(t, err)
	insert := func(tx *sql.Tx) error { _, err := tx.ExecContext(t.Context(), second); return err }
	testkit.Must(t, c.Change(t.Context(), insert))
	if err := c.Change(t.Context(), insert); !sqlitefile.IsDuplicate(err, "t.a") || sqlitefile.IsBusy(err) {
		t.Errorf("got %v", err)
	}
	testkit.Must(t, f.Close(nil))
}

func TestFile_PageSize(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file.db")
	for _, size := range []int{8192, 16384} { // the file keeps its first one
		f := sqlitefile.New(path, sqlitefile.Config[string]{
			ApplicationID: 0x71740001, Migrations: []string{first}, PageSize: size, Pragmas: []string{"journal_mode(WAL)"},
			Prepare: func(context.Context, *sql.DB, *sql.DB) (string, error) { return "prepared", nil },
		})
		c, err := f.Open(t.Context(), true)
		testkit.Must(t, err)
		var got int
		testkit.Must(t, c.Read.QueryRowContext(t.Context(), "PRAGMA page_size").Scan(&got))
		if got != 8192 {
			t.Errorf("page size %d", got)
		}
		testkit.Must(t, f.Close(nil))
	}
}
