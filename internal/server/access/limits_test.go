package access_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/qtype-dev/qtype/internal/server/access"
	"github.com/qtype-dev/qtype/internal/server/problem"
	"github.com/qtype-dev/qtype/internal/testkit"
)

// readBody answers with the problem of the body.
func readBody(w http.ResponseWriter, r *http.Request) {
	n, err := io.Copy(io.Discard, r.Body)
	if p := problem.Of(err); p != nil {
		problem.Write(w, p)
		return
	}
	_, _ = fmt.Fprint(w, n, err)
}

// A body of 1 GB is cut early, whether or not its size is declared, and uses no memory.
func TestServer_LargeBody(t *testing.T) {
	s := start(t, access.Config{}, http.HandlerFunc(readBody))
	const size = 1 << 30
	for head, most := range map[string]int64{"Content-Length: 1073741824\r\n\r\n": 8 << 20, "Transfer-Encoding: chunked\r\n\r\n": 64 << 20} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		conn := s.dial(t)
		_, err := io.WriteString(conn, "POST / HTTP/1.1\r\nHost: localhost\r\n"+head)
		testkit.Must(t, err)
		block := append(append([]byte("100000\r\n"), make([]byte, 1<<20)...), "\r\n"...)
		sent := int64(0)
		for sent < size {
			n, err := conn.Write(block)
			sent += int64(n)
			if err != nil {
				break
			}
		}
		answer, _ := http.ReadResponse(bufio.NewReader(conn), nil)
		runtime.ReadMemStats(&after)
		if answer != nil { // the operating system may have dropped it, because more data came
			if answer.StatusCode != http.StatusRequestEntityTooLarge || !answer.Close {
				t.Errorf("%q: got %s", head, answer.Status)
			}
			_ = answer.Body.Close()
		}
		used := after.TotalAlloc - before.TotalAlloc
		t.Logf("%q: %d bytes sent, %d bytes allocated", head, sent, used)
		if sent > most || used > 8<<20 {
			t.Errorf("%q: %d bytes sent, %d bytes allocated", head, sent, used)
		}
		_ = conn.Close()
	}
	if text := s.log.String(); strings.Count(text, `"code":"body_too_large"`) != 2 {
		t.Errorf("log: %s", text)
	}
}

// dial opens a connection.
func (s *server) dial(t testing.TB) net.Conn {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(s.url, "http://"))
	testkit.Must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func TestServer_BodyLimit(t *testing.T) {
	s := start(t, access.Config{Limits: access.Limits{BodyBytes: 1000}}, http.HandlerFunc(readBody))
	for size, want := range map[int]int{1000: 200, 1001: 413} {
		declared := s.send(t, http.MethodPost, "/", bytes.NewReader(make([]byte, size)))
		chunked := s.send(t, http.MethodPost, "/", struct{ io.Reader }{bytes.NewReader(make([]byte, size))})
		if declared.status != want || chunked.status != want {
			t.Errorf("%d bytes: %d, chunked %d", size, declared.status, chunked.status)
		}
		if want == 413 && (declared.code() != "body_too_large" || chunked.code() != "body_too_large") {
			t.Errorf("%d bytes: %s, chunked %s", size, declared.body, chunked.body)
		}
	}
}

func TestServer_HeaderLimits(t *testing.T) {
	s := start(t, access.Config{}, nil)
	many := make([]string, 101)
	for i := range many {
		many[i] = fmt.Sprintf("X-%d: a", i)
	}
	if got := s.get(t, "/", many...); got.status != 431 {
		t.Errorf("101 headers: %d", got.status)
	}
	if got := s.get(t, "/", "X-Large: "+strings.Repeat("a", 64<<10)); got.status != 431 {
		t.Errorf("64 KiB of headers: %d", got.status)
	}
	if got := s.get(t, "/", many[:90]...); got.status != 200 {
		t.Errorf("90 headers: %d", got.status)
	}
}

