package embedded_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/index"
	"github.com/qtype-dev/qtype/internal/filter"
	"github.com/qtype-dev/qtype/internal/index/embedded"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/internal/vectors"
)

// writerFile is the environment variable that makes this test program write to an index.
const writerFile = "QTYPE_TEST_EMBEDDED_WRITER"

// TestWriterProcess writes batches of 10 entries, and prints the number of each after Put
// has returned, until it is killed.
func TestWriterProcess(t *testing.T) {
	path, number, _ := strings.Cut(os.Getenv(writerFile), "|")
	if path == "" {
		t.Skip("runs only as a process of TestIndex_Killed and TestIndex_Processes")
	}
	first, _ := strconv.Atoi(number)
	x := embedded.Open(embedded.Options{Path: path, Vectors: true, Encoding: vectors.Int8})
	for batch := first; ; batch++ {
		testkit.Must(t, x.Put(context.Background(), batchOf(batch)))
		fmt.Println("written", batch)
	}
}

// batchOf returns the entries of a batch.
func batchOf(batch int) (list []index.Entry) {
	for i := range 10 {
		n := batch*10 + i
		list = append(list, index.Entry{ID: fmt.Sprintf("%08d", n), Text: "text of batch" + strconv.Itoa(batch), Vector: []float32{1, float32(n), 3}, Hash: "h"})
	}
	return list
}

// TestIndex_Replaced: an index that is open when its file is deleted, and made again by another process,
// searches and writes the new file. Both files have the same counters.
func TestIndex_Replaced(t *testing.T) {
	path := filepath.Join(t.TempDir(), "index.db")
	opts := embedded.Options{Path: path, Vectors: true, Encoding: vectors.Int8}
	entry := func(id string) []index.Entry {
		return []index.Entry{{ID: id, Text: "text " + id, Vector: []float32{1, 2}, Metadata: map[string]any{"id": id}, Hash: "h"}}
	}
	x := open(t, opts)
	found := func(q index.Query) (ids []string) {
		q.Limit = 10
		matches, err := x.Search(t.Context(), q)
		testkit.Must(t, err)
		for _, m := range matches {
			ids = append(ids, m.ID)
		}
		return ids
	}
	queries := func(id string) []index.Query {
		return []index.Query{
			{Mode: index.ByVector, Vector: []float32{1, 2}}, {Mode: index.ByText, Text: "text"}, {Mode: index.ByText, Text: id[:len(id)-1] + "x"},
			{Mode: index.ByVector, Vector: []float32{1, 2}, Filter: filter.Exists{Field: "id"}},
			{Mode: index.ByText, Text: "text", Filter: filter.Compare{Field: "id", Op: filter.Equal, Value: id}},
		}
	}
	testkit.Must(t, x.Put(t.Context(), entry("alpha")))
	for _, id := range []string{"alpha", "omega"} {
		if id == "omega" {
			for _, suffix := range []string{"", "-wal", "-shm"} {
				if err := os.Remove(path + suffix); err != nil {
					t.Skip("SKIPPED: an open file cannot be removed")
				}
			}
			other := embedded.Open(opts)
			testkit.Must(t, errors.Join(other.Put(t.Context(), entry(id)), other.Close()))
		}
		for _, q := range queries(id) {
			if got := found(q); !slices.Equal(got, []string{id}) {
				t.Errorf("%s, %+v: found %q", id, q, got)
			}
		}
	}
	testkit.Must(t, x.Put(t.Context(), entry("second")))
	other := open(t, opts)
	if stats, err := other.Stats(t.Context()); stats.Entries != 2 || err != nil {
		t.Errorf("the file has %d entries, %v", stats.Entries, err)
	}
}

// startWriter starts a process that writes from a batch on, and kills it after a number of
// batches. It returns the last batch that was reported.
func startWriter(t *testing.T, path string, first, batches int) int {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestWriterProcess$")
	cmd.Env = append(os.Environ(), writerFile+"="+path+"|"+strconv.Itoa(first))
	out, err := cmd.StdoutPipe()
	testkit.Must(t, err)
	testkit.Must(t, cmd.Start())
	last := -1
	for lines := bufio.NewScanner(out); batches > 0 && lines.Scan(); {
		if text, ok := strings.CutPrefix(lines.Text(), "written "); ok {
			last, err = strconv.Atoi(text)
			testkit.Must(t, err)
			batches--
		}
	}
	testkit.Must(t, cmd.Process.Kill())
	_ = cmd.Wait() // killed
	return last
}

// TestIndex_Killed kills writers, and checks that the index has every batch that was
// reported, and no part of another one.
func TestIndex_Killed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "index.db")
	reader := embedded.Open(embedded.Options{Path: path, Vectors: true, Encoding: vectors.Int8})
	defer func() { testkit.Must(t, reader.Close()) }()
	next := 0
	for kill := range 5 {
		last := startWriter(t, path, next, 3+kill)
		stats, err := reader.Stats(t.Context())
		testkit.Must(t, err)
		if stats.Entries%10 != 0 || stats.Entries < int64(10*(last+1)) {
			t.Fatalf("%d entries, %d batches were reported", stats.Entries, last+1)
		}
		next = int(stats.Entries / 10)
		newest := batchOf(next - 1)[9]
		for _, q := range []index.Query{
			{Mode: index.ByVector, Vector: newest.Vector, Limit: int(stats.Entries) + 5},
			{Mode: index.ByText, Text: "text", Limit: int(stats.Entries) + 5},
		} {
			matches, err := reader.Search(t.Context(), q)
			testkit.Must(t, err)
			if len(matches) != int(stats.Entries) {
				t.Errorf("mode %d finds %d of %d entries", q.Mode, len(matches), stats.Entries)
			}
		}
	}
}

// TestIndex_Processes checks that an index sees what another one on the same file wrote,
// deleted and cleared.
func TestIndex_Processes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "index.db")
	open := func() *embedded.Index {
		x := embedded.Open(embedded.Options{Path: path, Vectors: true, Encoding: vectors.Int8})
		t.Cleanup(func() { testkit.Must(t, x.Close()) })
		return x
	}
	one, two := open(), open()
	found := func(x *embedded.Index) int {
		t.Helper()
		matches, err := x.Search(t.Context(), index.Query{Mode: index.Hybrid, Text: "text", Vector: []float32{1, 2, 3}, Limit: 1_000})
		testkit.Must(t, err)
		return len(matches)
	}
	for batch := range 20 {
		writer, reader := one, two
		if batch%2 == 1 {
			writer, reader = two, one
		}
		testkit.Must(t, writer.Put(t.Context(), batchOf(batch)))
		testkit.Must(t, writer.Delete(t.Context(), []string{batchOf(batch)[0].ID}))
		if n := found(reader); n != 9*(batch+1) {
			t.Fatalf("after batch %d: %d matches", batch, n)
		}
	}
	testkit.Must(t, one.Clear(t.Context()))
	if n := found(two); n != 0 {
		t.Errorf("after Clear: %d matches", n)
	}
	testkit.Must(t, two.Put(t.Context(), batchOf(0)))
	if n := found(one); n != 10 {
		t.Errorf("after Put: %d matches", n)
	}
}
