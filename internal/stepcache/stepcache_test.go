package stepcache_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/qtype-dev/qtype/internal/stepcache"
	"github.com/qtype-dev/qtype/internal/testkit"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv("QTYPE_TEST_FILL"); dir != "" {
		fill(dir)
	}
	goleak.VerifyTestMain(m)
}

// fill runs in another process: it puts entries until it is killed and prints the
// number of each that was stored.
func fill(dir string) {
	s := stepcache.Open(dir, nil)
	for i := 0; ; i++ {
		stored, err := s.Put(context.Background(), step, keyOf(strconv.Itoa(i)), entryOf(i), stepcache.Policy{})
		if err != nil || !stored {
			fmt.Println("failed", err)
			os.Exit(1)
		}
		fmt.Println(i)
	}
}

var step = stepcache.Scope{Step: "ask", Version: "1.0"}

func keyOf(text string) stepcache.Key { return sha256.Sum256([]byte(text)) }

func entryOf(i int) []byte { return []byte(fmt.Sprintf("[%d,%q]", i, strings.Repeat("x", i%100))) }

func put(t testing.TB, s *stepcache.Store, scope stepcache.Scope, text string, entry []byte, p stepcache.Policy) {
	t.Helper()
	stored, err := s.Put(t.Context(), scope, keyOf(text), entry, p)
	testkit.Must(t, err)
	if !stored {
		t.Fatalf("%s was not stored", text)
	}
}

func get(t testing.TB, s *stepcache.Store, scope stepcache.Scope, text string, p stepcache.Policy) string {
	t.Helper()
	entry, found, err := s.Get(t.Context(), scope, keyOf(text), p)
	testkit.Must(t, err)
	if !found {
		return "none"
	}
	return string(entry)
}

func assertEqual(t testing.TB, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %s, want %s", what, got, want)
	}
}

func TestStore_Scopes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b c?#%")
	s := stepcache.Open(dir, nil)
	assertEqual(t, "before anything", get(t, s, step, "k", stepcache.Policy{}), "none")
	if _, err := os.Stat(filepath.Dir(dir)); !os.IsNotExist(err) {
		t.Errorf("reading created the directory: %v", err)
	}
	scopes := []stepcache.Scope{step, {Namespace: "n", Step: "ask", Version: "1.0"}, {Step: "other", Version: "1.0"}, {Step: "ask", Version: "2"}}
	for i, scope := range scopes {
		assertEqual(t, "before", get(t, s, scope, "k", stepcache.Policy{}), "none")
		put(t, s, scope, "k", entryOf(i), stepcache.Policy{Compress: i%2 == 1})
	}
	testkit.Must(t, s.Close())
	s = stepcache.Open(dir, nil)
	for i, scope := range scopes {
		assertEqual(t, fmt.Sprint(scope), get(t, s, scope, "k", stepcache.Policy{}), string(entryOf(i)))
	}
	put(t, s, step, "k", []byte("another"), stepcache.Policy{})
	assertEqual(t, "replaced", get(t, s, step, "k", stepcache.Policy{}), "another")
	testkit.Must(t, s.Drop(t.Context(), step, keyOf("k")))
	assertEqual(t, "dropped", get(t, s, step, "k", stepcache.Policy{}), "none")
	testkit.Must(t, s.Close())
	for path, mode := range map[string]fs.FileMode{dir: 0o700, s.Path(): 0o600} {
		info, err := os.Stat(path)
		testkit.Must(t, err)
		if info.Mode().Perm() != mode {
			t.Errorf("%s has mode %o", path, info.Mode().Perm())
		}
	}
}

