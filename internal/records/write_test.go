package records_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/qtype-dev/qtype/internal/records"
	"github.com/qtype-dev/qtype/internal/records/recordstest"
	"github.com/qtype-dev/qtype/internal/testkit"
)

// formats are the formats of the core that can be written.
var formats = []records.Format{records.CSV, records.TSV, records.JSON, records.JSONL}

func TestFormats(t *testing.T) {
	for _, f := range formats {
		t.Run(string(f), func(t *testing.T) { recordstest.Run(t.Context(), t, f) })
	}
}

func TestCreate_FileAppearsWhenComplete(t *testing.T) {
	path := testkit.WriteFile(t, "out.csv", "old\n")
	w, err := records.Create(t.Context(), path, []records.Column{{Name: "a"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Write("x"), w.Flush()); err != nil {
		t.Fatal(err)
	}
	if got, _ := os.ReadFile(path); string(got) != "old\n" {
		t.Errorf("before Close the file holds %q", got)
	}
	w.Abort()
	left, _ := os.ReadDir(filepath.Dir(path))
	if got, _ := os.ReadFile(path); string(got) != "old\n" || len(left) != 1 {
		t.Errorf("after Abort the file holds %q, the folder %v", got, left)
	}
	w, _ = records.Create(t.Context(), path, []records.Column{{Name: "a"}})
	if err := errors.Join(w.Write("x"), w.Close(), w.Close()); err != nil {
		t.Fatal(err)
	}
	left, _ = os.ReadDir(filepath.Dir(path))
	if got, _ := os.ReadFile(path); string(got) != "a\nx\n" || len(left) != 1 {
		t.Errorf("after Close the file holds %q, the folder %v", got, left)
	}
}

func TestCreate_KeepsLinksAndModes(t *testing.T) {
	path := testkit.WriteFile(t, "real.csv", "old\n")
	link := filepath.Join(t.TempDir(), "link.csv")
	if err := os.Symlink(path, link); err != nil {
		t.Skip(err)
	}
	w, err := records.Create(t.Context(), link, []records.Column{{Name: "a"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	got, _ := os.ReadFile(path)
	info, err := os.Stat(path)
	if err != nil || string(got) != "a\n" || info.Mode().Perm() != 0o600 {
		t.Errorf("the link's target holds %q with mode %v", got, info.Mode())
	}
}

func TestCreate_Errors(t *testing.T) {
	dir := t.TempDir()
	file := testkit.WriteFile(t, "file", "x")
	columns := []records.Column{{Name: "a"}}
	tests := map[string]struct {
		path    string
		columns []records.Column
		want    string
	}{
		"no format":      {filepath.Join(dir, "out.txt"), columns, "unknown file format: use .csv, .tsv, .json, .jsonl or .parquet, optionally followed by .gz or .zst"},
		"only packed":    {filepath.Join(dir, "out.gz"), columns, "unknown file format: use .csv, .tsv, .json, .jsonl or .parquet, optionally followed by .gz or .zst"},
		"workbook":       {filepath.Join(dir, "out.xlsx"), columns, "Excel workbooks cannot be written: use .csv or .parquet"},
		"web":            {"https://example.com/out.csv", columns, "https:// can only be read"},
		"directory":      {mkdir(t, dir, "out.csv"), columns, "is a directory, not a file"},
		"file as folder": {filepath.Join(file, "out.csv"), columns, "cannot be written: not a directory"},
		"a part":         {filepath.Join(dir, "out.parquet"), columns, "this program has no record format parquet; the distribution has it: go install github.com/qtype-dev/qtype/distribution/cmd/qtype@latest"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := records.Create(t.Context(), tc.path, tc.columns)
			if err == nil || err.Error() != tc.path+": "+tc.want {
				t.Errorf("got %v, want %s", err, tc.want)
			}
		})
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("something is left behind: %v", left)
	}
}

func mkdir(t *testing.T, parts ...string) string {
	t.Helper()
	path := filepath.Join(parts...)
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestCreate_DiskFull(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("/dev/full is Linux's")
	}
	link := filepath.Join(t.TempDir(), "out.jsonl")
	if err := os.Symlink("/dev/full", link); err != nil {
		t.Skip(err)
	}
	w, err := records.Create(t.Context(), link, []records.Column{{Name: "a"}})
	if err != nil {
		t.Fatal(err)
	}
	_ = w.Write("x")
	if err := w.Close(); err == nil || err.Error() != link+": cannot be written: no space left on device" {
		t.Errorf("got %v", err)
	}
}

func TestWrite_ValueErrors(t *testing.T) {
	var out bytes.Buffer
	w, err := records.NewWriter(t.Context(), &out, records.JSONL, []records.Column{{Name: "n", Kind: records.Int}, {Name: "b", Kind: records.Bool}, {Name: "f", Kind: records.Float}})
	if err != nil {
		t.Fatal(err)
	}
	for want, row := range map[string][]any{
		`column "n": expected a whole number, got "x"`:    {"x", nil, nil},
		`column "n": expected a whole number, got 1.5`:    {1.5, nil, nil},
		`column "b": expected true or false, got "maybe"`: {nil, "maybe", nil},
		`column "f": expected a number, got [1]`:          {nil, nil, []any{1}},
	} {
		var got *records.ValueError
		if err := w.Write(row...); !errors.As(err, &got) || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	if err := errors.Join(w.Write(json.Number("7"), true, math.NaN()), w.Close()); err != nil {
		t.Fatal(err)
	}
	if want := "{\"n\":7,\"b\":true,\"f\":\"NaN\"}\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

func BenchmarkFormats(b *testing.B) { recordstest.Benchmark(b.Context(), b, formats...) }

// BenchmarkCount counts the rows of a file, as a run does before it begins.
func BenchmarkCount(b *testing.B) {
	for _, f := range []records.Format{records.CSV, records.JSON, records.JSONL} {
		path := filepath.Join(b.TempDir(), "rows."+string(f))
		size := recordstest.Fill(b.Context(), b, path, 20_000)
		b.Run(string(f), func(b *testing.B) {
			b.SetBytes(size)
			b.ReportAllocs()
			for b.Loop() {
				if n, err := records.Count(context.Background(), path, records.Options{}); err != nil || n != 20_000 {
					b.Fatal(n, err)
				}
			}
		})
	}
}
