package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/qtype-dev/qtype/internal/model/wire"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/model/modeltest"
	"github.com/qtype-dev/qtype/spec/chat"
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
		for _, data := range append(whole, "[DONE]") {
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
		stream.WriteString("data: {\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"gpt-6-sol\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\" word\"},\"finish_reason\":null}]}\n\n")
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

// BenchmarkGenerate is one call of a model, and the same with package net/http alone.
func BenchmarkGenerate(b *testing.B) {
	answer := []byte(`{"id":"c1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"hello"},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11}}`)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(answer)
	}))
	defer server.Close()
	b.Run("qtype", func(b *testing.B) {
		c, err := New(Config{Info: model.Info{ID: "m", Name: "m"}, BaseURL: server.URL, HTTP: server.Client()})
		testkit.Must(b, err)
		req := model.Request{Messages: []chat.Message{chat.Text(chat.User, "hello")}}
		b.ReportAllocs()
		for b.Loop() {
			for _, err := range c.Generate(b.Context(), req) {
				testkit.Must(b, err)
			}
		}
	})
	b.Run("by hand", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			body, err := json.Marshal(map[string]any{"model": "m", "messages": []map[string]string{{"role": "user", "content": "hello"}}})
			testkit.Must(b, err)
			r, err := http.NewRequestWithContext(b.Context(), http.MethodPost, server.URL+"/chat/completions", bytes.NewReader(body))
			testkit.Must(b, err)
			r.Header.Set("Content-Type", "application/json")
			resp, err := server.Client().Do(r)
			testkit.Must(b, err)
			var c completion
			testkit.Must(b, json.NewDecoder(resp.Body).Decode(&c))
			_, _ = io.Copy(io.Discard, resp.Body)
			testkit.Must(b, resp.Body.Close())
		}
	})
}