func TestGet_TTL(t *testing.T) {
	s := stepcache.Open(t.TempDir(), nil)
	now := time.Unix(1_800_000_000, 0)
	s.Clock(func() time.Time { return now })
	put(t, s, step, "minute", []byte("1"), stepcache.Policy{TTL: time.Minute})
	put(t, s, step, "ever", []byte("2"), stepcache.Policy{})
	now = now.Add(59 * time.Second)
	assertEqual(t, "before expiry", get(t, s, step, "minute", stepcache.Policy{TTL: time.Minute}), "1")
	assertEqual(t, "a shorter TTL", get(t, s, step, "ever", stepcache.Policy{TTL: 30 * time.Second}), "none")
	now = now.Add(time.Second)
	assertEqual(t, "after expiry", get(t, s, step, "minute", stepcache.Policy{}), "none")
	assertEqual(t, "without TTL", get(t, s, step, "ever", stepcache.Policy{}), "2")
	stats, err := s.Stats(t.Context())
	testkit.Must(t, err)
	if len(stats) != 1 || stats[0].Entries != 2 || stats[0].Expired != 1 || stats[0].Bytes != 2 {
		t.Errorf("%+v", stats)
	}
	testkit.Must(t, s.Close())
}

// TestGet_ClockOfTheFuture: an entry that was stored while the clock was wrong expires, too.
func TestGet_ClockOfTheFuture(t *testing.T) {
	s := stepcache.Open(t.TempDir(), nil)
	now := time.Unix(1_800_000_000, 0)
	s.Clock(func() time.Time { return now })
	put(t, s, step, "k", []byte("1"), stepcache.Policy{TTL: time.Minute})
	now = now.Add(-30 * time.Second)
	assertEqual(t, "half a minute before", get(t, s, step, "k", stepcache.Policy{TTL: time.Minute}), "1")
	now = now.AddDate(-1, 0, 0)
	assertEqual(t, "a year before", get(t, s, step, "k", stepcache.Policy{TTL: time.Minute}), "none")
	testkit.Must(t, s.Close())
}

func TestPut_EvictsLeastRecentlyUsed(t *testing.T) {
	for _, reopened := range []bool{false, true} {
		dir := t.TempDir()
		s := stepcache.Open(dir, nil)
		now := time.Unix(1_800_000_000, 0)
		tick := func() time.Time { now = now.Add(time.Second); return now }
		s.Clock(tick)
		p := stepcache.Policy{MaxBytes: 300}
		entry := bytes.Repeat([]byte("x"), 100)
		for _, k := range []string{"a", "b", "c"} {
			put(t, s, step, k, entry, p)
		}
		other := stepcache.Scope{Step: "other"}
		put(t, s, other, "a", bytes.Repeat(entry, 5), stepcache.Policy{MaxBytes: 500})
		get(t, s, step, "a", p) // so b is the oldest
		if reopened {           // uses are persistent
			testkit.Must(t, s.Close())
			s = stepcache.Open(dir, nil)
			s.Clock(tick)
		}
		put(t, s, step, "d", entry, p)
		for k, want := range map[string]bool{"a": true, "b": false, "c": true, "d": true} {
			if got := get(t, s, step, k, p) != "none"; got != want {
				t.Errorf("reopened %v: %s exists: %v", reopened, k, got)
			}
		}
		if stored, err := s.Put(t.Context(), step, keyOf("e"), bytes.Repeat(entry, 4), p); stored || err != nil {
			t.Errorf("an entry larger than the limit: %v, %v", stored, err)
		}
		put(t, s, step, "f", bytes.Repeat(entry, 3), p) // evicts all others
		stats, err := s.Stats(t.Context())
		testkit.Must(t, err)
		if len(stats) != 2 || stats[0].Entries != 1 || stats[0].Bytes != 300 || stats[1].Bytes != 500 {
			t.Errorf("%+v", stats)
		}
		testkit.Must(t, s.Close())
	}
}

