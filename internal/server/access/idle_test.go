package access_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/qtype-dev/qtype/internal/server/access"
	"github.com/qtype-dev/qtype/internal/server/problem"
	"github.com/qtype-dev/qtype/internal/testkit"
)

// What the client sends on each connection.
const requestVariable = "QTYPE_TEST_REQUEST"

const (
	connectVariable = "QTYPE_TEST_CONNECT" // makes the test binary a client, with its limit of open files
	idleConnections = 10_000
)

// openConnections opens connections until standard input ends.
func openConnections(address string) {
	var open []net.Conn
	for n := range idleConnections {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			_, err = io.WriteString(conn, os.Getenv(requestVariable))
		}
		if err != nil {
			fmt.Println(n, err)
			os.Exit(1)
		}
		open = append(open, conn)
	}
	fmt.Println("open")
	_, _ = io.Copy(io.Discard, os.Stdin)
	runtime.KeepAlive(open) // the collector closes unused connections
}

// 10,000 idle connections use little memory and keep no other client out.
func TestServer_IdleConnections(t *testing.T) {
	s := start(t, access.Config{}, nil)
	s.measure(t, "", func() {
		if got := s.get(t, "/"); got.status != 200 {
			t.Errorf("with %d idle connections: %d", idleConnections, got.status)
		}
	})
}

// 10,000 streams are what one local client may open.
func TestServer_OpenStreams(t *testing.T) {
	var begun sync.WaitGroup
	begun.Add(idleConnections)
	s := start(t, access.Config{}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/stream" {
			return
		}
		if err := access.BeginStream(r.Context()); err != nil {
			problem.Write(w, problem.Of(err))
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		testkit.Must(t, http.NewResponseController(w).Flush())
		begun.Done()
		<-r.Context().Done()
	}))
	s.measure(t, "GET /stream HTTP/1.1\r\nHost: localhost\r\n\r\n", func() {
		begun.Wait()
		if got := s.get(t, "/stream"); got.status != 429 || got.code() != "too_many_streams" {
			t.Errorf("one more stream: %d", got.status)
		}
		if got := s.get(t, "/"); got.status != 200 {
			t.Errorf("another request: %d", got.status)
		}
	})
}

// measure opens connections in another process, runs f, and logs the memory of each
// connection in the server.
func (s *server) measure(t *testing.T, request string, f func()) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	client := testkit.Command(t, os.Args[0])
	client.Env = append(os.Environ(), connectVariable+"="+strings.TrimPrefix(s.url, "http://"), requestVariable+"="+request)
	input, err := client.StdinPipe()
	testkit.Must(t, err)
	output, err := client.StdoutPipe()
	testkit.Must(t, err)
	testkit.Must(t, client.Start())
	line, err := bufio.NewReader(output).ReadString('\n')
	testkit.Must(t, err)
	if line != "open\n" {
		_ = client.Wait()
		t.Skipf("%d connections are not possible here: %s", idleConnections, line)
	}
	f()
	runtime.GC()
	runtime.ReadMemStats(&after)
	each := (after.HeapInuse + after.StackInuse - before.HeapInuse - before.StackInuse) / idleConnections
	t.Logf("%d bytes for each connection", each)
	if each > 32<<10 {
		t.Errorf("%d bytes for each connection", each)
	}
	_ = input.Close()
	testkit.Must(t, client.Wait())
}
