package accesstoken_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/qtype-dev/qtype/internal/accesstoken"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A token is requested once for concurrent callers, again before it expires, and the
// cached one is used while a new one cannot be requested.
func TestSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var fetched atomic.Int32
		var failing atomic.Bool
		s := accesstoken.NewSource(func(context.Context) (accesstoken.Token, error) {
			time.Sleep(time.Second)
			if failing.Load() {
				return accesstoken.Token{}, errors.New("down")
			}
			return accesstoken.Token{Text: fmt.Sprint("token ", fetched.Add(1)), Expires: time.Now().Add(time.Hour)}, nil
		})
		want := func(text string) {
			t.Helper()
			if got, err := s.Token(t.Context()); got != text || err != nil {
				t.Errorf("got %s, %v; want %s", got, err, text)
			}
		}
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() { want("token 1") })
		}
		all.Wait()
		time.Sleep(56 * time.Minute)
		want("token 1")
		time.Sleep(2 * time.Minute) // less than three minutes are left
		failing.Store(true)
		want("token 1")
		failing.Store(false)
		want("token 2")
		failing.Store(true)
		time.Sleep(2 * time.Hour)
		if _, err := s.Token(t.Context()); err == nil || err.Error() != "down" {
			t.Errorf("got %v", err)
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := s.Token(ended); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
}

func TestRequest(t *testing.T) {
	for name, c := range map[string]struct {
		status    int
		body      string
		want      string
		temporary bool
	}{
		"entra":      {401, `{"error":"invalid_client","error_description":"wrong: geheim-0123456789"}`, "wrong: ***", false},
		"google":     {403, `{"error":{"code":403,"message":"denied"}}`, "HTTP 403: denied", false},
		"vault":      {400, `{"errors":["invalid role"]}`, "HTTP 400: invalid role", false},
		"busy":       {503, `later`, "HTTP 503: later", true},
		"not JSON":   {200, `<html>`, "the response is not that of a token server", false},
		"redirected": {302, `{"message":"elsewhere"}`, "HTTP 302: elsewhere", false},
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Location", "http://127.0.0.1:1/")
				w.WriteHeader(c.status)
				_, _ = fmt.Fprint(w, c.body)
			}))
			t.Cleanup(s.Close)
			client := accesstoken.Client()
			t.Cleanup(client.CloseIdleConnections)
			req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL, http.NoBody)
			var answer struct{}
			err := accesstoken.Request(client, req, "auth a", "geheim-0123456789", &answer)
			var e *accesstoken.Error
			if !errors.As(err, &e) || !strings.HasPrefix(err.Error(), "auth a: no token: ") || !strings.Contains(err.Error(), c.want) || e.Temporary() != c.temporary {
				t.Errorf("got %v", err)
			}
		})
	}
}
