package server_test

import (
	"context"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/qtype-dev/qtype/internal/server"
	"github.com/qtype-dev/qtype/internal/server/access"
	"github.com/qtype-dev/qtype/internal/testkit"
)

// TestServe checks that a server accepts connections once it has started, and ends with its context.
func TestServe(t *testing.T) {
	control, err := access.New(access.Config{Host: "127.0.0.1"})
	testkit.Must(t, err)
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	testkit.Must(t, err)
	s := server.New(openApp(t, "testdata/app.qtype.yaml"), server.Options{Access: control})
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	status := make(chan int, 1)
	err = s.Serve(ctx, l, time.Minute, func() {
		go func() {
			defer stop()
			client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
			res, err := client.Get("http://" + l.Addr().String() + "/healthz")
			if err != nil {
				status <- 0
				return
			}
			_ = res.Body.Close()
			status <- res.StatusCode
		}()
	})
	testkit.Must(t, err)
	if got := <-status; got != http.StatusOK {
		t.Errorf("got the status %d", got)
	}
	if _, err := net.Dial("tcp", l.Addr().String()); err == nil {
		t.Error("connections are accepted after the end")
	}
}
