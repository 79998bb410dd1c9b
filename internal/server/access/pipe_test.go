package access_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/qtype-dev/qtype/internal/server/access"
	"github.com/qtype-dev/qtype/internal/testkit"
)

// pipeListener accepts connections in memory, whose deadlines use the clock of a test.
type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error   { close(l.closed); return nil }
func (l *pipeListener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} }

// dial opens a connection.
func (l *pipeListener) dial() net.Conn {
	client, server := net.Pipe()
	l.conns <- server
	return client
}

// inBubble runs f with a server on the clock of the test.
func inBubble(t *testing.T, cfg access.Config, h http.HandlerFunc, f func(t *testing.T, l *pipeListener)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		cfg.Logger = slog.New(slog.DiscardHandler)
		control, err := access.New(cfg)
		testkit.Must(t, err)
		l := &pipeListener{make(chan net.Conn), make(chan struct{})}
		srv := control.Server(h)
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = control.Serve(srv, l)
		}()
		f(t, l)
		_ = srv.Close()
		<-done
	})
}

// dribble writes text byte by byte, one each second, until the server closes the
// connection. It returns how long that took and the response.
func dribble(conn net.Conn, text string) (time.Duration, string) {
	start := time.Now()
	answer := make(chan string)
	go func() {
		all, _ := io.ReadAll(conn)
		answer <- string(all)
	}()
	for i := range len(text) {
		if _, err := conn.Write([]byte{text[i]}); err != nil {
			break
		}
		time.Sleep(time.Second)
	}
	all := <-answer
	_ = conn.Close()
	return time.Since(start), all
}

func TestServer_SlowHeaders(t *testing.T) {
	inBubble(t, access.Config{}, writeCaller, func(t *testing.T, l *pipeListener) {
		took, got := dribble(l.dial(), "GET / HTTP/1.1\r\nHost: localhost\r\nX-A: "+strings.Repeat("a", 1000))
		if took > 12*time.Second || strings.Contains(got, "200 OK") {
			t.Errorf("cut after %v: %q", took, got)
		}
	})
}

func TestServer_SlowBody(t *testing.T) {
	inBubble(t, access.Config{}, writeCaller, func(t *testing.T, l *pipeListener) {
		conn := l.dial()
		_, err := io.WriteString(conn, "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n")
		testkit.Must(t, err)
		took, got := dribble(conn, strings.Repeat("a", 1000))
		if took > 15*time.Second || !strings.Contains(got, "arrived too slowly") || !strings.Contains(got, "Connection: close") {
			t.Errorf("cut after %v: %q", took, got)
		}
	})
}

// A handler that does not read the body does not wait for it either.
func TestServer_SlowUnreadBody(t *testing.T) {
	h := func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "done") }
	for _, head := range []string{"Content-Length: 1000\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n3e8\r\n"} {
		inBubble(t, access.Config{}, h, func(t *testing.T, l *pipeListener) {
			conn := l.dial()
			_, err := io.WriteString(conn, "POST / HTTP/1.1\r\nHost: localhost\r\n"+head)
			testkit.Must(t, err)
			took, got := dribble(conn, strings.Repeat("a", 1000))
			if took > 5*time.Second || !strings.Contains(got, "done") || !strings.Contains(got, "Connection: close") {
				t.Errorf("%q: cut after %v: %q", head, took, got)
			}
		})
	}
}

// An upload of 2 KiB/s takes longer than all time limits and succeeds.
func TestServer_SteadyUpload(t *testing.T) {
	inBubble(t, access.Config{}, writeCaller, func(t *testing.T, l *pipeListener) {
		conn := l.dial()
		const seconds = 300
		go func() {
			_, _ = io.WriteString(conn, "POST / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 614400\r\n\r\n")
			for range seconds {
				time.Sleep(time.Second)
				_, _ = conn.Write(make([]byte, 2048))
			}
		}()
		got, err := io.ReadAll(conn)
		if err != nil || !strings.HasPrefix(string(got), "HTTP/1.1 200 OK") {
			t.Errorf("got %q, %v", got, err)
		}
	})
}

