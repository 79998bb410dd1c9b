package main

import (
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/model/modeltest"
)

// delayed returns the address of a proxy of a server. What the server sends arrives after a while.
func delayed(t *testing.T, server string, by time.Duration) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Must(t, err)
	var wait sync.WaitGroup
	t.Cleanup(wait.Wait)
	t.Cleanup(func() { _ = listener.Close() })
	wait.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return // the end of the test
			}
			upstream, err := net.Dial("tcp", server)
			if err != nil {
				_ = client.Close()
				continue
			}
			t.Cleanup(func() { _, _ = client.Close(), upstream.Close() })
			wait.Go(func() {
				_, _ = io.Copy(upstream, client)
				_ = upstream.Close()
			})
			wait.Go(func() { delay(client, upstream, by) })
		}
	})
	return listener.Addr().String()
}

// delay copies what it reads, each piece after a while.
func delay(to net.Conn, from io.Reader, by time.Duration) {
	type piece struct {
		data []byte
		due  time.Time
	}
	pieces := make(chan piece, 1<<16)
	go func() {
		defer close(pieces)
		for {
			data := make([]byte, 32<<10)
			n, err := from.Read(data)
			if err != nil {
				return
			}
			pieces <- piece{data[:n], time.Now().Add(by)}
		}
	}()
	for p := range pieces {
		time.Sleep(time.Until(p.due))
		if _, err := to.Write(p.data); err != nil {
			break
		}
	}
	_ = to.Close()
	for range pieces { // until the other side has ended
	}
}

// TestTemporal_Slow: Temporal answers a worker after two seconds. No chunk is given up, and no call repeated.
func TestTemporal_Slow(t *testing.T) {
	var calls atomic.Int32
	model := httptest.NewServer(modeltest.OpenAI(func(messages []modeltest.Message) (string, int) {
		calls.Add(1)
		time.Sleep(4 * time.Second) // several heartbeats for a chunk
		return "answer to " + messages[len(messages)-1].Content, 0
	}))
	t.Cleanup(model.Close)
	c := newCluster(t, fmt.Sprintf(talks, model.URL), "session,text\na,1\na,2\na,3\na,4\n")
	c.address = delayed(t, c.server.Address(), 2*time.Second)
	c.worker()
	c.address = c.server.Address()
	if status, _, errs := c.qtype("run", "app.qtype.yaml", "-I", "in.csv", "-o", "out.jsonl", "--engine", "temporal"); status != 0 {
		t.Fatalf("%d: %s", status, errs)
	}
	if got := strings.Count(c.read("out.jsonl"), `"answer to `); got != 4 {
		t.Errorf("%d answers", got)
	}
	if n := calls.Load(); n != 4 {
		t.Errorf("%d calls, want 4", n)
	}
	history := c.temporal("workflow", "show", "--workflow-id", c.runs()[0].ID, "--output", "json")
	if !strings.Contains(history, `"attempt": 1`) || strings.Contains(history, `"attempt": 2`) {
		t.Errorf("the chunk had several attempts: %s", history)
	}
}
