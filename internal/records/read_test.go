package records_test

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/qtype-dev/qtype/internal/records"
	"github.com/qtype-dev/qtype/internal/records/recordstest"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/spec/value"
)

// read returns every record of a file as recordstest.Read does.
func read(t testing.TB, path string) []string { return readAs(t, path, records.Options{}) }

func readAs(t testing.TB, path string, opts records.Options) []string {
	t.Helper()
	return recordstest.Read(t.Context(), t, path, opts)
}

func TestReadText(t *testing.T) {
	tests := map[string]struct {
		file string
		text string
		want []string
	}{
		"csv": {"a.csv", "session,message\nc-1,Hello\nc-2,\"a, \"\"b\"\"\"\n",
			[]string{`2: session="c-1" message="Hello"`, `3: session="c-2" message="a, \"b\""`}},
		"line break in quotes": {"a.csv", "a,b\n1,\"x\r\ny\"\n2,z\n",
			[]string{`2: a="1" b="x\r\ny"`, `4: a="2" b="z"`}},
		"mark, CRLF, blank lines, no last line end": {"a.csv", "\xef\xbb\xbfa,b\r\n\r\n1,2\r\n\r\n3,4",
			[]string{`3: a="1" b="2"`, `5: a="3" b="4"`}},
		"quoted header after a mark": {"a.csv", "\xef\xbb\xbf\"a\",b\n1,2\n", []string{`2: a="1" b="2"`}},
		"numbers stay text":          {"a.csv", "a\n007\n\"\"\n", []string{`2: a="007"`, `3: a=""`}},
		"a quote inside a field":     {"a.csv", "a,b\n5\" pipe,x\n", []string{`2: a="5\" pipe" b="x"`}},
		"semicolons":                 {"a.csv", "a;b\n1,5;2\n", []string{`2: a="1,5" b="2"`}},
		"old line ends":              {"a.csv", "a,b\r1,2\r3,4\r", []string{`2: a="1" b="2"`, `3: a="3" b="4"`}},
		"tsv":                        {"a.tsv", "a\tb\n1,5\t2\n", []string{`2: a="1,5" b="2"`}},
		"header only":                {"a.csv", "a,b\n", nil},
		"ragged rows": {"a.csv", "a,b\n1\n2,3\n4,5,6\n7,8\n",
			[]string{"a.csv:2: the row has 1 field, the header has 2", `3: a="2" b="3"`,
				"a.csv:4: the row has 3 fields, the header has 2", `5: a="7" b="8"`}},
		"text after a quote": {"a.csv", "a,b\n\"x\"y,1\n2,3\n",
			[]string{"a.csv:2: field 1: text after the closing quote", `3: a="2" b="3"`}},
		"open quote": {"a.csv", "a,b\n1,2\n3,\"x\n4,5\n",
			[]string{`2: a="1" b="2"`, "a.csv:3: unclosed quote; the table option quote=none reads quotes as text"}},
		"not UTF-8": {"a.csv", "a,b\nM\xfcller,1\nx,2\n",
			[]string{`a.csv:2: column "a" is not UTF-8 text; the table option encoding names its charset, such as encoding=windows-1252`, `3: a="x" b="2"`}},
		"column twice": {"a.csv", "a,b,a\n1,2,3\n", []string{`a.csv:1: duplicate column "a" in the header`}},
		"json array": {"a.json", "[\n {\"b\": 1.50, \"a\": null},\n {\"a\": [1, {\"x\": true}]}\n]",
			[]string{`0: b="1.50" a=<nil>`, `0: a=[1,{"x":true}]`}},
		"big numbers":       {"a.json", `[{"n": 12345678901234567890123}]`, []string{`0: n="12345678901234567890123"`}},
		"empty array":       {"a.json", "[]", nil},
		"one object":        {"a.json", `{"message": "hi", "n": 2}`, []string{`0: message="hi" n="2"`}},
		"object of columns": {"a.json", `{"a": [1, 2], "b": ["x", null]}`, []string{`0: a=1 b="x"`, `0: a=2 b=<nil>`}},
		"columns differ":    {"a.json", `{"a": [1, 2], "b": [1]}`, []string{"a.json: the columns have different lengths"}},
		"objects in a row":  {"a.json", "{\"a\": [1]}\n{\"a\": 2}\n", []string{`0: a=[1]`, `0: a="2"`}},
		"an element no object": {"a.json", `[{"a":1}, 5, "x", {"a":2}]`,
			[]string{`0: a="1"`, "a.json: row 2: the row is a number, not an object", "a.json: row 3: the row is a string, not an object", `0: a="2"`}},
		"broken array": {"a.json", "[{\"a\":1},\n{\"a\":2},\n{\"a\" 3}]",
			[]string{`0: a="1"`, `0: a="2"`, "a.json:3: not valid JSON: invalid character '3' after object key"}},
		"array cut off":      {"a.json", "[{\"a\":1},\n{\"a\":", []string{`0: a="1"`, "a.json:2: the JSON ends before it is complete"}},
		"array not closed":   {"a.json", "[{\"a\":1}\n", []string{`0: a="1"`, "a.json:2: the JSON ends before it is complete"}},
		"more after array":   {"a.json", "[{\"a\":1}]\n7", []string{`0: a="1"`, "a.json:2: unexpected text after the end of the array"}},
		"scalar":             {"a.json", `"text"`, []string{"a.json: does not contain JSON records: an array of objects is expected"}},
		"jsonl":              {"a.jsonl", "{\"a\":1}\n\n  {\"a\":\"x\"}  \r\n{\"b\":2}", []string{`1: a="1"`, `3: a="x"`, `4: b="2"`}},
		"jsonl, bad lines":   {"a.jsonl", "{\"a\":1}\n{\"a\":\n[1]\n{\"a\":2}\n", []string{`1: a="1"`, "a.jsonl:2: the JSON ends before it is complete", "a.jsonl:3: the row is a list, not an object", `4: a="2"`}},
		"array named jsonl":  {"a.jsonl", "[{\"a\":1},\n{\"a\":2}]", []string{`0: a="1"`, `0: a="2"`}},
		"key twice":          {"a.jsonl", `{"a":1,"b":2,"a":3}`, []string{`1: a="3" b="2"`}},
		"no extension":       {"messages", "a,b\n1,2\n", []string{`2: a="1" b="2"`}},
		"json, no extension": {"messages.txt", `[{"a":"b"}]`, []string{`0: a="b"`}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, read(t, testkit.WriteFile(t, tc.file, tc.text))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestOpen_Errors(t *testing.T) {
	tests := map[string]struct{ file, text, want string }{
		"empty":             {"a.csv", "", "a.csv: the file is empty"},
		"empty jsonl":       {"a.jsonl", "\n \n", "a.jsonl: the file is empty"},
		"empty parquet":     {"a.parquet", "", "a.parquet: the file is empty"},
		"binary":            {"a.csv", "a,b\n\x00\x01\x02", "a.csv: contains binary data, not CSV"},
		"binary, no name":   {"a.bin", "\x7fELF\x02\x01\x01\xff\xfe\xfd\xfc\xfb", "a.bin: contains binary data, not CSV, TSV, JSON, JSON lines, Excel or Parquet"},
		"workbook":          {"a.csv", "PK\x03\x04xxxx", "a.csv: is a zip archive or an Excel workbook, not CSV: rename a workbook to .xlsx"},
		"UTF-16":            {"a.csv", "a\x00,\x00b\x00\n\x00", "a.csv: contains binary data, or UTF-16 text, which needs the table option encoding=utf-16le or encoding=utf-16be"},
		"JSON named CSV":    {"a.csv", `[{"a":1}]`, "a.csv: contains JSON, not CSV: rename it to .json or .jsonl"},
		"CSV named JSON":    {"a.json", "a,b\n1,2\n", "a.json: does not contain JSON records: an array of objects is expected"},
		"CSV named Parquet": {"a.parquet", "a,b\n1,2\n", "a.parquet: is not a Parquet file"},
		"Parquet named CSV": {"a.csv", "PAR1xxxxxxx", "a.csv: is a Parquet file, not CSV: rename it to .parquet"},
		"Parquet, a part":   {"a.parquet", "PAR1" + strings.Repeat("x", 100) + "PAR1", "a.parquet: this program has no record format parquet; the distribution has it: go install github.com/qtype-dev/qtype/distribution/cmd/qtype@latest"},
		"broken gzip":       {"a.csv.gz", "\x1f\x8bxxxxxxxxxxxxxxxxxx", "a.csv.gz: is not a valid gzip file"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := read(t, testkit.WriteFile(t, tc.file, tc.text))
			if len(got) != 1 || got[0] != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestOpen_Missing(t *testing.T) {
	dir := t.TempDir()
	for path, want := range map[string]string{
		filepath.Join(dir, "no.csv"): "no such file",
		dir:                          "is a directory, not a file",
	} {
		_, err := records.Open(t.Context(), path, records.Options{})
		var got *records.FileError
		if !errors.As(err, &got) || got.Reason != want || got.Path != path {
			t.Errorf("Open(%s): %v, want %q", path, err, want)
		}
	}
}

func TestOpen_NoPermission(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("the superuser may read everything")
	}
	path := testkit.WriteFile(t, "a.csv", "a\n1\n")
	if err := os.Chmod(path, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := records.Open(t.Context(), path, records.Options{}); err == nil || !strings.HasSuffix(err.Error(), "permission denied") {
		t.Errorf("got %v", err)
	}
}

func TestReadGzip(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.csv.gz")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	z := gzip.NewWriter(f)
	fmt.Fprint(z, "a,b\n1,2\n")
	z.Close()
	f.Close()
	if got := read(t, path); len(got) != 1 || got[0] != `2: a="1" b="2"` {
		t.Errorf("got %q", got)
	}
}

func TestNext_InvalidRecordsAreCounted(t *testing.T) {
	r, err := records.Open(t.Context(), testkit.WriteFile(t, "a.csv", "a,b\n1\n2,3\n"), records.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	rec, err := r.Next()
	if v, ok := rec.Get("a"); err == nil || rec.Number != 1 || v != "1" || !ok {
		t.Errorf("first record: %+v, %v", rec, err)
	}
	rec, err = r.Next()
	if v, ok := rec.Get("c"); err != nil || rec.Number != 2 || ok {
		t.Errorf("second record: %+v, %v, %v", rec, err, v)
	}
}

func TestCount(t *testing.T) {
	n, err := records.Count(t.Context(), testkit.WriteFile(t, "a.csv", "a,b\n1,2\n3\n\"x\ny\",2\n"), records.Options{})
	if n != 3 || err != nil {
		t.Errorf("got %d, %v", n, err)
	}
}

func FuzzText(f *testing.F) {
	for _, seed := range []string{"a,b\n1,\"x\ny\"\n", "a;b\r\n1;2", "[{\"a\":1},{\"b\":[null]}]", "{\"a\":1}\n\n{\"a\":2}", "{\"a\":[1],\"b\":[2]}", "\xef\xbb\xbfa\tb\n"} {
		for i := range byte(4) {
			f.Add(i, seed)
		}
	}
	f.Fuzz(func(t *testing.T, kind byte, text string) {
		format := []records.Format{records.CSV, records.TSV, records.JSON, records.JSONL}[kind%4]
		r, err := records.Open(t.Context(), testkit.WriteFile(t, "f", text), records.Options{Format: format})
		if err != nil {
			oneLine(t, err)
			return
		}
		defer r.Close()
		for rec, err := range r.All() {
			if err != nil {
				oneLine(t, err)
				continue
			}
			if len(rec.Columns) != len(rec.Values) {
				t.Fatalf("%d columns, %d values", len(rec.Columns), len(rec.Values))
			}
			for _, v := range rec.Values {
				if text := value.JSON(v); !json.Valid(text) {
					t.Fatalf("%#v is written as %q", v, text)
				}
			}
		}
	})
}

func oneLine(t *testing.T, err error) {
	t.Helper()
	if strings.ContainsAny(err.Error(), "\n\r") {
		t.Fatalf("the error has several lines: %q", err)
	}
}

// TestCount_LikeReading: Count reads no values, and still counts what a Reader yields.
func TestCount_LikeReading(t *testing.T) {
	for name, text := range map[string]string{
		"a.csv":   "a,b\n1,2\n3\n\n\"x\ny\",2\n\"x\"y,2\nä,\xff\n",
		"a.tsv":   "a\tb\n1\t2\n",
		"a.jsonl": "{\"a\":1}\n\n  \n[1]\n{\"a\":\n{\"a\":2}",
		"a.json":  `[{"a":1}, 5, [1], {"a":2}]`,
		"b.json":  `{"a":1} {"a":2}`,
		"c.json":  `{"a":[1,2],"b":[3,4]}`,
	} {
		path := testkit.WriteFile(t, name, text)
		want, failed := recordstest.Drain(t.Context(), path)
		for n := int64(0); failed != nil; failed = nil { // invalid records do not end the file
			r, err := records.Open(t.Context(), path, records.Options{})
			if err != nil {
				t.Fatal(err)
			}
			for range r.All() {
				n++
			}
			want = int(n)
			_ = r.Close()
		}
		if n, err := records.Count(t.Context(), path, records.Options{}); int(n) != want || err != nil {
			t.Errorf("%s: counted %d, %v, want %d", name, n, err, want)
		}
	}
	if n, err := records.Count(t.Context(), testkit.WriteFile(t, "a.json", `[{"a":1}, {"a":`), records.Options{}); n != 2 || err == nil {
		t.Errorf("an incomplete file: %d, %v", n, err)
	}
}
