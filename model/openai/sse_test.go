package openai

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

func all(r io.Reader) (list []string, err error) {
	for e := newEvents(r); ; {
		data, err := e.next()
		if err != nil {
			return list, err
		}
		list = append(list, string(data))
	}
}

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
		"long":              {"data: " + long + "\n\n", []string{long}},
		"nothing":           {"", nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			for _, r := range []io.Reader{strings.NewReader(tt.text), iotest.OneByteReader(strings.NewReader(tt.text))} {
				got, err := all(r)
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

func TestEndlessEventsAreBounded(t *testing.T) {
	many := io.MultiReader(strings.NewReader("data: "), zeroes{})
	if _, err := all(many); !errors.Is(err, errTooLong) {
		t.Errorf("an endless line: %v", err)
	}
	lines := strings.NewReader(strings.Repeat("data: "+strings.Repeat("x", 1<<20)+"\n", 20))
	if _, err := all(lines); !errors.Is(err, errTooLong) {
		t.Errorf("endless lines: %v", err)
	}
}

// FuzzStream feeds any bytes to the reader of a stream: it never panics, and
// what it reads does not depend on how the bytes arrive.
func FuzzStream(f *testing.F) {
	f.Add([]byte("data: {\"choices\":[{\"delta\":{\"content\":\"a\",\"tool_calls\":[{\"index\":0,\"id\":\"x\",\"function\":{\"name\":\"n\",\"arguments\":\"{\"}}]},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":1}}\n\ndata: [DONE]\n\n"))
	f.Add([]byte(": x\r\nevent: error\r\ndata: {\"error\":{\"message\":\"m\",\"code\":500}}\r\n\r\n"))
	f.Add([]byte("\xef\xbb\xbfdata\ndata:\n\n"))
	f.Fuzz(func(t *testing.T, stream []byte) {
		whole, err := all(bytes.NewReader(stream))
		pieces, err2 := all(iotest.HalfReader(bytes.NewReader(stream)))
		if d := cmp.Diff(whole, pieces); d != "" || !errors.Is(err, err2) {
			t.Errorf("%v, %v\n%s", err, err2, d)
		}
		var a assembler
		said := 0
		for _, data := range whole {
			events, err := a.chunk([]byte(data))
			if err != nil {
				return
			}
			for _, ev := range events {
				said += len(ev.Text)
			}
		}
		if r, err := a.response(); err == nil && len(r.Message.Text()) != said {
			t.Errorf("the answer holds %d bytes of text, the deltas %d", len(r.Message.Text()), said)
		}
	})
}

func BenchmarkStream(b *testing.B) {
	var stream bytes.Buffer
	for range 1000 {
		stream.WriteString("data: {\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"gpt-4o\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\" word\"},\"finish_reason\":null}]}\n\n")
	}
	b.ReportAllocs()
	b.SetBytes(int64(stream.Len()))
	for b.Loop() {
		e, a := newEvents(bytes.NewReader(stream.Bytes())), assembler{}
		for {
			data, err := e.next()
			if err != nil {
				break
			}
			if _, err := a.chunk(data); err != nil {
				b.Fatal(err)
			}
		}
	}
}