// Slow clients are cut over real sockets as well, here with short limits.
func TestServer_SlowClientOverSocket(t *testing.T) {
	s := start(t, access.Config{Limits: access.Limits{HeaderTime: 100 * time.Millisecond, BodyTime: 100 * time.Millisecond}}, http.HandlerFunc(readBody))
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for _, head := range []string{"GET / HTTP/1.1\r\nX-A: ", "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n"} {
		conn := s.dial(t)
		_, err := io.WriteString(conn, head)
		testkit.Must(t, err)
		closed := make(chan struct{})
		go func() {
			defer close(closed)
			_, _ = io.Copy(io.Discard, conn)
		}()
		for open := true; open; { // ends only when the server closes the connection
			select {
			case <-closed:
				open = false
			case <-tick.C:
				_, err := conn.Write([]byte("a"))
				open = err == nil
			}
		}
		<-closed
	}
}

func TestControl_Rate(t *testing.T) {
	s := start(t, access.Config{Keys: "ci:" + ciKey + ",ada:" + adaKey, Limits: access.Limits{Rate: 0.1, Burst: 3}}, nil)
	statuses := func(headers ...string) (list []int, last answer) {
		for range 5 {
			last = s.get(t, "/", headers...)
			list = append(list, last.status)
		}
		return list, last
	}
	ci, last := statuses(bearer(ciKey))
	if fmt.Sprint(ci) != "[200 200 200 429 429]" || last.code() != "rate_limited" {
		t.Errorf("ci: %v %s", ci, last.body)
	}
	if wait, err := strconv.Atoi(last.header.Get("Retry-After")); err != nil || wait < 1 || wait > 10 {
		t.Errorf("Retry-After is %q", last.header.Get("Retry-After"))
	}
	if ada, _ := statuses("X-API-Key: " + adaKey); fmt.Sprint(ada) != "[200 200 200 429 429]" {
		t.Errorf("ada: %v", ada)
	}
	if got := s.get(t, "/healthz"); got.status != 200 {
		t.Errorf("healthz: %d", got.status)
	}
	if !strings.Contains(s.log.String(), `"code":"rate_limited"`) || !strings.Contains(s.log.String(), `"principal":"ci"`) {
		t.Errorf("log: %s", s.log)
	}
}

// Without authentication the address counts; behind a trusted proxy that of the client.
func TestControl_RateOfAddresses(t *testing.T) {
	for _, trusted := range []bool{false, true} {
		cfg := access.Config{Limits: access.Limits{Rate: 0.1, Burst: 1}}
		if trusted {
			cfg.Proxies = []string{"127.0.0.0/8", "10.1.0.0/16"}
		}
		s := start(t, cfg, nil)
		var got []int
		for _, forwarded := range []string{"1.1.1.1", "2.2.2.2", "9.9.9.9, 2.2.2.2, 10.1.2.3", "2001:db8:0:1::1", "2001:db8:0:1::2"} {
			got = append(got, s.get(t, "/", "X-Forwarded-For: "+forwarded).status)
		}
		want := map[bool]string{false: "[200 429 429 429 429]", true: "[200 200 429 200 429]"}[trusted]
		if fmt.Sprint(got) != want {
			t.Errorf("trusted %v: %v, want %s", trusted, got, want)
		}
	}
}

func TestControl_FailuresAreLimited(t *testing.T) {
	s := start(t, access.Config{Keys: "ci:" + ciKey}, nil)
	var last answer
	for i := range 25 {
		last = s.get(t, "/", bearer(fmt.Sprintf("guess-%020d", i)))
	}
	if last.status != 429 || last.code() != "too_many_failures" || last.header.Get("Retry-After") == "" {
		t.Errorf("25 guesses: %d %s", last.status, last.body)
	}
	if got := s.get(t, "/", bearer(ciKey)); got.status != 200 {
		t.Errorf("the valid key of the same address: %d", got.status)
	}
	if got := s.get(t, "/"); got.status != 401 {
		t.Errorf("no key: %d", got.status)
	}
}

