package main

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/qtype-dev/qtype/internal/testkit"
)

// link is a proxy of a server, as a network that can be slow, or cut.
type link struct {
	server  string       // the address of the server
	address string       // that of the proxy
	delay   atomic.Int64 // how long what the server sends is on its way, a time.Duration

	mu    sync.Mutex
	isCut bool
	open  map[net.Conn]bool
	wait  sync.WaitGroup
}

func newLink(t *testing.T, server string) *link {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Must(t, err)
	l := &link{server: server, address: listener.Addr().String(), open: map[net.Conn]bool{}}
	t.Cleanup(l.wait.Wait)
	t.Cleanup(func() { l.cut(true) })
	t.Cleanup(func() { _ = listener.Close() })
	l.wait.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return // the end of the test
			}
			l.join(client)
		}
	})
	return l
}

// cut ends all connections, and refuses others until it is called with false.
func (l *link) cut(isCut bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.isCut = isCut
	for conn := range l.open {
		_ = conn.Close()
	}
}

// join connects a client with the server.
func (l *link) join(client net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	upstream, err := net.Dial("tcp", l.server)
	if err != nil || l.isCut {
		_ = client.Close()
		if err == nil {
			_ = upstream.Close()
		}
		return
	}
	l.open[client], l.open[upstream] = true, true
	end := func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		for _, conn := range []net.Conn{client, upstream} {
			_ = conn.Close()
			delete(l.open, conn)
		}
	}
	l.wait.Go(func() {
		defer end()
		_, _ = io.Copy(upstream, client)
	})
	l.wait.Go(func() {
		defer end()
		l.carry(client, upstream)
	})
}

// carry copies what it reads, each piece after the delay.
func (l *link) carry(to net.Conn, from io.ReadCloser) {
	type piece struct {
		data []byte
		due  time.Time
	}
	pieces := make(chan piece, 1<<16)
	l.wait.Go(func() {
		defer close(pieces)
		for {
			data := make([]byte, 32<<10)
			n, err := from.Read(data)
			if err != nil {
				return
			}
			pieces <- piece{data[:n], time.Now().Add(time.Duration(l.delay.Load()))}
		}
	})
	for p := range pieces {
		time.Sleep(time.Until(p.due))
		if _, err := to.Write(p.data); err != nil {
			break
		}
	}
	_ = from.Close()
	for range pieces { // until the reader has ended
	}
}
