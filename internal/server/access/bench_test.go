package access_test

import (
	"io"
	"log/slog"
	"net"
	"net/http"
	"testing"

	"github.com/qtype-dev/qtype/internal/server/access"
	"github.com/qtype-dev/qtype/internal/testkit"
)

// What Wrap adds to a request and to a chunk of a stream, against the bare handler.
func BenchmarkWrap(b *testing.B) {
	for name, cfg := range map[string]*access.Config{"bare": nil, "local": {}, "key": {Keys: "ci:" + ciKey, Limits: access.Limits{Rate: -1}}} {
		b.Run(name, func(b *testing.B) {
			var h http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_ = access.BeginStream(r.Context())
				w.Header().Set("Content-Type", "text/event-stream")
				c := http.NewResponseController(w)
				for range 50 {
					_, _ = io.WriteString(w, "data: {\"type\":\"text-delta\",\"id\":\"1\",\"delta\":\"word \"}\n\n")
					_ = c.Flush()
				}
			})
			srv := &http.Server{Handler: h}
			if cfg != nil {
				cfg.Logger = slog.New(slog.DiscardHandler)
				control, err := access.New(*cfg)
				testkit.Must(b, err)
				srv = control.Server(h)
			}
			l, err := (&net.ListenConfig{}).Listen(b.Context(), "tcp", "127.0.0.1:0")
			testkit.Must(b, err)
			done := make(chan struct{})
			go func() { defer close(done); _ = srv.Serve(l) }()
			client := &http.Client{Transport: &http.Transport{}}
			b.ReportAllocs()
			for b.Loop() {
				r, err := http.NewRequestWithContext(b.Context(), http.MethodPost, "http://"+l.Addr().String()+"/", http.NoBody)
				testkit.Must(b, err)
				r.Header.Set("X-Api-Key", ciKey)
				response, err := client.Do(r)
				testkit.Must(b, err)
				_, _ = io.Copy(io.Discard, response.Body)
				_ = response.Body.Close()
			}
			client.CloseIdleConnections()
			_ = srv.Close()
			<-done
		})
	}
}

// The comparison of a key with 1,000 others.
func BenchmarkKeys(b *testing.B) {
	find := access.FindKey(1000)
	for b.Loop() {
		if find(ciKey) {
			b.Fatal("found")
		}
	}
}
