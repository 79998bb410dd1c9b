package records_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/records"
)

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
			r, err := records.OpenStream(t.Context(), in, "standard input", records.Options{})
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
		r, err := records.OpenStream(t.Context(), strings.NewReader(text), "standard input", records.Options{})
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
