package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// rowsFile writes n rows as the workload W3 has them.
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
	path := filepath.Join(tb.TempDir(), "rows.jsonl")
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		tb.Fatal(err)
	}
	return path
}

func TestRowsAreTheSameWithWorkers(t *testing.T) {
	in, out := rowsFile(t, 500), filepath.Join(t.TempDir(), "out")
	var first string
	for _, workers := range []int{1, 2, 8} {
		app, err := openRows(workers)
		if err != nil {
			t.Fatal(err)
		}
		if n, err := passRows(app, in, out); n != 500 || err != nil {
			t.Fatalf("%d workers: %d rows, %v", workers, n, err)
		}
		if err := app.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		if workers == 1 {
			first = string(text)
			line, _, _ := strings.Cut(first, "\n")
			if want := `user=sound put q=Deadline out approximately number have, 0 how migration picture, answer not? items=["parameter 0","parameter 1"`; !strings.HasPrefix(line, want) {
				t.Fatalf("the first line is %s", line)
			}
		}
		if string(text) != first {
			t.Errorf("%d workers write other lines than one", workers)
		}
	}
}

// BenchmarkRows is the workload W3: reading JSON lines, five steps, a line of text.
func BenchmarkRows(b *testing.B) {
	const rows = 10_000
	in, out := rowsFile(b, rows), filepath.Join(b.TempDir(), "out")
	for _, workers := range []int{1, 2} {
		b.Run(fmt.Sprintf("workers=%d", workers), func(b *testing.B) {
			app, err := openRows(workers)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if n, err := passRows(app, in, out); n != rows || err != nil {
					b.Fatal(n, err)
				}
			}
			b.ReportMetric(float64(rows*b.N)/b.Elapsed().Seconds(), "rows/s")
			if err := app.Close(context.Background()); err != nil {
				b.Fatal(err)
			}
		})
	}
}
