package openai_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/server"
)

// BenchmarkChat measures answers of 20 words over loopback, without a memory.
func BenchmarkChat(b *testing.B) {
	for name, body := range map[string]string{
		"stream": `{"model":"plain","stream":true,"messages":[{"role":"user","content":"count"}]}`,
		"whole":  `{"model":"plain","messages":[{"role":"user","content":"count"}]}`,
	} {
		b.Run(name, func(b *testing.B) {
			s := serve(b, nil, server.Options{NoUI: true})
			b.ReportAllocs()
			b.RunParallel(func(p *testing.PB) {
				for p.Next() {
					r, err := http.Post(s.URL+"/v1/chat/completions", "application/json", strings.NewReader(body))
					if err != nil {
						b.Error(err)
						return
					}
					if n, _ := io.Copy(io.Discard, r.Body); n == 0 || r.StatusCode != http.StatusOK {
						b.Errorf("status %d", r.StatusCode)
					}
					_ = r.Body.Close()
				}
			})
		})
	}
}
