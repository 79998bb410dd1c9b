// Package recordstest is the contract suite of the formats of package records that can be written, and what tests of
// formats share.
package recordstest

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/qtype-dev/qtype/internal/records"
	"github.com/qtype-dev/qtype/spec/value"
)

// Run writes and reads files of a format, which the program of the context has.
func Run(ctx context.Context, t *testing.T, f records.Format) {
	t.Run("RoundTrip", func(t *testing.T) { roundTrip(ctx, t, f) })
	t.Run("TypedRoundTrip", func(t *testing.T) { typedRoundTrip(ctx, t, f) })
	t.Run("NoRows", func(t *testing.T) { noRows(ctx, t, f) })
	t.Run("Compressed", func(t *testing.T) { compressed(ctx, t, f) })
}

// SixColumns has a column of each kind.
var SixColumns = []records.Column{{Name: "z text", Kind: records.Text}, {Name: "int", Kind: records.Int},
	{Name: "float", Kind: records.Float}, {Name: "bool", Kind: records.Bool}, {Name: "bytes", Kind: records.Bytes},
	{Name: "a json", Kind: records.JSONText}}

// drawRow draws a value or null for each of SixColumns.
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

func roundTrip(ctx context.Context, t *testing.T, f records.Format) {
	dir := t.TempDir()
	columns := slices.Clone(SixColumns)
	if f != records.Parquet { // which has no such names
		columns[5].Name = "a,json"
	}
	rapid.Check(t, func(t *rapid.T) {
		rows := rapid.SliceOfN(rapid.Custom(drawRow), 1, 20).Draw(t, "rows")
		path := filepath.Join(dir, "rows."+string(f))
		WriteRows(ctx, t, path, columns, rows)
		compare(ctx, t, path, f, rows, columns)
	})
}

// compare reads a file back and expects the rows in it.
func compare(ctx context.Context, t *rapid.T, path string, f records.Format, rows [][]any, columns []records.Column) {
	r, err := records.Open(ctx, path, records.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }() // only read
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

func noRows(ctx context.Context, t *testing.T, f records.Format) {
	path := filepath.Join(t.TempDir(), "sub", "folder", "none."+string(f))
	WriteRows(ctx, t, path, []records.Column{{Name: "a"}}, nil)
	want := map[records.Format]string{records.CSV: "a\n", records.TSV: "a\n", records.JSON: "[]\n", records.JSONL: ""}
	got, err := os.ReadFile(path)
	if text, isText := want[f]; err != nil || isText && string(got) != text {
		t.Errorf("%q, %v", got, err)
	}
	if n, err := records.Count(ctx, path, records.Options{}); f == records.Parquet && (n != 0 || err != nil) {
		t.Errorf("%d rows, %v", n, err)
	}
}

// compressed: files are written and read packed, and their content, not their name, tells how.
func compressed(ctx context.Context, t *testing.T, f records.Format) {
	for _, ending := range []string{".gz", ".zst", ".ZST", ".zstd"} {
		path := filepath.Join(t.TempDir(), "rows."+string(f)+ending)
		ThreeRows(ctx, t, path)
		if got, err := Values(ctx, t, path); err != nil || got != "007=0 ö=1 =2 " {
			t.Errorf("%s%s: %q, %v", f, ending, got, err)
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		magic := "\x28\xb5\x2f\xfd"
		if ending == ".gz" {
			magic = "\x1f\x8b"
		}
		if !strings.HasPrefix(string(raw), magic) {
			t.Errorf("%s%s is not packed", f, ending)
		}
		// The name has no extension of a compression: the content decides.
		plain := filepath.Join(t.TempDir(), "rows."+string(f))
		if err := os.WriteFile(plain, raw, 0o600); err != nil { //nolint:gosec // a folder of the test
			t.Fatal(err)
		}
		if got, err := Values(ctx, t, plain); err != nil || got != "007=0 ö=1 =2 " {
			t.Errorf("%s without %s: %q, %v", f, ending, got, err)
		}
	}
}

// ThreeRows writes three records to a file of that name.
func ThreeRows(ctx context.Context, t *testing.T, path string) {
	t.Helper()
	w, err := records.Create(ctx, path, []records.Column{{Name: "no"}, {Name: "n", Kind: records.Int}})
	if err != nil {
		t.Fatal(err)
	}
	for i, no := range []string{"007", "ö", ""} {
		if err := w.Write(no, int64(i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// Values returns the records of ThreeRows as a text.
func Values(ctx context.Context, t *testing.T, path string) (string, error) {
	t.Helper()
	r, err := records.Open(ctx, path, records.Options{})
	if err != nil {
		return "", err
	}
	defer func() { _ = r.Close() }() // only read
	var b strings.Builder
	for rec, err := range r.All() {
		if err != nil {
			return b.String(), err
		}
		no, _ := rec.Get("no")
		n, _ := rec.Get("n")
		fmt.Fprintf(&b, "%v=%v ", no, n)
	}
	return b.String(), nil
}