func TestLimiter_BoundedMemory(t *testing.T) {
	n, err := access.Buckets(100_000, func(i int) string { return fmt.Sprint("user", i) })
	if err != nil || n != 10_000 {
		t.Errorf("%d buckets, %v", n, err)
	}
}

// blocking is a handler whose requests wait until they are released.
type blocking struct {
	entered chan string
	release chan struct{}
}

func (b *blocking) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/stream" {
		if err := access.BeginStream(r.Context()); err != nil {
			problem.Write(w, problem.Of(err))
			return
		}
	}
	b.entered <- r.URL.Path
	<-b.release
}

func TestControl_Concurrency(t *testing.T) {
	h := &blocking{make(chan string), make(chan struct{})}
	s := start(t, access.Config{Keys: "ci:" + ciKey + ",ada:" + adaKey, Limits: access.Limits{Requests: 2, Streams: 1, Total: 4}}, h)
	var wg sync.WaitGroup
	begin := func(path, key string) {
		wg.Go(func() { s.get(t, path, bearer(key)) })
		<-h.entered
	}
	begin("/stream", ciKey)
	begin("/", ciKey)
	if got := s.get(t, "/stream", bearer(ciKey)); got.status != 429 || got.code() != "too_many_streams" || got.header.Get("Retry-After") != "1" {
		t.Errorf("second stream: %d %s", got.status, got.body)
	}
	begin("/", ciKey)
	if got := s.get(t, "/", bearer(ciKey)); got.status != 429 || got.code() != "too_many_requests" || got.header.Get("Retry-After") != "1" {
		t.Errorf("third request: %d %s", got.status, got.body)
	}
	begin("/", adaKey)
	if got := s.get(t, "/", bearer(adaKey)); got.status != 503 || got.code() != "server_busy" {
		t.Errorf("above the total: %d %s", got.status, got.body)
	}
	if requests, streams, total := access.Open(s.control); requests != 3 || streams != 1 || total != 4 {
		t.Errorf("counted %d requests, %d streams, %d", requests, streams, total)
	}
	close(h.release)
	wg.Wait()
	if text := s.log.String(); !strings.Contains(text, `"code":"too_many_streams"`) || !strings.Contains(text, `"code":"too_many_requests"`) {
		t.Errorf("log: %s", text)
	}
	if requests, streams, total := access.Open(s.control); requests+streams+total != 0 {
		t.Errorf("after the end: %d requests, %d streams, %d", requests, streams, total)
	}
}

func TestControl_Rows(t *testing.T) {
	control, err := access.New(access.Config{Limits: access.Limits{Rows: 10}})
	testkit.Must(t, err)
	if err := control.CheckRows(10); err != nil {
		t.Errorf("10 rows: %v", err)
	}
	if p := problem.Of(control.CheckRows(11)); p == nil || p.Status != 413 || p.Code != "too_many_rows" {
		t.Errorf("11 rows: %v", p)
	}
}

func TestServer_Connections(t *testing.T) {
	s := start(t, access.Config{Limits: access.Limits{Connections: 2}}, nil)
	first, second := s.dial(t), s.dial(t)
	for _, conn := range []net.Conn{first, second} {
		_, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
		testkit.Must(t, err)
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		testkit.Must(t, err)
		_ = answer.Body.Close()
	}
	third := s.dial(t)
	if _, err := third.Read(make([]byte, 1)); err == nil || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the third connection: %v", err)
	}
	_ = first.Close()
	for s.tryGet(t) != nil { // until the server noticed that the first one is closed
		runtime.Gosched()
	}
}

// tryGet sends a request over a new connection.
func (s *server) tryGet(t testing.TB) error {
	t.Helper()
	conn := s.dial(t)
	defer conn.Close()
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"); err != nil {
		return err
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return err
	}
	return answer.Body.Close()
}