// The time in which the server does not read does not count for the client, and no
// deadline of the body ends a request that takes long.
func TestServer_SlowHandler(t *testing.T) {
	h := func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadFull(r.Body, make([]byte, 1))
		time.Sleep(time.Minute)
		_, err := io.Copy(io.Discard, r.Body)
		time.Sleep(time.Minute)
		if err == nil {
			err = r.Context().Err()
		}
		_, _ = io.WriteString(w, "error: "+errorText(err))
	}
	inBubble(t, access.Config{}, h, func(t *testing.T, l *pipeListener) {
		conn := l.dial()
		go func() {
			_, _ = io.WriteString(conn, "POST / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 100000\r\n\r\n"+strings.Repeat("a", 100_000))
		}()
		got, err := io.ReadAll(conn)
		if err != nil || !strings.Contains(string(got), "error: none") {
			t.Errorf("got %q, %v", got, err)
		}
	})
}

func errorText(err error) string {
	if err == nil {
		return "none"
	}
	return err.Error()
}

// A request ends after its time limit, a stream does not; neither does a stream after a
// body that was not read to its end.
func TestServer_RequestTime(t *testing.T) {
	h := func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/stream" {
			testkit.Must(t, access.BeginStream(r.Context()))
		}
		if r.URL.Path != "/" {
			w.Header().Set("Content-Type", "text/event-stream")
			testkit.Must(t, http.NewResponseController(w).Flush())
		}
		select {
		case <-r.Context().Done():
			_, _ = io.WriteString(w, context.Cause(r.Context()).Error())
		case <-time.After(time.Hour):
			_, _ = io.WriteString(w, "after an hour")
		}
	}
	for path, want := range map[string]string{"/": "the request took longer than 15m0s", "/stream": "after an hour", "/undeclared": "after an hour"} {
		for _, body := range []string{"Content-Length: 0\r\n\r\n", "Content-Length: 4\r\n\r\nbody", "Transfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n"} {
			inBubble(t, access.Config{}, h, func(t *testing.T, l *pipeListener) {
				conn := l.dial()
				go func() {
					_, _ = io.WriteString(conn, "POST "+path+" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"+body)
				}()
				got, err := io.ReadAll(conn)
				if err != nil || !strings.Contains(string(got), want) {
					t.Errorf("%s, %q: got %q, %v", path, body, got, err)
				}
			})
		}
	}
}

// A client that does not read is cut, but pauses of a stream are not.
func TestServer_WriteTime(t *testing.T) {
	var took time.Duration
	h := func(w http.ResponseWriter, _ *http.Request) {
		for range 10 {
			_, _ = io.WriteString(w, "chunk\n")
			testkit.Must(t, http.NewResponseController(w).Flush())
			time.Sleep(10 * time.Minute)
		}
		start := time.Now()
		for {
			if _, err := w.Write(make([]byte, 64<<10)); err != nil {
				break
			}
		}
		took = time.Since(start)
	}
	inBubble(t, access.Config{}, h, func(t *testing.T, l *pipeListener) {
		conn := l.dial()
		_, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
		testkit.Must(t, err)
		r := bufio.NewReader(conn)
		for n := 0; n < 10; {
			line, err := r.ReadString('\n')
			testkit.Must(t, err)
			if line == "chunk\n" {
				n++
			}
		}
		time.Sleep(time.Hour) // of the test's clock, without reading
		synctest.Wait()
		if took != 30*time.Second {
			t.Errorf("the write ended after %v", took)
		}
		_ = conn.Close()
	})
}

