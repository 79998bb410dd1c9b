package mcp

import (
	"bufio"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// TestMessageReader: messages of any number pass, one that is too long does not.
func TestMessageReader(t *testing.T) {
	const limit = 64 << 10
	short := strings.Repeat(`{"a":"`+strings.Repeat("a", limit-9)+"\"}\n", 20)
	for name, wrap := range map[string]func(io.Reader) io.Reader{"whole": func(r io.Reader) io.Reader { return r }, "half": iotest.HalfReader} {
		in := bufio.NewReaderSize(newMessageReader(wrap(strings.NewReader(short)), limit, nil), 100)
		if got, err := io.ReadAll(in); err != nil || string(got) != short {
			t.Errorf("%s: %d of %d bytes, %v", name, len(got), len(short), err)
		}
	}
	endless := newMessageReader(io.MultiReader(strings.NewReader("{}\n"), endlessText{}), limit, func([]byte) {})
	if n, err := io.Copy(io.Discard, endless); err == nil || n > 2*limit {
		t.Errorf("%d bytes of an endless message: %v", n, err)
	}
}

// TestMessageReader_Stray: what programs print between messages is skipped, before a message on the
// same line too.
func TestMessageReader_Stray(t *testing.T) {
	const printed = "Starting ...\n\n{\"id\":1}\r\n{'a': 1}\nwith {\"no\" end\nno line end {\"id\":2}\n[{\"id\":3}]\n{\"id\":4}"
	var stray []string
	r := newMessageReader(iotest.OneByteReader(strings.NewReader(printed)), 100, func(line []byte) { stray = append(stray, strings.TrimSpace(string(line))) })
	got, err := io.ReadAll(r)
	if want := "{\"id\":1}\r\n{\"id\":2}\n[{\"id\":3}]\n{\"id\":4}"; err != nil || string(got) != want {
		t.Errorf("got %q, %v", got, err)
	}
	if want := "Starting ...;{'a': 1};with {\"no\" end;no line end"; strings.Join(stray, ";") != want {
		t.Errorf("skipped %q", stray)
	}
}

// endlessText is a message without an end.
type endlessText struct{}

func (endlessText) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'a'
	}
	return len(p), nil
}

// TestCollect_Endless has a server that always has a next page.
func TestCollect_Endless(t *testing.T) {
	endless := func(yield func(int, error) bool) {
		for i := 0; yield(i, nil); {
			i++
		}
	}
	if all, err := collect(endless); err == nil || !strings.Contains(err.Error(), "lists more than 10000 items") || all != nil {
		t.Errorf("%d items, %v", len(all), err)
	}
	some := func(yield func(int, error) bool) { _ = yield(1, nil) && yield(2, nil) }
	if all, err := collect(some); err != nil || len(all) != 2 {
		t.Errorf("%v, %v", all, err)
	}
}
