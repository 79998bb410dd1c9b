package terminal_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/qtype-dev/qtype/internal/terminal"
)

func TestText(t *testing.T) {
	for want, got := range map[string]string{
		"a b c":            terminal.Clean(" a\n\tb  c "),
		"\uFFFD[31mred":    terminal.Clean("\x1b[31mred"),
		"a\uFFFDb":         terminal.Clean("a\u202eb"),
		"a\n\tb\uFFFD":     terminal.Printable("a\n\tb\x07"),
		"ab   ":            terminal.Pad("ab", 5),
		"漢 ":               terminal.Pad("漢", 3),
		"漢…":               terminal.Pad("漢字漢字", 3),
		"   ab":            terminal.PadLeft("ab", 5),
		"plain, as it was": terminal.Clean("plain, as it was"),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestEscape writes texts in all divisions into two parts, also within a character.
func TestEscape(t *testing.T) {
	const text = "{\"a\": \"h\u00e9 \u6f22\u009b31m \u202e\x7f\ufffd\x9b\"}\t\x1b[31m\r\n\rend\n"
	for _, c := range []struct {
		escape func(io.Writer) io.Writer
		want   string
	}{
		{terminal.Escape, "{\"a\": \"h\u00e9 \u6f22\\u009b31m \\u202e\\u007f\ufffd\\ufffd\"}\t\x1b[31m\r\n\rend\n"},
		{terminal.EscapeAll, "{\"a\": \"h\u00e9 \u6f22\\u009b31m \\u202e\\u007f\ufffd\\ufffd\"}\t\\u001b[31m\r\n\\u000dend\n"},
	} {
		for i := range len(text) {
			if text[i] == '\n' && text[i-1] == '\r' {
				continue // a line end is written at once
			}
			var out strings.Builder
			w := c.escape(&out)
			for _, part := range []string{text[:i], text[i:]} {
				if n, err := io.WriteString(w, part); n != len(part) || err != nil {
					t.Fatalf("%d bytes of %d: %v", n, len(part), err)
				}
			}
			if diff := cmp.Diff(c.want, out.String()); diff != "" {
				t.Fatalf("divided at %d: %s", i, diff)
			}
		}
	}
}

func TestTable(t *testing.T) {
	columns := []terminal.Column{{Name: "row", Right: true, Min: 4}, {Name: "name"}, {Name: "text"}}
	var out strings.Builder
	table := terminal.NewTable(30, func() io.Writer { return &out }, columns...)
	for _, cells := range [][]string{{"1", "Ada", "a text that is cut"}, {"2", "failed: a text across two columns"}} {
		if err := table.Row(cells); err != nil {
			t.Fatal(err)
		}
	}
	if out.Len() > 0 {
		t.Errorf("written before the widths are known: %q", out.String())
	}
	if err := table.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := table.Row([]string{"10000", "x", "y"}); err != nil {
		t.Fatal(err)
	}
	want := `  row  name  text
    1  Ada   a text that is c…
    2  failed: a text across …
 100…  x     y
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}

func TestTable_ManyRowsAreWrittenAtOnce(t *testing.T) {
	var out strings.Builder
	table := terminal.NewTable(80, func() io.Writer { return &out }, terminal.Column{Name: "n"})
	for range 24 {
		if err := table.Row([]string{"x"}); err != nil {
			t.Fatal(err)
		}
	}
	if lines := strings.Count(out.String(), "\n"); lines != 25 {
		t.Errorf("%d lines after 24 rows, want the head and all rows", lines)
	}
}

func TestLines(t *testing.T) {
	in, to := io.Pipe()
	lines := terminal.NewLines(in)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := lines.Next(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("a canceled read returned %v", err)
	}
	go func() {
		_, _ = io.WriteString(to, "one\r\ntwo")
		_ = to.Close()
	}()
	for _, want := range []string{"one", "two"} {
		if got, err := lines.Next(t.Context()); got != want || err != nil {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
	}
	if _, err := lines.Next(t.Context()); !errors.Is(err, io.EOF) {
		t.Errorf("after the last line: %v", err)
	}
	release, err := lines.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lines.Acquire(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("acquired twice: %v", err)
	}
	release()
	if _, err := lines.Acquire(t.Context()); err != nil {
		t.Errorf("after the release: %v", err)
	}
}

func TestStreams(t *testing.T) {
	var out, errs strings.Builder
	s := terminal.Streams{Out: &out, Err: &errs}
	path := filepath.Join(t.TempDir(), "file")
	if err := errors.Join(s.WriteTo("", "text"), s.WriteTo(path, "file")); err != nil {
		t.Fatal(err)
	}
	s.Logger("warning: ")("a\nb")
	if got, _ := os.ReadFile(path); out.String() != "text" || string(got) != "file" || errs.String() != "warning: a b\n" {
		t.Errorf("out %q, file %q, err %q", out.String(), got, errs.String())
	}
	err := s.WriteTo(filepath.Join(path, "below"), "x")
	if err == nil || err.Error() != path+"/below: cannot be written: not a directory" {
		t.Errorf("got %v", err)
	}
	_, err = os.Open(filepath.Join(t.TempDir(), "none"))
	if got := terminal.Cause(err).Error(); got != "no such file" {
		t.Errorf("got %q", got)
	}
}