func TestPut_MaxBytes(t *testing.T) {
	s := stepcache.Open(t.TempDir(), nil)
	for i := range 300 {
		p := stepcache.Policy{MaxBytes: 2000}
		_, err := s.Put(t.Context(), step, keyOf(strconv.Itoa(i%70)), bytes.Repeat([]byte{'y'}, (i*37)%900), p)
		testkit.Must(t, err)
		stats, err := s.Stats(t.Context())
		testkit.Must(t, err)
		if stats[0].Bytes > p.MaxBytes {
			t.Fatalf("after %d entries %d bytes are stored", i+1, stats[0].Bytes)
		}
		if total := s.Total(t, step); total != stats[0].Bytes {
			t.Fatalf("total %d bytes, entries %d bytes", total, stats[0].Bytes)
		}
	}
	testkit.Must(t, s.Close())
}

func TestPut_Compress(t *testing.T) {
	s := stepcache.Open(t.TempDir(), nil)
	text := []byte(strings.Repeat(`{"answer":"The parcel is on its way."}`, 200))
	put(t, s, step, "plain", text, stepcache.Policy{})
	put(t, s, stepcache.Scope{Step: "small"}, "packed", text, stepcache.Policy{Compress: true})
	stats, err := s.Stats(t.Context())
	testkit.Must(t, err)
	if len(stats) != 2 || stats[0].Bytes != int64(len(text)) || stats[1].Bytes*10 > stats[0].Bytes {
		t.Errorf("%+v", stats)
	}
	assertEqual(t, "unpacked", get(t, s, stepcache.Scope{Step: "small"}, "packed", stepcache.Policy{}), string(text))
	testkit.Must(t, s.Close())
}

func TestStore_Clear(t *testing.T) {
	s := stepcache.Open(t.TempDir(), nil)
	if n, err := s.Clear(t.Context(), nil); n != 0 || err != nil {
		t.Errorf("no file: %d, %v", n, err)
	}
	for i := range 100 {
		put(t, s, stepcache.Scope{Step: "step" + strconv.Itoa(i%2)}, strconv.Itoa(i), bytes.Repeat([]byte("x"), 10_000), stepcache.Policy{})
	}
	n, err := s.Clear(t.Context(), func(sc stepcache.Scope) bool { return sc.Step == "step1" })
	testkit.Must(t, err)
	if n != 50 {
		t.Errorf("%d removed", n)
	}
	assertEqual(t, "the other step", get(t, s, stepcache.Scope{Step: "step0"}, "0", stepcache.Policy{}), strings.Repeat("x", 10_000))
	n, err = s.Clear(t.Context(), nil)
	testkit.Must(t, err)
	if n != 50 {
		t.Errorf("%d removed", n)
	}
	testkit.Must(t, s.Close())
	info, err := os.Stat(s.Path())
	testkit.Must(t, err)
	if info.Size() > 100_000 {
		t.Errorf("the empty cache takes %d bytes", info.Size())
	}
}

func TestStore_InvalidFile(t *testing.T) {
	other := func(t *testing.T, path, statements string) {
		db, err := sql.Open("sqlite", path)
		testkit.Must(t, err)
		_, err = db.ExecContext(t.Context(), statements)
		testkit.Must(t, err)
		testkit.Must(t, db.Close())
	}
	for want, damage := range map[string]func(t *testing.T, path string){
		"not a SQLite database, or damaged; remove the file to start over": func(t *testing.T, path string) {
			testkit.Must(t, os.WriteFile(path, bytes.Repeat([]byte("not a database "), 1000), 0o600))
		},
		"the path is a directory, not a file":              func(t *testing.T, path string) { testkit.Must(t, os.Mkdir(path, 0o700)) },
		"not a qtype database: another program created it": func(t *testing.T, path string) { other(t, path, "CREATE TABLE x (y)") },
		"written by a newer version of qtype (format 9, this version supports up to 2)": func(t *testing.T, path string) {
			other(t, path, "PRAGMA application_id = 0x71747963; PRAGMA user_version = 9")
		},
	} {
		t.Run(want, func(t *testing.T) {
			s := stepcache.Open(t.TempDir(), nil)
			damage(t, s.Path())
			_, _, err := s.Get(t.Context(), step, keyOf("k"), stepcache.Policy{})
			_, err2 := s.Put(t.Context(), step, keyOf("k"), nil, stepcache.Policy{})
			for _, err := range []error{err, err2} {
				if err == nil || err.Error() != "cache "+s.Path()+": "+want {
					t.Errorf("got %v", err)
				}
			}
			testkit.Must(t, s.Close())
		})
	}
	file := filepath.Join(t.TempDir(), "file")
	testkit.Must(t, os.WriteFile(file, nil, 0o600))
	if _, err := stepcache.Open(file, nil).Put(t.Context(), step, keyOf("k"), nil, stepcache.Policy{}); err == nil || !strings.HasSuffix(err.Error(), "a parent of its path is a file, not a directory") {
		t.Errorf("got %v", err)
	}
}