// A client that reads slowly, but steadily, gets a large response that is written at once.
func TestServer_SteadyDownload(t *testing.T) {
	const size = 300 << 10
	for name, write := range map[string]func(w http.ResponseWriter) (int, error){
		"Write":       func(w http.ResponseWriter) (int, error) { return w.Write(make([]byte, size)) },
		"WriteString": func(w http.ResponseWriter) (int, error) { return io.WriteString(w, strings.Repeat("a", size)) },
	} {
		h := func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain")
			w.Header().Set("Content-Length", strconv.Itoa(size))
			if n, err := write(w); n != size || err != nil {
				t.Errorf("%s: wrote %d bytes, %v", name, n, err)
			}
		}
		inBubble(t, access.Config{}, h, func(t *testing.T, l *pipeListener) {
			conn := l.dial()
			_, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
			testkit.Must(t, err)
			got := 0
			for buf := make([]byte, 2<<10); ; time.Sleep(time.Second) {
				n, err := io.ReadFull(conn, buf)
				if got += n; err != nil {
					break
				}
			}
			if got < size {
				t.Errorf("%s: read %d bytes", name, got)
			}
			_ = conn.Close()
		})
	}
}

// The same over HTTP/2, where an expired deadline would end the stream.
func TestServer_WriteTimeHTTP2(t *testing.T) {
	cert, key := writeCertificate(t, "localhost")
	h := func(w http.ResponseWriter, _ *http.Request) {
		for range 3 {
			_, _ = io.WriteString(w, "chunk\n")
			testkit.Must(t, http.NewResponseController(w).Flush())
			time.Sleep(10 * time.Minute)
		}
	}
	inBubble(t, access.Config{TLS: access.TLS{CertFile: cert, KeyFile: key}}, h, func(t *testing.T, l *pipeListener) {
		transport := &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
			DialContext: func(context.Context, string, string) (net.Conn, error) { return l.dial(), nil }}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://localhost/", nil)
		testkit.Must(t, err)
		response, err := transport.RoundTrip(r)
		testkit.Must(t, err)
		got, err := io.ReadAll(response.Body)
		if err != nil || response.ProtoMajor != 2 || string(got) != "chunk\nchunk\nchunk\n" {
			t.Errorf("%s: got %q, %v", response.Proto, got, err)
		}
		_ = response.Body.Close()
		transport.CloseIdleConnections()
	})
}

// The limits of bodies over HTTP/2.
func TestServer_SlowBodyHTTP2(t *testing.T) {
	cert, key := writeCertificate(t, "localhost")
	inBubble(t, access.Config{TLS: access.TLS{CertFile: cert, KeyFile: key}}, readBody, func(t *testing.T, l *pipeListener) {
		transport := &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
			DialContext: func(context.Context, string, string) (net.Conn, error) { return l.dial(), nil }}
		reader, writer := io.Pipe()
		written := make(chan struct{})
		go func() {
			defer close(written)
			for {
				if _, err := writer.Write([]byte("a")); err != nil {
					return
				}
				time.Sleep(time.Second)
			}
		}()
		start := time.Now()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://localhost/", reader)
		testkit.Must(t, err)
		response, err := transport.RoundTrip(r)
		testkit.Must(t, err)
		if took := time.Since(start); response.StatusCode != http.StatusRequestTimeout || took > 15*time.Second {
			t.Errorf("got %s after %v", response.Status, took)
		}
		_ = response.Body.Close()
		_ = reader.Close()
		<-written
		transport.CloseIdleConnections()
	})
}

// Connections without a request are closed.
func TestServer_Idle(t *testing.T) {
	inBubble(t, access.Config{}, writeCaller, func(t *testing.T, l *pipeListener) {
		for text, limit := range map[string]time.Duration{"": 10 * time.Second, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n": 2 * time.Minute} {
			conn, start := l.dial(), time.Now()
			go func() { _, _ = io.WriteString(conn, text) }()
			_, err := io.Copy(io.Discard, conn)
			if took := time.Since(start); err != nil || took != limit {
				t.Errorf("%q: closed after %v, %v", text, took, err)
			}
			_ = conn.Close()
		}
	})
}
