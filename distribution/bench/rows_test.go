package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/testkit"
)

// rowsFile writes n rows of the workload W3.
func rowsFile(tb testing.TB, n int) string {
	tb.Helper()
	items := make([]string, 10)
	for i := range items {
		items[i] = fmt.Sprintf(`\"parameter %d\"`, i)
	}
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "{\"id\":%d,\"name\":\"sound put\",\"q\":\"Deadline out approximately number have, %d how migration picture, answer not?\",\"items\":\"[%s]\"}\n",
			i, i, strings.Join(items, ","))
	}
	return testkit.WriteFile(tb, "rows.jsonl", b.String())
}

func TestPassRows_Workers(t *testing.T) {
	in, out := rowsFile(t, 500), filepath.Join(t.TempDir(), "out")
	sums := map[string]bool{}
	for _, workers := range []int{1, 2, 8} {
		app, err := openRows()
		if err != nil {
			t.Fatal(err)
		}
		if n, err := passRows(app, in, out, workers); n != 500 || err != nil {
			t.Fatalf("%d workers: %d rows, %v", workers, n, err)
		}
		if err := app.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		sum, err := digest(out)
		if err != nil {
			t.Fatal(err)
		}
		sums[sum] = true
		if workers == 1 {
			wantInOrder(t, out)
		}
	}
	if len(sums) != 1 {
		t.Errorf("the lines depend on the number of workers: %v", sums)
	}
}

// wantInOrder checks that every line belongs to its row.
func wantInOrder(t *testing.T, out string) {
	t.Helper()
	text, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range strings.Split(strings.TrimSuffix(string(text), "\n"), "\n") {
		want := fmt.Sprintf(`user=sound put q=Deadline out approximately number have, %d how migration picture, answer not? items=["parameter 0","parameter 1"`, i)
		if !strings.HasPrefix(line, want) {
			t.Fatalf("line %d is %s", i+1, line)
		}
	}
}

func TestDigest_ListForms(t *testing.T) {
	var sums []string
	for i, text := range []string{"user=a items=[\"x y\",\"z\"]\nuser=b items=[]\n", "user=b items=\nuser=a items=x y, z\n"} {
		path := testkit.WriteFile(t, fmt.Sprint(i), text)
		sum, err := digest(path)
		if err != nil || !strings.HasPrefix(sum, "2 lines ") {
			t.Fatal(sum, err)
		}
		sums = append(sums, sum)
	}
	if sums[0] != sums[1] {
		t.Errorf("%q differ", sums)
	}
}

// BenchmarkRows is the workload W3: reading JSON lines, five steps, a line of text.
func BenchmarkRows(b *testing.B) {
	const rows = 10_000
	in, out := rowsFile(b, rows), filepath.Join(b.TempDir(), "out")
	for _, workers := range []int{1, 2} {
		b.Run(fmt.Sprintf("workers=%d", workers), func(b *testing.B) {
			app, err := openRows()
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			start := cpuTime()
			for b.Loop() {
				if n, err := passRows(app, in, out, workers); n != rows || err != nil {
					b.Fatal(n, err)
				}
			}
			b.ReportMetric(float64(rows*b.N)/b.Elapsed().Seconds(), "rows/s")
			b.ReportMetric(float64(cpuTime()-start)/float64(rows*b.N), "cpu-ns/row")
			if err := app.Close(context.Background()); err != nil {
				b.Fatal(err)
			}
		})
	}
}

func TestStart_InvalidNumbers(t *testing.T) {
	for want, arguments := range map[string][]string{
		`w3: WORKERS: "x" is not a positive number`:   {"w3", "in", "out", "x"},
		`w3: WORKERS: "0" is not a positive number`:   {"w3", "in", "out", "0"},
		`w4: "-1" is not a positive number of passes`: {"w4", "in", "-1"},
	} {
		if err := start(arguments); err == nil || err.Error() != want {
			t.Errorf("%v: %v, want %s", arguments, err, want)
		}
	}
	if err := start([]string{"w3", "no-such.jsonl", filepath.Join(t.TempDir(), "out"), "1"}); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("a missing file: %v", err)
	}
}