func TestGet_DamagedEntry(t *testing.T) {
	s := stepcache.Open(t.TempDir(), nil)
	put(t, s, step, "k", bytes.Repeat([]byte("abc"), 100), stepcache.Policy{Compress: true})
	testkit.Must(t, s.Close())
	db, err := sql.Open("sqlite", s.Path())
	testkit.Must(t, err)
	_, err = db.ExecContext(t.Context(), "UPDATE entries SET value = zeroblob(30)")
	testkit.Must(t, err)
	testkit.Must(t, db.Close())
	s = stepcache.Open(filepath.Dir(s.Path()), nil)
	if _, found, err := s.Get(t.Context(), step, keyOf("k"), stepcache.Policy{}); err == nil || found {
		t.Errorf("got %v, %v", found, err)
	}
	testkit.Must(t, s.Close())
}

// TestStore_KilledProcess fills a cache by two processes and kills one of them. No
// stored entry is lost.
func TestStore_KilledProcess(t *testing.T) {
	dir := t.TempDir()
	cmd := testkit.Command(t, os.Args[0])
	cmd.Env = append(os.Environ(), "QTYPE_TEST_FILL="+dir)
	out, err := cmd.StdoutPipe()
	testkit.Must(t, err)
	testkit.Must(t, cmd.Start())
	s := stepcache.Open(dir, nil)
	own := stepcache.Scope{Step: "mine"}
	count, lines := 0, bufio.NewScanner(out)
	for i := 0; count < 500 && lines.Scan(); i++ {
		if lines.Text() != strconv.Itoa(count) {
			t.Fatalf("the other process printed %s", lines.Text())
		}
		count++
		if i%5 == 0 {
			put(t, s, own, strconv.Itoa(i), entryOf(i), stepcache.Policy{})
		}
	}
	testkit.Must(t, cmd.Process.Kill())
	for lines.Scan() {
		if n, err := strconv.Atoi(lines.Text()); err == nil {
			count = n + 1
		}
	}
	_ = cmd.Wait() // it was killed
	if count < 500 {
		t.Fatalf("only %d entries were printed", count)
	}
	for i := range count {
		assertEqual(t, "theirs", get(t, s, step, strconv.Itoa(i), stepcache.Policy{}), string(entryOf(i)))
	}
	for i := 0; i < 500; i += 5 {
		assertEqual(t, "mine", get(t, s, own, strconv.Itoa(i), stepcache.Policy{}), string(entryOf(i)))
	}
	testkit.Must(t, s.Close())
}

func BenchmarkGet(b *testing.B) {
	s := stepcache.Open(b.TempDir(), nil)
	put(b, s, step, "k", bytes.Repeat([]byte("x"), 1000), stepcache.Policy{})
	b.ReportAllocs()
	for b.Loop() {
		if _, found, err := s.Get(b.Context(), step, keyOf("k"), stepcache.Policy{}); !found || err != nil {
			b.Fatal(found, err)
		}
	}
	testkit.Must(b, s.Close())
}

func BenchmarkPut(b *testing.B) {
	s := stepcache.Open(b.TempDir(), nil)
	entry := bytes.Repeat([]byte("x"), 1000)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		put(b, s, step, strconv.Itoa(i), entry, stepcache.Policy{MaxBytes: 1 << 30})
	}
	testkit.Must(b, s.Close())
}
