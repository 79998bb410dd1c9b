package parquet_test

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/qtype-dev/qtype/internal/records"
	"github.com/qtype-dev/qtype/internal/records/recordstest"
	"github.com/qtype-dev/qtype/internal/servertest"
	"github.com/qtype-dev/qtype/spec/value"
)

// tablesScript reads and writes files with pyarrow, DuckDB and polars.
var tablesScript = filepath.Join("testdata", "tables.py")

// Libraries of Python read the types and values of a file that is written here.
func TestParquet_ReadByPython(t *testing.T) {
	columns := []records.Column{recordstest.Typed(t, "id", "int"), recordstest.Typed(t, "day", "date?"), recordstest.Typed(t, "at", "datetime?"), recordstest.Typed(t, "local", "datetime?"),
		recordstest.Typed(t, "clock", "time?"), recordstest.Typed(t, "numbers", "list[int?]?"), recordstest.Typed(t, "order", "Order?", recordstest.OrderType(t)),
		recordstest.Typed(t, "vector", "Embedding?"), recordstest.Typed(t, "raw", "bytes?"), recordstest.Typed(t, "ratio", "float?")}
	at := time.Date(2024, 2, 29, 12, 30, 5, 6000, time.UTC)
	line := value.NewRecord("Line", value.Field{Name: "sku", Value: "a"}, value.Field{Name: "price", Value: 1.5})
	order := value.NewRecord("Order", value.Field{Name: "no", Value: int64(7)}, value.Field{Name: "due", Value: value.Date{Year: 1, Month: 1, Day: 1}},
		value.Field{Name: "lines", Value: []any{line, line}})
	embedding := value.NewRecord("Embedding", value.Field{Name: "vector", Value: []any{0.5, 0.25, 1.0}}, value.Field{Name: "content", Value: "x"})
	path := filepath.Join(t.TempDir(), "typed.parquet")
	recordstest.WriteRows(with(t), t, path, columns, [][]any{
		{int64(1), value.Date{Year: 2024, Month: 2, Day: 29}, value.DateTime{Time: at, Zoned: true}, value.DateTime{Time: at},
			value.Time(12*time.Hour + 1000), []any{int64(1), nil}, order, embedding, []byte{0, 255}, 0.5},
		{int64(2), nil, nil, nil, nil, []any{}, nil, nil, nil, nil},
	})
	var got struct {
		Types                   map[string]string
		Pyarrow, Polars, Duckdb []map[string]any
	}
	if err := json.Unmarshal(servertest.Tables(t, tablesScript, "read", path), &got); err != nil {
		t.Fatal(err)
	}
	types := map[string]string{"id": "int64", "day": "date32[day]", "at": "timestamp[us, tz=UTC]", "local": "timestamp[us]", "clock": "time64[us]",
		"numbers": "list<element: int64>", "raw": "binary", "ratio": "double",
		"order":  "struct<no: int64, due: date32[day], lines: list<element: struct<sku: string, price: double>>>",
		"vector": "struct<vector: fixed_size_list<element: double>[3], content: extension<arrow.json>, metadata: extension<arrow.json>>"}
	if diff := cmp.Diff(types, got.Types); diff != "" {
		t.Errorf("types (-want +got):\n%s", diff)
	}
	lines := []any{map[string]any{"sku": "a", "price": 1.5}, map[string]any{"sku": "a", "price": 1.5}}
	want := map[string]any{"id": 1.0, "day": "2024-02-29", "at": "2024-02-29T12:30:05.000006+00:00", "local": "2024-02-29T12:30:05.000006",
		"clock": "12:00:00.000001", "numbers": []any{1.0, nil}, "raw": "00ff", "ratio": 0.5,
		"order":  map[string]any{"no": 7.0, "due": "0001-01-01", "lines": lines},
		"vector": map[string]any{"vector": []any{0.5, 0.25, 1.0}, "content": `"x"`, "metadata": nil}}
	null := map[string]any{"id": 2.0, "numbers": []any{}}
	for name := range maps.Keys(want) {
		if _, ok := null[name]; !ok {
			null[name] = nil
		}
	}
	for library, rows := range map[string][]map[string]any{"pyarrow": got.Pyarrow, "polars": got.Polars, "duckdb": got.Duckdb} {
		if diff := cmp.Diff([]map[string]any{want, null}, rows); diff != "" {
			t.Errorf("%s (-want +got):\n%s", library, diff)
		}
	}
}

// Every value of a file that pyarrow writes is read exactly.
func TestParquet_WrittenByPython(t *testing.T) {
	path := filepath.Join(t.TempDir(), "foreign.parquet")
	servertest.Tables(t, tablesScript, "write", path)
	r, err := records.Open(with(t), path, records.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	want := map[string][2]string{
		"price": {`12345678901234567890.123456789`, `null`}, "wide": {`-` + strings.Repeat("9", 60) + `.5`, `0.0`},
		"day": {`"2024-02-29"`, `"0001-01-01"`}, "before": {`"-0001-12-31"`, `"-0043-08-22"`},
		"clock": {`"12:30:05.000006"`, `null`}, "local": {`"2024-02-29T12:30:00.000001"`, `null`}, "zoned": {`"2024-02-29T12:30:00.000001Z"`, `null`},
		"numbers": {`[1,null,3]`, `[]`}, "vector": {`[0.5,0.25]`, `[1,2]`}, "order": {`{"lines":[{"sku":"a"}],"no":1}`, `null`},
		"map": {`{"k":1}`, `{}`}, "raw": {`{"base64":"AP8="}`, `""`}, "word": {`"x"`, `"y"`}, "big": {`18446744073709551615`, `0`},
		"half": {`1.5`, `null`}, "ratio": {`"NaN"`, `"-Infinity"`}, "none": {`null`, `null`},
		"took": {`"49:30:00.5"`, `null`}, "nanos": {`"-00:00:00.000000001"`, `"01:00:00"`}, "days": {`[{"late":"-25:01:01"}]`, `[]`}, "most": {`"-2562047788015215:30:07"`, `"2562047788015215:30:07"`},
	}
	if names := slices.Sorted(maps.Keys(want)); len(names) != len(r.Columns()) {
		t.Fatalf("columns %v, want %v", r.Columns(), names)
	}
	number := 0
	for rec, err := range r.All() {
		if err != nil {
			t.Fatal(err)
		}
		for i, name := range rec.Columns {
			if got := string(value.JSON(rec.Values[i])); got != want[name][number] {
				t.Errorf("row %d, %s: got %s, want %s", number, name, got, want[name][number])
			}
		}
		number++
	}
	if number != 2 {
		t.Errorf("%d rows", number)
	}
}
