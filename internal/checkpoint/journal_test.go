package checkpoint_test

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/qtype-dev/qtype/internal/checkpoint"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rowOf is what input row n becomes in the tests.
func rowOf(n int64) []checkpoint.Row { return []checkpoint.Row{{Data: fmt.Appendf(nil, "row %d", n)}} }

// input is the key of input row n.
func input(n int64) checkpoint.Key { return checkpoint.Key{Row: n} }

func save(t testing.TB, j *checkpoint.Journal, key checkpoint.Key, rows []checkpoint.Row, last bool) {
	t.Helper()
	if err := j.Save(key, rows, last); err != nil {
		t.Fatal(err)
	}
}

// testKey authenticates the journals of tests.
var testKey = []byte("0123456789abcdef0123456789abcdef")

// begin makes a journal with some finished rows and leaves it open.
func begin(t *testing.T, rows int64) *checkpoint.Journal {
	t.Helper()
	j, err := checkpoint.Create(filepath.Join(t.TempDir(), "out.csv.qtype-journal"), checkpoint.Header{Flow: "main"}, testKey)
	if err != nil {
		t.Fatal(err)
	}
	for n := range rows {
		save(t, j, input(n+1), rowOf(n+1), true)
	}
	return j
}

// reopen closes a journal and opens it again.
func reopen(t *testing.T, j *checkpoint.Journal) *checkpoint.Journal {
	t.Helper()
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := checkpoint.Open(j.Path(), testKey)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = again.Close() })
	return again
}

// loaded reads what a row became, "unfinished" if it is not finished.
func loaded(t testing.TB, j *checkpoint.Journal, key checkpoint.Key) string {
	t.Helper()
	var all []string
	found, err := j.Load(key, func(data []byte) error { all = append(all, string(data)); return nil })
	if err != nil {
		t.Fatal(err)
	}
	if !found {
		return "unfinished"
	}
	return strings.Join(all, ", ")
}

func expect(t testing.TB, j *checkpoint.Journal, key checkpoint.Key, want string) {
	t.Helper()
	if got := loaded(t, j, key); got != want {
		t.Errorf("%+v became %q, want %q", key, got, want)
	}
}

func TestJournal_RowIsFinishedWithItsLastResults(t *testing.T) {
	j := begin(t, 0)
	save(t, j, input(1), rowOf(1), false)
	save(t, j, input(2), rowOf(2), true)
	save(t, j, input(3), nil, true)
	j = reopen(t, j)
	expect(t, j, input(1), "unfinished")
	expect(t, j, input(2), "row 2")
	expect(t, j, input(3), "")
	// What the first process knew of row 1 does not count: it starts over.
	save(t, j, input(1), rowOf(10), false)
	save(t, j, input(1), rowOf(11), true)
	j = reopen(t, j)
	expect(t, j, input(1), "row 10, row 11")
}

func TestJournal_LaterSegments(t *testing.T) {
	first, second, third := checkpoint.Key{Segment: 1, Digest: [16]byte{1}}, checkpoint.Key{Segment: 2, Digest: [16]byte{1}}, checkpoint.Key{Segment: 1}
	j := begin(t, 2)
	save(t, j, first, rowOf(1), false)
	save(t, j, second, []checkpoint.Row{{Failed: true}}, true)
	save(t, j, first, rowOf(2), true)
	save(t, j, third, rowOf(3), false)
	j = reopen(t, j)
	expect(t, j, first, "row 1, row 2")
	expect(t, j, second, "")
	expect(t, j, third, "unfinished")
	j.ForgetFailed()
	expect(t, j, second, "unfinished")
	expect(t, j, first, "row 1, row 2")
	if rows, _ := j.Rows(); rows != 2 || j.Empty() {
		t.Errorf("%d input rows", rows)
	}
}

func TestJournal_RowNumbers(t *testing.T) {
	j := begin(t, 0)
	numbers := []int64{1, 1023, 1024, 5_000_000_000, math.MaxInt64, -3}
	for _, n := range numbers {
		save(t, j, input(n), rowOf(n), true)
	}
	j = reopen(t, j)
	for _, n := range numbers {
		expect(t, j, input(n), fmt.Sprint("row ", n))
	}
	expect(t, j, input(2), "unfinished")
}

func TestJournal_RetriesFailedRows(t *testing.T) {
	j := begin(t, 3)
	save(t, j, input(4), []checkpoint.Row{{Failed: true}}, true)
	j = reopen(t, j)
	if finished, failed := j.Rows(); finished != 4 || failed != 1 {
		t.Fatalf("%d finished, %d failed", finished, failed)
	}
	j.ForgetFailed()
	expect(t, j, input(4), "unfinished")
	save(t, j, input(4), rowOf(4), true)
	j = reopen(t, j)
	if finished, failed := j.Rows(); finished != 4 || failed != 0 {
		t.Errorf("%d finished, %d failed after row 4 was retried", finished, failed)
	}
	expect(t, j, input(4), "row 4")
}

