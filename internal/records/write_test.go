package records_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"
	"pgregory.net/rapid"

	"github.com/qtype-dev/qtype/internal/records"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/spec/value"
)

var sixColumns = []records.Column{{Name: "z text", Kind: records.Text}, {Name: "int", Kind: records.Int},
	{Name: "float", Kind: records.Float}, {Name: "bool", Kind: records.Bool}, {Name: "bytes", Kind: records.Bytes},
	{Name: "a,json", Kind: records.JSONText}}

// drawRow draws a value or null for each of sixColumns.
func drawRow(t *rapid.T) []any {
	orNull := func(v any) any {
		if rapid.IntRange(0, 4).Draw(t, "null") == 0 {
			return nil
		}
		return v
	}
	return []any{
		orNull(rapid.OneOf(rapid.String().Filter(func(s string) bool { return !strings.Contains(s, "\x00") }), rapid.SampledFrom([]string{"", " ", ",", "\"", "a\nb", "a\r\nb", "\r", "\t", "\ufeff", "ü–漢🎈", "\u2028", "\x7f"})).Draw(t, "text")),
		orNull(rapid.Int64().Draw(t, "int")),
		orNull(rapid.Float64().Draw(t, "float")),
		orNull(rapid.Bool().Draw(t, "bool")),
		orNull(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")),
		orNull(map[string]any{"k": rapid.String().Draw(t, "k"), "l": []any{true, nil}}),
	}
}

// asRead is what reading gives for a written value.
func asRead(f records.Format, kind records.Kind, v any) any {
	text := f == records.CSV || f == records.TSV
	if v == nil {
		if text {
			return ""
		}
		return nil
	}
	if b, ok := v.([]byte); ok && f != records.Parquet {
		if text {
			return string(value.AppendCell(nil, b))
		}
		parsed, _ := value.Parse(string(value.JSON(b))) // cannot fail
		return value.ToGo(parsed)
	}
	if f == records.Parquet || kind == records.Text || kind == records.Bool && !text {
		return v
	}
	if kind == records.JSONText && !text {
		return v
	}
	return fmt.Sprint(v)
}

// same compares a read value with the written one, numbers by what they are.
func same(got, want any) bool {
	switch g := got.(type) {
	case json.Number:
		return sameNumber(string(g), fmt.Sprint(want))
	case string:
		if w, ok := want.(string); ok && g != w {
			return sameNumber(g, w) || sameJSON(g, w)
		}
	}
	return cmp.Equal(value.ToGo(got), want)
}

func sameNumber(a, b string) bool {
	var x, y float64
	_, e1 := fmt.Sscan(a, &x)
	_, e2 := fmt.Sscan(b, &y)
	return e1 == nil && e2 == nil && x == y
}

// sameJSON: b is fmt's rendering of the map that a is the JSON of.
func sameJSON(a, b string) bool {
	var m map[string]any
	return json.Unmarshal([]byte(a), &m) == nil && fmt.Sprint(m) == b
}

func TestRoundTrip(t *testing.T) {
	for _, f := range records.Formats() {
		t.Run(string(f), func(t *testing.T) {
			dir := t.TempDir()
			columns := append([]records.Column(nil), sixColumns...)
			if f == records.Parquet {
				columns[5].Name = "a json"
			}
			rapid.Check(t, func(t *rapid.T) {
				rows := rapid.SliceOfN(rapid.Custom(drawRow), 1, 20).Draw(t, "rows")
				path := filepath.Join(dir, "rows."+string(f))
				w, err := records.Create(t.Context(), path, columns)
				if err != nil {
					t.Fatal(err)
				}
				for _, row := range rows {
					if err := w.Write(row...); err != nil {
						t.Fatal(err)
					}
				}
				if err := w.Close(); err != nil {
					t.Fatal(err)
				}
				compare(t, path, f, rows, columns)
			})
		})
	}
}

// compare reads a file back and expects the rows in it.
func compare(t *rapid.T, path string, f records.Format, rows [][]any, columns []records.Column) {
	r, err := records.Open(t.Context(), path, records.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	n := 0
	for rec, err := range r.All() {
		if err != nil {
			t.Fatal(err)
		}
		for i, c := range columns {
			if rec.Columns[i] != c.Name {
				t.Fatalf("column %d is %q, want %q", i, rec.Columns[i], c.Name)
			}
			if want := asRead(f, c.Kind, rows[n][i]); !same(rec.Values[i], want) {
				t.Fatalf("row %d, %s: got %#v, want %#v", n, c.Name, rec.Values[i], want)
			}
		}
		n++
	}
	if n != len(rows) {
		t.Fatalf("%d rows, want %d", n, len(rows))
	}
}

func TestCreate_NoRows(t *testing.T) {
	for _, f := range records.Formats() {
		path := filepath.Join(t.TempDir(), "sub", "folder", "none."+string(f))
		w, err := records.Create(t.Context(), path, []records.Column{{Name: "a"}})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		want := map[records.Format]string{records.CSV: "a\n", records.TSV: "a\n", records.JSON: "[]\n", records.JSONL: ""}
		got, err := os.ReadFile(path)
		if err != nil || f != records.Parquet && string(got) != want[f] {
			t.Errorf("%s: %q, %v", f, got, err)
		}
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
		"parquet name":   {filepath.Join(dir, "out.parquet"), []records.Column{{Name: "a,b"}}, `a Parquet file cannot have a column named "a,b"`},
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
	w, err := records.NewWriter(&out, records.JSONL, []records.Column{{Name: "n", Kind: records.Int}, {Name: "b", Kind: records.Bool}, {Name: "f", Kind: records.Float}})
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

func TestReadForeignParquet(t *testing.T) {
	type line struct {
		Sku   string `parquet:"sku"`
		Count int32  `parquet:"count"`
	}
	type order struct {
		ID    int64             `parquet:"id"`
		Note  *string           `parquet:"note,optional"`
		Tags  []string          `parquet:"tags,list"`
		Lines []line            `parquet:"lines,list"`
		Attr  map[string]string `parquet:"attr"`
		When  int64             `parquet:"when,timestamp(millisecond)"`
		Day   int32             `parquet:"day,date"`
		Price int64             `parquet:"price,decimal(2:9)"`
		Raw   []byte            `parquet:"raw"`
		Ratio float32           `parquet:"ratio"`
	}
	note := "fragile"
	path := filepath.Join(t.TempDir(), "orders.parquet")
	err := parquet.WriteFile(path, []order{
		{ID: 1, Note: &note, Tags: []string{"a", "b"}, Lines: []line{{"x", 2}, {"y", 3}}, Attr: map[string]string{"k": "v"},
			When: 1700000000123, Day: 19675, Price: -5, Raw: []byte{0xff}, Ratio: 0.5},
		{ID: 2},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []map[string]any{
		{"id": int64(1), "note": "fragile", "tags": []any{"a", "b"}, "attr": map[string]any{"k": "v"},
			"lines": []any{map[string]any{"sku": "x", "count": int64(2)}, map[string]any{"sku": "y", "count": int64(3)}},
			"when":  "2023-11-14T22:13:20.123Z", "day": "2023-11-14", "price": value.Decimal("-0.05"), "raw": []byte{0xff}, "ratio": 0.5},
		{"id": int64(2), "note": nil, "tags": []any{}, "lines": []any{}, "attr": map[string]any{},
			"when": "1970-01-01T00:00:00Z", "day": "1970-01-01", "price": value.Decimal("0.00"), "raw": []byte{}, "ratio": 0.0},
	}
	r, err := records.Open(t.Context(), path, records.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if n, known := r.Total(); n != 2 || !known {
		t.Errorf("Total: %d, %v", n, known)
	}
	var got []map[string]any
	for rec, err := range r.All() {
		if err != nil {
			t.Fatal(err)
		}
		row := map[string]any{}
		for i, c := range rec.Columns {
			row[c] = rec.Values[i]
		}
		got = append(got, row)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// Any byte of a Parquet file may be damaged: an error, never a panic.
func TestDamagedParquet(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.parquet")
	w, err := records.Create(t.Context(), path, sixColumns[:5])
	if err != nil {
		t.Fatal(err)
	}
	for i := range 50 {
		if err := w.Write(strings.Repeat("x", i), i, 0.5, true, []byte{1}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	good, _ := os.ReadFile(path)
	for i := 0; i < len(good); i += 3 {
		bad := bytes.Clone(good)
		bad[i] ^= 0x55
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		_ = read(t, path)
	}
	if err := os.WriteFile(path, good[:len(good)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	if got := read(t, path); len(got) != 1 || got[0] != "a.parquet: is damaged or not a complete Parquet file" {
		t.Errorf("got %q", got)
	}
}

func BenchmarkRead(b *testing.B) {
	for _, f := range records.Formats() {
		path := filepath.Join(b.TempDir(), "rows."+string(f))
		size := fill(b, path, 20_000)
		b.Run(string(f), func(b *testing.B) {
			b.SetBytes(size)
			b.ReportAllocs()
			for b.Loop() {
				if n, err := drain(path); err != nil || n != 20_000 {
					b.Fatal(n, err)
				}
			}
		})
	}
}

func drain(path string) (int, error) {
	r, err := records.Open(context.Background(), path, records.Options{})
	if err != nil {
		return 0, err
	}
	defer r.Close()
	n := 0
	for _, err := range r.All() {
		if err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

func BenchmarkWrite(b *testing.B) {
	for _, f := range records.Formats() {
		b.Run(string(f), func(b *testing.B) {
			path := filepath.Join(b.TempDir(), "rows."+string(f))
			b.ReportAllocs()
			for b.Loop() {
				b.SetBytes(fill(b, path, 20_000))
			}
		})
	}
}

// fill writes a file and gives its size.
func fill(b *testing.B, path string, rows int) int64 {
	b.Helper()
	w, err := records.Create(b.Context(), path, []records.Column{{Name: "session"}, {Name: "n", Kind: records.Int}, {Name: "message"}})
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

// BenchmarkCount counts the rows of a file, as a run does before it begins.
func BenchmarkCount(b *testing.B) {
	for _, f := range []records.Format{records.CSV, records.JSON, records.JSONL} {
		path := filepath.Join(b.TempDir(), "rows."+string(f))
		size := fill(b, path, 20_000)
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
