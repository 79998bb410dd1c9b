package parquet_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	pq "github.com/parquet-go/parquet-go"

	"github.com/qtype-dev/qtype/distribution/parquet"
	"github.com/qtype-dev/qtype/internal/records"
	"github.com/qtype-dev/qtype/internal/records/recordstest"
	"github.com/qtype-dev/qtype/spec/value"
)

// with returns the context of a program that has the format.
func with(t testing.TB) context.Context {
	return records.WithCodecs(t.Context(), records.Codecs{records.Parquet: parquet.Codec()})
}

func TestFormat(t *testing.T) { recordstest.Run(with(t), t, records.Parquet) }

func BenchmarkFormat(b *testing.B) { recordstest.Benchmark(with(b), b, records.Parquet) }

// A file at a server is copied, because it is read from its end.
func TestRemote(t *testing.T) {
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary) // only for this test
	folder := t.TempDir()
	server := httptest.NewServer(http.FileServer(http.Dir(folder)))
	defer server.Close()
	for _, name := range []string{"rows.parquet", "rows.parquet.zst"} {
		recordstest.ThreeRows(with(t), t, filepath.Join(folder, name))
		if got, err := recordstest.Values(with(t), t, server.URL+"/"+name); err != nil || got != "007=0 ö=1 =2 " {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if left, err := os.ReadDir(temporary); err != nil || len(left) > 0 {
		t.Errorf("temporary files are left: %v, %v", left, err)
	}
}

func TestCreate_BadName(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out.parquet")
	_, err := records.Create(with(t), path, []records.Column{{Name: "a,b"}})
	if want := path + `: a Parquet file cannot have a column named "a,b"`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
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
	err := pq.WriteFile(path, []order{
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
	r, err := records.Open(with(t), path, records.Options{})
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
	w, err := records.Create(with(t), path, recordstest.SixColumns[:5])
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
		_ = recordstest.Read(with(t), t, path, records.Options{})
	}
	for _, bad := range [][]byte{good[:len(good)/2], []byte("PAR1" + strings.Repeat("x", 100) + "PAR1")} {
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		if got := recordstest.Read(with(t), t, path, records.Options{}); len(got) != 1 || got[0] != "a.parquet: is damaged or not a complete Parquet file" {
			t.Errorf("got %q", got)
		}
	}
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
		recordstest.WriteRows(with(t), t, path, []records.Column{recordstest.Typed(t, "at", "datetime?")}, rows)
		r, err := records.Open(with(t), path, records.Options{})
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
	w, err := records.Create(with(t), filepath.Join(t.TempDir(), "x.parquet"), []records.Column{recordstest.Typed(t, "at", "datetime")})
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

// TestReadParquet_OddTables reads files that pyarrow has written.
func TestReadParquet_OddTables(t *testing.T) {
	for name, want := range map[string]string{
		"no_rows":     "",
		"no_columns":  "no_columns.parquet: has no columns",
		"same_names":  `same_names.parquet: has two columns with the name "q"`,
		"damaged_lz4": "damaged_lz4.parquet: is damaged or not a complete Parquet file",
	} {
		if got := strings.Join(recordstest.Read(with(t), t, filepath.Join("testdata", name+".parquet"), records.Options{}), "\n"); strings.TrimPrefix(got, "testdata/") != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

// TestReadParquet_LZ4 reads pages of both versions, with and without a dictionary, that pyarrow has
// compressed with LZ4: multiples of the cubes of the numbers below 1200, without each ninth one, which hardly get shorter.
func TestReadParquet_LZ4(t *testing.T) {
	for _, name := range []string{"lz4", "lz4v2"} {
		var want []string
		for i := range 1200 {
			if i%9 == 0 {
				want = append(want, "0: n=<nil>")
				continue
			}
			want = append(want, fmt.Sprintf("0: n=%d", i*i*i*99991))
		}
		if diff := cmp.Diff(want, recordstest.Read(with(t), t, filepath.Join("testdata", name+".parquet"), records.Options{})); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
