package recordstest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/qtype-dev/qtype/internal/records"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
)

// Typed returns the column of a type expression.
func Typed(t testing.TB, name, expression string, custom ...*spec.CustomType) records.Column {
	t.Helper()
	typ, err := spec.ParseType(expression)
	if err != nil {
		t.Fatal(err)
	}
	at := &typ
	for at.Elem != nil {
		at = at.Elem
	}
	for _, c := range custom {
		if at.Name == c.ID {
			at.Custom = c
		}
	}
	return records.ColumnOf(&spec.Variable{ID: name, Type: typ})
}

// OrderType is a record type with a list and a record inside.
func OrderType(t testing.TB) *spec.CustomType {
	t.Helper()
	line := &spec.CustomType{ID: "Line", Properties: spec.Properties{
		{Name: "sku", Type: Typed(t, "", "text").Type}, {Name: "price", Type: Typed(t, "", "float?").Type}}}
	return &spec.CustomType{ID: "Order", Properties: spec.Properties{
		{Name: "no", Type: Typed(t, "", "int").Type},
		{Name: "due", Type: Typed(t, "", "date?").Type},
		{Name: "lines", Type: Typed(t, "", "list[Line]", line).Type},
	}}
}

// drawTyped draws a value of a type.
func drawTyped(t *rapid.T, typ spec.Type, name string) any {
	if typ.Optional && rapid.IntRange(0, 3).Draw(t, name+" null") == 0 {
		return nil
	}
	if typ.Elem != nil {
		list := make([]any, rapid.IntRange(0, 3).Draw(t, name+" length"))
		for i := range list {
			list[i] = drawTyped(t, *typ.Elem, fmt.Sprintf("%s[%d]", name, i))
		}
		return list
	}
	if fields := value.Members(typ); fields != nil {
		var all []value.Field
		for _, f := range fields {
			all = append(all, value.Field{Name: f.Name, Value: drawTyped(t, f.Type, name+"."+f.Name)})
		}
		return value.NewRecord(typ.Name, all...)
	}
	seconds := rapid.Int64Range(-60000000000, 250000000000)
	switch typ.Name {
	case "map":
		return value.NewRecord("", value.Field{Name: "k", Value: rapid.String().Draw(t, name)})
	case "int":
		return rapid.Int64().Draw(t, name)
	case "float":
		return rapid.OneOf(rapid.Float64(), rapid.SampledFrom([]float64{math.NaN(), math.Inf(1), math.Inf(-1), 1e300})).Draw(t, name)
	case "boolean":
		return rapid.Bool().Draw(t, name)
	case "bytes":
		return rapid.OneOf(rapid.SliceOf(rapid.Byte()),
			rapid.SampledFrom([][]byte{{}, []byte("text"), []byte(` {"base64":"AP8="}`), []byte("data:,x"), []byte("[1]"), {0xff}})).Draw(t, name)
	case "date":
		return value.DateTime{Time: time.Unix(seconds.Draw(t, name), 0).UTC()}.Date()
	case "datetime":
		return value.DateTime{Time: time.Unix(seconds.Draw(t, name), rapid.Int64Range(0, 999999).Draw(t, name+" µs")*1000).UTC(), Zoned: true}
	case "time":
		return value.Time(time.Duration(rapid.Int64Range(0, 86399999999).Draw(t, name)) * time.Microsecond)
	}
	return rapid.StringMatching(`[a-zäß"',\[\{\n ]{1,8}`).Draw(t, name)
}

// typedRoundTrip: a format returns the values that were written, once they are read with their types.
func typedRoundTrip(ctx context.Context, t *testing.T, f records.Format) {
	testkit.SkipWithRace(t)
	columns := []records.Column{Typed(t, "text", "text"), Typed(t, "int", "int?"), Typed(t, "float", "float?"), Typed(t, "flag", "boolean?"),
		Typed(t, "raw", "bytes"), Typed(t, "day", "date?"), Typed(t, "at", "datetime?"), Typed(t, "clock", "time?"),
		Typed(t, "numbers", "list[int?]?"), Typed(t, "matrix", "list[list[float]]"), Typed(t, "days", "list[date]"),
		Typed(t, "order", "Order?", OrderType(t)), Typed(t, "orders", "list[Order]", OrderType(t)), Typed(t, "vector", "Embedding?")}
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		var rows [][]any
		for range rapid.IntRange(1, 5).Draw(t, "rows") {
			var row []any
			for _, c := range columns {
				row = append(row, drawTyped(t, c.Type, c.Name))
			}
			rows = append(rows, row)
		}
		path := filepath.Join(dir, "rows."+string(f))
		WriteRows(ctx, t, path, columns, rows)
		checkRows(ctx, t, path, columns, rows)
	})
}

// WriteRows writes a file.
func WriteRows(ctx context.Context, t rapid.TB, path string, columns []records.Column, rows [][]any) {
	t.Helper()
	w, err := records.Create(ctx, path, columns)
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
}

// checkRows reads a file with the types of its columns and compares the values.
func checkRows(ctx context.Context, t rapid.TB, path string, columns []records.Column, rows [][]any) {
	t.Helper()
	r, err := records.Open(ctx, path, records.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }() // only read
	for number, row := range rows {
		rec, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		for i, c := range columns {
			raw := rec.Values[i]
			if text, ok := raw.(string); ok && r.Format().Cells() {
				raw = value.ParseCell(text)
			}
			got, err := value.Coerce(c.Type, raw)
			if err != nil {
				t.Fatalf("row %d, %s: %v", number, c.Name, err)
			}
			if !sameValue(got, row[i]) {
				t.Fatalf("row %d, %s: got %s, want %s", number, c.Name, value.JSON(got), value.JSON(row[i]))
			}
		}
	}
	if _, err := r.Next(); !errors.Is(err, io.EOF) {
		t.Fatalf("more rows: %v", err)
	}
}

// sameValue compares values; NaN equals NaN, and a missing map an empty one.
func sameValue(a, b any) bool {
	return bytes.Equal(bytes.ReplaceAll(value.JSON(a), []byte("{}"), []byte("null")), bytes.ReplaceAll(value.JSON(b), []byte("{}"), []byte("null")))
}

// Read returns every record as "line: name=value name=value", and errors as their text.
func Read(ctx context.Context, t testing.TB, path string, opts records.Options) []string {
	t.Helper()
	r, err := records.Open(ctx, path, opts)
	if err != nil {
		return []string{strings.ReplaceAll(err.Error(), filepath.Dir(path)+"/", "")}
	}
	defer func() { _ = r.Close() }() // only read
	var got []string
	for rec, err := range r.All() {
		if err != nil {
			got = append(got, strings.ReplaceAll(err.Error(), filepath.Dir(path)+"/", ""))
			continue
		}
		var parts []string
		for i, c := range rec.Columns {
			if v := rec.Values[i]; isNested(v) {
				parts = append(parts, fmt.Sprintf("%s=%s", c, value.JSON(v)))
				continue
			}
			parts = append(parts, fmt.Sprintf("%s=%#v", c, rec.Values[i]))
		}
		got = append(got, fmt.Sprintf("%d: %s", rec.Line, strings.Join(parts, " ")))
	}
	return got
}

// isNested reports whether v is a list or an object of a JSON file.
func isNested(v any) bool {
	switch v.(type) {
	case []any, *value.Record:
		return true
	}
	return false
}
