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
	short := strings.Repeat(strings.Repeat("a", limit-1)+"\n", 20)
	for name, wrap := range map[string]func(io.Reader) io.Reader{"whole": func(r io.Reader) io.Reader { return r }, "half": iotest.HalfReader} {
		in := bufio.NewReaderSize(&messageReader{Reader: wrap(strings.NewReader(short)), max: limit}, 100)
		if got, err := io.ReadAll(in); err != nil || string(got) != short {
			t.Errorf("%s: %d of %d bytes, %v", name, len(got), len(short), err)
		}
	}
	endless := &messageReader{Reader: io.MultiReader(strings.NewReader("{}\n"), endlessText{}), max: limit}
	if n, err := io.Copy(io.Discard, endless); err == nil || n > 2*limit {
		t.Errorf("%d bytes of an endless message: %v", n, err)
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
