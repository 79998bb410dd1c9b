package recordstest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/qtype-dev/qtype/internal/records"
)

// Benchmark reads and writes files of formats.
func Benchmark(ctx context.Context, b *testing.B, formats ...records.Format) {
	for _, f := range formats {
		path := filepath.Join(b.TempDir(), "rows."+string(f))
		size := Fill(ctx, b, path, 20_000)
		b.Run("read "+string(f), func(b *testing.B) {
			b.SetBytes(size)
			b.ReportAllocs()
			for b.Loop() {
				if n, err := Drain(ctx, path); err != nil || n != 20_000 {
					b.Fatal(n, err)
				}
			}
		})
		b.Run("write "+string(f), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				b.SetBytes(Fill(ctx, b, path, 20_000))
			}
		})
	}
}

// Drain reads a file and returns the number of its records.
func Drain(ctx context.Context, path string) (int, error) {
	r, err := records.Open(ctx, path, records.Options{})
	if err != nil {
		return 0, err
	}
	defer func() { _ = r.Close() }() // only read
	n := 0
	for _, err := range r.All() {
		if err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// Fill writes a file and returns its size in bytes.
func Fill(ctx context.Context, b *testing.B, path string, rows int) int64 {
	b.Helper()
	w, err := records.Create(ctx, path, []records.Column{{Name: "session"}, {Name: "n", Kind: records.Int}, {Name: "message"}})
	if err != nil {
		b.Fatal(err)
	}
	for i := range rows {
		if err := w.Write(fmt.Sprintf("c-%03d", i%20), i, fmt.Sprintf("Where is my parcel %d, please? It was \"sent\" on Monday, you wrote.", i)); err != nil {
			b.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		b.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		b.Fatal(err)
	}
	return info.Size()
}
