package storetest

import (
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/spec/chat"
)

// network stands between a store and its server, and does what networks do.
type network struct {
	server   string // its address
	listener net.Listener
	all      sync.WaitGroup

	mu      sync.Mutex // guards what follows
	open    map[net.Conn]bool
	delay   time.Duration // before each piece of an answer
	swallow bool          // what is sent is lost, and nobody is told
	cut     int           // each so manieth piece of an answer is lost with its connection; 0: none
	pieces  int           // of answers so far
}

func startNetwork(t *testing.T, server string) *network {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	n := &network{server: server, listener: l, open: map[net.Conn]bool{}}
	n.all.Go(n.accept)
	return n
}

// close ends all connections; what the tests left open must be closed before.
func (n *network) close() {
	_ = n.listener.Close() // it was open
	n.mu.Lock()
	for c := range n.open {
		_ = c.Close() // its goroutines see to the rest
	}
	n.mu.Unlock()
	n.all.Wait()
}

func (n *network) accept() {
	for {
		client, err := n.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", n.server)
		if err != nil {
			_ = client.Close() // as a server that is down would
			continue
		}
		n.mu.Lock()
		n.open[client], n.open[server] = true, true
		n.mu.Unlock()
		both := func() {
			_ = client.Close() // the other direction may have been faster
			_ = server.Close()
		}
		n.all.Go(func() { defer both(); n.proxy(server, client, n.question) })
		n.all.Go(func() { defer both(); n.proxy(client, server, n.answer) })
	}
}

// proxy hands on what comes from one side to the other, as far as pass lets it.
func (n *network) proxy(to io.Writer, from io.Reader, pass func() (on, lost bool)) {
	piece := make([]byte, 64<<10)
	for {
		size, err := from.Read(piece)
		if size > 0 {
			on, lost := pass()
			if lost {
				return
			}
			if on {
				if _, err := to.Write(piece[:size]); err != nil {
					return
				}
			}
		}
		if err != nil {
			return
		}
	}
}

func (n *network) question() (on, lost bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return !n.swallow, false
}

func (n *network) answer() (on, lost bool) {
	n.mu.Lock()
	n.pieces++
	delay, on, lost := n.delay, !n.swallow, n.cut > 0 && n.pieces%n.cut == 0
	n.mu.Unlock()
	time.Sleep(delay)
	return on, lost
}

// become changes what the network does.
func (n *network) become(change func(n *network)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	change(n)
}

// RunNetwork checks that a store lives with a bad network: one that is slow, one
// that swallows what is sent, and one that loses answers of what was done. Server
// is the server's address; open makes a store whose uses take patience at most,
// at the address that it is given; the suite closes it.
func RunNetwork(t *testing.T, server string, patience time.Duration, open func(address string) memory.Store) {
	n := startNetwork(t, server)
	defer n.close()
	s := open(n.listener.Addr().String())
	defer func() { must(t, s.Close()) }()
	m := newMemory(t, s)
	say := func(session, text string) error { return m.Append(t.Context(), session, chat.Text(chat.User, text)) }
	must(t, say("s", "before"))
	t.Run("slow", func(t *testing.T) {
		n.become(func(n *network) { n.delay = patience / 50 })
		must(t, say("s", "slowly"))
	})
	for name, change := range map[string]func(n *network){
		"too slow":  func(n *network) { n.delay = 2 * patience },
		"swallowed": func(n *network) { n.swallow = true },
	} {
		t.Run(name, func(t *testing.T) {
			n.become(change)
			all := uses(t.Context(), s, memory.Key{Memory: "m", Session: "s"})
			names := slices.Collect(maps.Keys(all))
			errs, took := make([]error, len(names)), make([]time.Duration, len(names))
			inParallel(len(names), func(i int) {
				began := time.Now()
				errs[i] = all[names[i]]()
				took[i] = time.Since(began)
			})
			for i, err := range errs {
				if unavailable(t, err, ""); took[i] >= 2*patience { // a second try would have been made
					t.Errorf("%s took %v, patience was %v", names[i], took[i], patience)
				}
			}
			n.become(func(n *network) { n.delay, n.swallow = 0, false })
			must(t, say("s", "after "+name))
		})
	}
	t.Run("answers lost", func(t *testing.T) { answersLost(t, n, s) })
	n.become(func(n *network) { n.delay, n.swallow, n.cut = 0, false, 0 })
	if got := len(entries(t, s, memory.Key{Memory: "m", Session: "s"}, memory.Query{})); got != 4 {
		t.Errorf("%d messages were said, want 4", got)
	}
}

// answersLost: a change whose answer is lost was made or not; either way it is
// made once, and a writer who is told of an error may try again.
func answersLost(t *testing.T, n *network, s memory.Store) {
	const writers, each = 4, 30
	n.become(func(n *network) { n.cut = 7 })
	inParallel(writers, func(w int) {
		m := newMemory(t, s)
		for i := range each {
			sayOnce(t, m, fmt.Sprint("l", w%2), fmt.Sprintf("%d-%d", w/2, i))
		}
	})
	n.become(func(n *network) { n.cut = 0 })
	for i := range 2 {
		checkSerial(t, s, memory.Key{Memory: "m", Session: fmt.Sprint("l", i)}, writers/2, each)
	}
}