// TestJournal_Truncated cuts a journal at any length: the rows before are there
// and nothing else.
func TestJournal_Truncated(t *testing.T) {
	j := begin(t, 20)
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(j.Path())
	if err != nil {
		t.Fatal(err)
	}
	header := slices.Index(whole, '}') + 2
	rapid.Check(t, func(rt *rapid.T) {
		cut := rapid.IntRange(header+200, len(whole)).Draw(rt, "cut")
		text := slices.Clone(whole[:cut])
		if garbage := rapid.SliceOfN(rapid.Byte(), 0, 30).Draw(rt, "garbage"); rapid.Bool().Draw(rt, "add garbage") {
			text = append(text, garbage...)
		}
		path := filepath.Join(t.TempDir(), "j")
		if err := os.WriteFile(path, text, 0o600); err != nil {
			rt.Fatal(err)
		}
		j, err := checkpoint.Open(path, testKey)
		if err != nil {
			rt.Fatal(err)
		}
		n, _ := j.Rows()
		for i := range n {
			if got := loaded(t, j, input(i+1)); got != fmt.Sprint("row ", i+1) {
				rt.Fatalf("row %d of %d became %q", i+1, n, got)
			}
		}
		save(t, j, input(n+1), rowOf(n+1), true)
		if err := j.Close(); err != nil {
			rt.Fatal(err)
		}
		if j, err = checkpoint.Open(path, testKey); err != nil {
			rt.Fatal(err)
		}
		if more, _ := j.Rows(); more != n+1 {
			rt.Fatalf("%d rows after one was added to %d", more, n)
		}
		_ = j.Close()
	})
}

func TestJournal_FlushesSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // the clock of the test goes on where the test lets it
		j := begin(t, 1)
		defer func() { _ = j.Close() }()
		save(t, j, input(2), rowOf(2), true) // waits for others at first
		time.Sleep(10 * time.Millisecond)
		synctest.Wait()
		text, err := os.ReadFile(j.Path())
		if err != nil || !strings.Contains(string(text), "row 2") {
			t.Errorf("the row is not in the file: %v", err)
		}
	})
}

func TestJournal_ConcurrentSaves(t *testing.T) {
	j := begin(t, 0)
	var group sync.WaitGroup
	for w := range int64(8) {
		group.Go(func() {
			for n := w + 1; n <= 4000; n += 8 {
				if err := j.Save(input(n), rowOf(n), true); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	j = reopen(t, j)
	if n, _ := j.Rows(); n != 4000 {
		t.Fatalf("%d rows", n)
	}
	for n := int64(1); n <= 4000; n += 97 {
		expect(t, j, input(n), fmt.Sprint("row ", n))
	}
}

func TestJournal_HasOneWriter(t *testing.T) {
	j := begin(t, 1)
	defer func() { _ = j.Close() }()
	if _, err := checkpoint.Open(j.Path(), testKey); !errors.Is(err, checkpoint.ErrBusy) {
		t.Errorf("a second process may write it: %v", err)
	}
	if _, err := checkpoint.Create(j.Path(), checkpoint.Header{}, testKey); !errors.Is(err, checkpoint.ErrBusy) {
		t.Errorf("a second process may replace it: %v", err)
	}
}

func TestJournal_RejectsOtherFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	const older = "and this version of qtype reads format 3: finish the run with the version that started it, or delete the file to start over"
	for text, want := range map[string]string{
		"a,b\n1,2\n":                     "is not a journal of qtype",
		"qtype journal two\n":            "is not a journal of qtype",
		"qtype journal 3\n":              "has no readable header; delete it to start over",
		"qtype journal 3\n\x00\x00\x00":  "has no readable header; delete it to start over",
		"qtype journal 1\n\x00\x00\x00":  "has journal format 1, " + older,
		"qtype journal 17\n\x00\x00\x00": "has journal format 17, " + older,
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := checkpoint.Open(path, testKey); err == nil || err.Error() != path+": "+want {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, err := checkpoint.Open(path+"x", testKey); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

// TestJournal_RejectsFormat1 opens journals that version 1 of the format has: of a
// flow without batch steps, and of one with them.
func TestJournal_RejectsFormat1(t *testing.T) {
	for _, name := range []string{"rows.v1.qtype-journal", "batches.v1.qtype-journal"} {
		old, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, old, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := checkpoint.Open(path, testKey); err == nil || !strings.HasPrefix(err.Error(), path+": has journal format 1, and this version") {
			t.Errorf("%s: %v", name, err)
		}
		if now, err := os.ReadFile(path); err != nil || !slices.Equal(now, old) {
			t.Errorf("%s was changed: %v", name, err)
		}
	}
}

func TestHeader_Changes(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) checkpoint.File {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := checkpoint.Describe(path)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	was := checkpoint.Header{Input: file("in.csv", "a\n1\n"), Flow: "main", Parts: map[string]string{"step a": "1", "step b": "1"},
		Settings: map[string]string{"--session": "x"}}
	same := was
	same.Input = file("copy.csv", "a\n1\n")
	if got := was.Changes(same); got != nil {
		t.Errorf("a copy of the input is a change: %q", got)
	}
	for want, change := range map[string]func(*checkpoint.Header){
		"has 8 bytes, had 4":         func(h *checkpoint.Header) { h.Input = file("in.csv", "a\n1\n2\n3\n") },
		"other.csv, was":             func(h *checkpoint.Header) { h.Input = file("other.csv", "a\n2\n") },
		"the flow is side, was main": func(h *checkpoint.Header) { h.Flow, h.Parts = "side", nil },
		"step a was changed":         func(h *checkpoint.Header) { h.Parts = map[string]string{"step a": "2", "step b": "1"} },
		"step b was removed":         func(h *checkpoint.Header) { h.Parts = map[string]string{"step a": "1"} },
		`--session is "", was "x"`:   func(h *checkpoint.Header) { h.Settings = nil },
	} {
		now := was
		change(&now)
		if got := was.Changes(now); len(got) != 1 || !strings.Contains(got[0], want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func BenchmarkSave(b *testing.B) {
	j, err := checkpoint.Create(filepath.Join(b.TempDir(), "j"), checkpoint.Header{}, testKey)
	if err != nil {
		b.Fatal(err)
	}
	rows := []checkpoint.Row{{Data: []byte(strings.Repeat("some text ", 20))}}
	b.ReportAllocs()
	for n := int64(1); b.Loop(); n++ {
		if err := j.Save(input(n), rows, true); err != nil {
			b.Fatal(err)
		}
	}
	_ = j.Close()
}
