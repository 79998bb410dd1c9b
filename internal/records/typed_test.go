package records_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
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

// typed returns the column of a type expression.
func typed(t testing.TB, name, expression string, custom ...*spec.CustomType) records.Column {
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

// orderType is a record type with a list and a record inside.
func orderType(t testing.TB) *spec.CustomType {
	t.Helper()
	line := &spec.CustomType{ID: "Line", Properties: spec.Properties{
		{Name: "sku", Type: typed(t, "", "text").Type}, {Name: "price", Type: typed(t, "", "float?").Type}}}
	return &spec.CustomType{ID: "Order", Properties: spec.Properties{
		{Name: "no", Type: typed(t, "", "int").Type},
		{Name: "due", Type: typed(t, "", "date?").Type},
		{Name: "lines", Type: typed(t, "", "list[Line]", line).Type},
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

// Every format returns the values that were written, once they are read with their types.
func TestTyped_RoundTrip(t *testing.T) {
	testkit.SkipWithRace(t)
	columns := []records.Column{typed(t, "text", "text"), typed(t, "int", "int?"), typed(t, "float", "float?"), typed(t, "flag", "boolean?"),
		typed(t, "raw", "bytes"), typed(t, "day", "date?"), typed(t, "at", "datetime?"), typed(t, "clock", "time?"),
		typed(t, "numbers", "list[int?]?"), typed(t, "matrix", "list[list[float]]"), typed(t, "days", "list[date]"),
		typed(t, "order", "Order?", orderType(t)), typed(t, "orders", "list[Order]", orderType(t)), typed(t, "vector", "Embedding?")}
	for _, f := range records.Formats() {
		t.Run(string(f), func(t *testing.T) {
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
				writeRows(t, path, columns, rows)
				checkRows(t, path, columns, rows)
			})
		})
	}
}

func writeRows(t rapid.TB, path string, columns []records.Column, rows [][]any) {
	t.Helper()
	w, err := records.Create(context.Background(), path, columns)
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
func checkRows(t rapid.TB, path string, columns []records.Column, rows [][]any) {
	t.Helper()
	r, err := records.Open(context.Background(), path, records.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
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

// A column of Parquet has one form of time, which the first rows decide on.
func TestParquet_Times(t *testing.T) {
	local := value.DateTime{Time: time.Date(2024, 2, 29, 12, 30, 0, 0, time.UTC)}
	zoned := value.DateTime{Time: local.Time, Zoned: true}
	exact := value.DateTime{Time: local.Time.Add(1), Zoned: true}
	old := value.DateTime{Time: time.Date(12, 1, 1, 0, 0, 0, 0, time.UTC), Zoned: true}
	for name, c := range map[string]struct {
		values []any
		want   string
	}{
		"zoned":      {[]any{nil, zoned}, "<nil> 2024-02-29T12:30:00Z"},
		"local":      {[]any{local, nil}, "2024-02-29T12:30:00 <nil>"},
		"nanos":      {[]any{zoned, exact}, "2024-02-29T12:30:00Z 2024-02-29T12:30:00.000000001Z"},
		"old":        {[]any{old}, "0012-01-01T00:00:00Z"},
		"mixed":      {[]any{local, zoned}, "2024-02-29T12:30:00 2024-02-29T12:30:00Z"},
		"old, nanos": {[]any{old, exact}, "0012-01-01T00:00:00Z 2024-02-29T12:30:00.000000001Z"},
		"none":       {[]any{nil}, "<nil>"},
	} {
		path := filepath.Join(t.TempDir(), "times.parquet")
		var rows [][]any
		for _, v := range c.values {
			rows = append(rows, []any{v})
		}
		writeRows(t, path, []records.Column{typed(t, "at", "datetime?")}, rows)
		r, err := records.Open(context.Background(), path, records.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for rec, err := range r.All() {
			got = append(got, fmt.Sprint(rec.Values[0]))
			if err != nil {
				t.Error(err)
			}
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		if text := strings.Join(got, " "); text != c.want {
			t.Errorf("%s: got %s, want %s", name, text, c.want)
		}
	}
}

// A time that contradicts the column fails its row alone.
func TestParquet_LateTimes(t *testing.T) {
	local := value.DateTime{Time: time.Date(2024, 2, 29, 12, 30, 0, 0, time.UTC)}
	w, err := records.Create(context.Background(), filepath.Join(t.TempDir(), "x.parquet"), []records.Column{typed(t, "at", "datetime")})
	if err != nil {
		t.Fatal(err)
	}
	for range 1000 {
		if err := w.Write(local); err != nil {
			t.Fatal(err)
		}
	}
	for v, want := range map[value.DateTime]string{
		{Time: local.Time, Zoned: true}: `column "at": 2024-02-29T12:30:00Z does not fit the Parquet column, which has times without a time zone, as the values before it; declare it as text`,
		{Time: local.Time.Add(1)}:       `column "at": 2024-02-29T12:30:00.000000001 does not fit the Parquet column, which has microseconds, as those of the values before it; declare it as text`,
	} {
		var unfit *records.ValueError
		err := w.Write(v)
		if !errors.As(err, &unfit) || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	if err := w.Write(local); err != nil {
		t.Error(err)
	}
	if err := w.Close(); err != nil || w.Rows() != 1001 {
		t.Errorf("%d rows, %v", w.Rows(), err)
	}
}

// Rows of a stream are returned before the next ones arrive.
func TestOpenStream(t *testing.T) {
	for name, lines := range map[string][]string{
		"jsonl": {`{"a":"1"}`, `{"a":"2"}`},
		"csv":   {"a\n1", "2"},
	} {
		in, out, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		opened := make(chan *records.Reader)
		go func() {
			r, err := records.OpenStream(in, "standard input", records.Options{})
			if err != nil {
				t.Error(err)
			}
			opened <- r
		}()
		var r *records.Reader
		for i, line := range lines {
			if _, err := io.WriteString(out, line+"\n"); err != nil {
				t.Fatal(err)
			}
			if r == nil {
				r = <-opened
			}
			rec, err := r.Next() // blocks forever if it waits for more
			if err != nil || fmt.Sprint(rec.Values...) != fmt.Sprint(i+1) {
				t.Errorf("%s: row %d: %v, %v", name, i+1, rec.Values, err)
			}
		}
		_ = out.Close() // a pipe
		if _, err := r.Next(); !errors.Is(err, io.EOF) {
			t.Errorf("%s: at the end: %v", name, err)
		}
		_, _ = r.Close(), in.Close() // only read
	}
}

func TestOpenStream_Formats(t *testing.T) {
	for text, want := range map[string]string{
		"{\"a\":[1,2],\"b\":[3,4]}\n":     "json 2 rows",
		"{\"a\":1}\n{\"a\":2}\n":          "jsonl 2 rows",
		"[{\"a\":1},\n {\"a\":2}]":        "json 2 rows",
		"{\n \"a\": 1\n}\n{\n\"a\": 2}\n": "json 2 rows",
		"a\tb\n1\t2\n":                    "tsv 1 rows",
		"":                                "standard input: the file is empty",
		"\n\n":                            "standard input: the file is empty",
		strings.Repeat("x", 9000) + "\n1": "csv 1 rows",
	} {
		r, err := records.OpenStream(strings.NewReader(text), "standard input", records.Options{})
		var got string
		if err != nil {
			got = err.Error()
		} else {
			n := 0
			for _, err := range r.All() {
				if n++; err != nil {
					t.Error(err)
				}
			}
			got = fmt.Sprintf("%s %d rows", r.Format(), n)
		}
		if got != want {
			t.Errorf("%.40q: got %s, want %s", text, got, want)
		}
	}
}
