package openai

import (
	"bytes"
	"errors"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/qtype-dev/qtype/model/internal/wire"
	"github.com/qtype-dev/qtype/model/modeltest"
)

// FuzzStream feeds bytes to the reader of a stream: it never panics, and its result does
// not depend on how the bytes are split.
func FuzzStream(f *testing.F) {
	f.Add([]byte("data: {\"choices\":[{\"delta\":{\"content\":\"a\",\"tool_calls\":[{\"index\":0,\"id\":\"x\",\"function\":{\"name\":\"n\",\"arguments\":\"{\"}}]},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":1}}\n\ndata: [DONE]\n\n"))
	f.Add([]byte(": x\r\nevent: error\r\ndata: {\"error\":{\"message\":\"m\",\"code\":500}}\r\n\r\n"))
	f.Add([]byte("\xef\xbb\xbfdata\ndata:\n\n"))
	f.Fuzz(func(t *testing.T, stream []byte) {
		whole, err := modeltest.Events(bytes.NewReader(stream))
		pieces, err2 := modeltest.Events(iotest.HalfReader(bytes.NewReader(stream)))
		if d := cmp.Diff(whole, pieces); d != "" || !errors.Is(err, err2) {
			t.Errorf("%v, %v\n%s", err, err2, d)
		}
		var a assembler
		length := 0
		for _, data := range whole {
			events, err := a.Chunk([]byte(data))
			if err != nil {
				return
			}
			for _, ev := range events {
				length += len(ev.Text)
			}
		}
		if r, err := a.Response(); err == nil && len(r.Message.Text()) != length {
			t.Errorf("the answer holds %d bytes of text, the deltas %d", len(r.Message.Text()), length)
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
		e, a := wire.NewEvents(bytes.NewReader(stream.Bytes())), assembler{}
		for {
			data, err := e.Next()
			if err != nil {
				break
			}
			if _, err := a.Chunk(data); err != nil {
				b.Fatal(err)
			}
		}
	}
}
