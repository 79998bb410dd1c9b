package wire_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/qtype-dev/qtype/internal/model/wire"
	"github.com/qtype-dev/qtype/model/modeltest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestEvents(t *testing.T) {
	long := strings.Repeat("x", 100_000) // longer than the buffer
	tests := map[string]struct {
		text string
		want []string
	}{
		"two":               {"data: a\n\ndata: b\n\n", []string{"a", "b"}},
		"no blank":          {"data:a\n\n", []string{"a"}},
		"one blank only":    {"data:  a\n\n", []string{" a"}},
		"lines join":        {"data: a\ndata\ndata: b\n\n", []string{"a\n\nb"}},
		"others pass":       {":c\nevent: x\nid: 1\nretry: 5\ndata: a\n\n", []string{"a"}},
		"byte order mark":   {"\xef\xbb\xbfdata: a\n\n", []string{"a"}},
		"CRLF":              {"data: a\r\n\r\ndata: b\r\n\r\n", []string{"a", "b"}},
		"blank lines alone": {"\n\n\ndata: a\n\n\n\n", []string{"a"}},
		"cut off":           {"data: a\n\ndata: b\n", []string{"a"}},
		"cut in a line":     {"data: a\n\ndata: b", []string{"a"}},
		"CR":                {"data: a\rdata: b\r\rdata: c\r\r", []string{"a\nb", "c"}},
		"no blank line":     {"data: a\n\ndata: {\"b\":1}\n", []string{"a", `{"b":1}`}},
		"no end of line":    {"data: a\n\ndata: {\"b\":1}", []string{"a", `{"b":1}`}},
		"cut in an object":  {"data: a\n\ndata: {\"b\":", []string{"a"}},
		"long":              {"data: " + long + "\n\n", []string{long}},
		"nothing":           {"", nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			for _, r := range []io.Reader{strings.NewReader(tt.text), iotest.OneByteReader(strings.NewReader(tt.text))} {
				got, err := modeltest.Events(r)
				if d := cmp.Diff(tt.want, got); d != "" || !errors.Is(err, io.EOF) {
					t.Errorf("%v\n%s", err, d)
				}
			}
		})
	}
}

// zeroes is an endless line.
type zeroes struct{}

func (zeroes) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '0'
	}
	return len(p), nil
}

func TestEvents_Limit(t *testing.T) {
	many := io.MultiReader(strings.NewReader("data: "), zeroes{})
	if _, err := modeltest.Events(many); !errors.Is(err, wire.ErrTooLong) {
		t.Errorf("an endless line: %v", err)
	}
	lines := strings.NewReader(strings.Repeat("data: "+strings.Repeat("x", 1<<20)+"\n", 20))
	if _, err := modeltest.Events(lines); !errors.Is(err, wire.ErrTooLong) {
		t.Errorf("endless lines: %v", err)
	}
}

func TestLines(t *testing.T) {
	tests := map[string]struct {
		text string
		want []string
		err  error
	}{
		"two":               {"{\"a\":1}\n{\"b\":2}\n", []string{`{"a":1}`, `{"b":2}`}, io.EOF},
		"CRLF and blanks":   {"{}\r\n\r\n \n{}\n", []string{"{}", "{}"}, io.EOF},
		"last without end":  {"{}\n{\"b\":2}", []string{"{}", `{"b":2}`}, io.EOF},
		"cut off in a line": {"{}\n{\"b\":", []string{"{}"}, io.EOF},
		"nothing":           {"", nil, io.EOF},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			for _, r := range []io.Reader{strings.NewReader(tt.text), iotest.OneByteReader(strings.NewReader(tt.text))} {
				var got []string
				l := wire.NewLines(r)
				line, err := l.Next()
				for ; err == nil; line, err = l.Next() {
					got = append(got, string(line))
				}
				if d := cmp.Diff(tt.want, got); d != "" || !errors.Is(err, tt.err) {
					t.Errorf("%v\n%s", err, d)
				}
			}
		})
	}
}
