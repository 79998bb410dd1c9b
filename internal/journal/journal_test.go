package journal_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/qtype-dev/qtype/internal/journal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func row(n int64) []journal.Result {
	return []journal.Result{{Values: []any{n, fmt.Sprint("row ", n)}}}
}

// begin makes a journal with so many finished rows and leaves it open.
func begin(t *testing.T, rows int64) *journal.Journal {
	t.Helper()
	j, err := journal.Create(filepath.Join(t.TempDir(), "out.csv.qtype-journal"), journal.Header{Flow: "main"})
	if err != nil {
		t.Fatal(err)
	}
	for n := range rows {
		if err := j.Add(n+1, row(n+1), true); err != nil {
			t.Fatal(err)
		}
	}
	return j
}

// reopen closes a journal and opens it again.
func reopen(t *testing.T, j *journal.Journal) *journal.Journal {
	t.Helper()
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := journal.Open(j.Path())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = again.Close() })
	return again
}

// replayed reads what became of a row.
func replayed(t *testing.T, j *journal.Journal, n int64) []journal.Result {
	t.Helper()
	r, err := j.Replay()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	var all []journal.Result
	if err := r.Row(n, func(some []journal.Result) error { all = append(all, some...); return nil }); err != nil {
		t.Fatal(err)
	}
	return all
}

func TestEveryValueComesBackAsItWas(t *testing.T) {
	values := []any{nil, "", "text\x00\n", int64(math.MinInt64), int64(math.MaxInt64), 0.1, math.Inf(-1), true, false,
		[]byte{0, 255}, json.RawMessage(`{"a":[1]}`)}
	failure := &journal.Failure{Step: "a > b", Code: "http_500", Message: "step a > b: no"}
	want := []journal.Result{{Values: values}, {Values: []any{int64(1)}, Failure: failure}, {}}
	j := begin(t, 0)
	if err := j.Add(7, want, true); err != nil {
		t.Fatal(err)
	}
	j = reopen(t, j)
	if got := replayed(t, j, 7); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %#v\nwant %#v", got, want)
	}
	if finished, failed := j.Rows(); finished != 1 || failed != 1 || !j.Finished(7) || j.Finished(6) || j.Last() != 7 {
		t.Errorf("%d finished, %d failed", finished, failed)
	}
}

func TestARowIsFinishedWithItsLastResultsOnly(t *testing.T) {
	j := begin(t, 0)
	for _, err := range []error{j.Add(1, row(1), false), j.Add(2, row(2), true), j.Add(3, nil, true)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	j = reopen(t, j)
	if j.Finished(1) || !j.Finished(2) || !j.Finished(3) {
		t.Fatal("wrong rows are finished")
	}
	// What the first process knew of row 1 counts for nothing: it is begun again.
	for _, err := range []error{j.Add(1, row(10), false), j.Add(1, row(11), true)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	j = reopen(t, j)
	if got := replayed(t, j, 1); len(got) != 2 || got[0].Values[0] != int64(10) || got[1].Values[0] != int64(11) {
		t.Errorf("row 1 became %v", got)
	}
	if got := replayed(t, j, 3); len(got) != 0 {
		t.Errorf("row 3 became %v", got)
	}
}

func TestGroupsAreReadBackAsTheyWere(t *testing.T) {
	first, second, third := journal.BatchKey{Leg: 1, Digest: [16]byte{1}}, journal.BatchKey{Leg: 2, Digest: [16]byte{1}}, journal.BatchKey{Leg: 1}
	failed := []journal.Result{{Failure: &journal.Failure{Message: "no"}}}
	j := begin(t, 2)
	for _, err := range []error{j.AddGroup(first, row(1), false), j.AddGroup(second, failed, true), j.AddGroup(first, row(2), true), j.AddGroup(third, row(3), false)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	j = reopen(t, j)
	if !j.FinishedGroup(first) || !j.FinishedGroup(second) || j.FinishedGroup(third) || j.Groups() != 2 {
		t.Fatalf("wrong groups are finished, %d in all", j.Groups())
	}
	replay, err := j.Replay()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = replay.Close() }()
	var got []journal.Result
	if err := replay.Group(first, func(some []journal.Result) error { got = append(got, some...); return nil }); err != nil {
		t.Fatal(err)
	}
	if want := append(row(1), row(2)...); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	j.ForgetFailed()
	if rows, _ := j.Rows(); rows != 2 || j.FinishedGroup(second) || !j.FinishedGroup(first) {
		t.Error("the failed group alone is to be done again")
	}
}

func TestFailedRowsCanBeDoneAgain(t *testing.T) {
	j := begin(t, 3)
	if err := j.Add(4, []journal.Result{{Failure: &journal.Failure{Message: "no"}}}, true); err != nil {
		t.Fatal(err)
	}
	j = reopen(t, j)
	j.ForgetFailed()
	if finished, failed := j.Rows(); finished != 3 || failed != 0 || j.Finished(4) {
		t.Fatalf("%d finished, %d failed", finished, failed)
	}
	if err := j.Add(4, row(4), true); err != nil {
		t.Fatal(err)
	}
	j = reopen(t, j)
	if finished, failed := j.Rows(); finished != 4 || failed != 0 || replayed(t, j, 4)[0].Failure != nil {
		t.Errorf("%d finished, %d failed after row 4 was done", finished, failed)
	}
}

// TestAJournalThatIsCutAnywhereKeepsWhatIsWhole: whatever the length at which
// the process was ended, the rows before it are there and nothing else.
func TestAJournalThatIsCutAnywhereKeepsWhatIsWhole(t *testing.T) {
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
		if garbage := rapid.SliceOfN(rapid.Byte(), 0, 30).Draw(rt, "garbage"); rapid.Bool().Draw(rt, "torn") {
			text = append(text, garbage...)
		}
		path := filepath.Join(t.TempDir(), "j")
		if err := os.WriteFile(path, text, 0o600); err != nil {
			rt.Fatal(err)
		}
		j, err := journal.Open(path)
		if err != nil {
			rt.Fatal(err)
		}
		n, _ := j.Rows()
		for i := range n {
			if !j.Finished(i + 1) {
				rt.Fatalf("%d rows, but row %d is not finished", n, i+1)
			}
			if got := replayed(t, j, i+1); !reflect.DeepEqual(got, row(i+1)) {
				rt.Fatalf("row %d became %v", i+1, got)
			}
		}
		if err := j.Add(n+1, row(n+1), true); err != nil {
			rt.Fatal(err)
		}
		if err := j.Close(); err != nil {
			rt.Fatal(err)
		}
		if j, err = journal.Open(path); err != nil {
			rt.Fatal(err)
		}
		if more, _ := j.Rows(); more != n+1 {
			rt.Fatalf("%d rows after one was added to %d", more, n)
		}
		_ = j.Close()
	})
}

func TestWhatWasAddedIsSoonInTheFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // the clock of the test goes on where the test lets it
		j := begin(t, 1)
		defer func() { _ = j.Close() }()
		if err := j.Add(2, row(2), true); err != nil { // waits for others at first
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
		synctest.Wait()
		text, err := os.ReadFile(j.Path())
		if err != nil || !strings.Contains(string(text), "row 2") {
			t.Errorf("the row is not in the file: %v", err)
		}
	})
}

func TestManyAddAtOnce(t *testing.T) {
	j := begin(t, 0)
	var group sync.WaitGroup
	for w := range int64(8) {
		group.Go(func() {
			for n := w + 1; n <= 4000; n += 8 {
				if err := j.Add(n, row(n), true); err != nil {
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
		if got := replayed(t, j, n); !reflect.DeepEqual(got, row(n)) {
			t.Fatalf("row %d became %v", n, got)
		}
	}
}

func TestAJournalHasOneWriter(t *testing.T) {
	j := begin(t, 1)
	defer func() { _ = j.Close() }()
	if _, err := journal.Open(j.Path()); !errors.Is(err, journal.ErrBusy) {
		t.Errorf("a second process may write it: %v", err)
	}
	if _, err := journal.Create(j.Path(), journal.Header{}); !errors.Is(err, journal.ErrBusy) {
		t.Errorf("a second process may replace it: %v", err)
	}
}

func TestWhatIsNoJournalIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	for text, want := range map[string]string{
		"":                              "is not a journal of qtype",
		"a,b\n1,2\n":                    "is not a journal of qtype",
		"qtype journal 1\n":             "has no header that can be read; delete it and begin again",
		"qtype journal 1\n\x00\x00\x00": "has no header that can be read; delete it and begin again",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := journal.Open(path); err == nil || err.Error() != path+": "+want {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, err := journal.Open(path + "x"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

func TestChangesAreNamed(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) journal.File {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := journal.Describe(path)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	was := journal.Header{Input: file("in.csv", "a\n1\n"), Flow: "main", Parts: map[string]string{"step a": "1", "step b": "1"},
		Options: map[string]string{"session": "x"}, Columns: []string{"row"}}
	same := was
	same.Input = file("copy.csv", "a\n1\n")
	if got := was.Changes(same); got != nil {
		t.Errorf("a copy of the input is a change: %q", got)
	}
	for want, h := range map[string]journal.Header{
		"has 8 bytes, had 4":         {Input: file("in.csv", "a\n1\n2\n3\n"), Flow: "main", Parts: was.Parts, Options: was.Options, Columns: was.Columns},
		"other.csv, was":             {Input: file("other.csv", "a\n2\n"), Flow: "main", Parts: was.Parts, Options: was.Options, Columns: was.Columns},
		"the flow is side, was main": {Input: was.Input, Flow: "side", Options: was.Options, Columns: was.Columns},
		"step a was changed":         {Input: was.Input, Flow: "main", Parts: map[string]string{"step a": "2", "step b": "1"}, Options: was.Options, Columns: was.Columns},
		"step b is gone":             {Input: was.Input, Flow: "main", Parts: map[string]string{"step a": "1"}, Options: was.Options, Columns: was.Columns},
		`--session is "", was "x"`:   {Input: was.Input, Flow: "main", Parts: was.Parts, Columns: was.Columns},
		"--limit is 3, was 0":        {Input: was.Input, Flow: "main", Parts: was.Parts, Options: was.Options, Columns: was.Columns, Limit: 3},
		`columns are ["x"], were`:    {Input: was.Input, Flow: "main", Parts: was.Parts, Options: was.Options, Columns: []string{"x"}},
	} {
		got := was.Changes(h)
		if len(got) != 1 || !strings.Contains(got[0], want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func BenchmarkAdd(b *testing.B) {
	j, err := journal.Create(filepath.Join(b.TempDir(), "j"), journal.Header{})
	if err != nil {
		b.Fatal(err)
	}
	results := []journal.Result{{Values: []any{int64(1), "c-014", strings.Repeat("some text ", 20), nil}}}
	b.ReportAllocs()
	for n := int64(1); b.Loop(); n++ {
		if err := j.Add(n, results, true); err != nil {
			b.Fatal(err)
		}
	}
	_ = j.Close()
}
