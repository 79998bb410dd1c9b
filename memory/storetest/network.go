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

	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/spec/chat"
)

// network is a proxy between a store and its server that delays and loses data.
type network struct {
	server   string // its address
	listener net.Listener
	all      sync.WaitGroup

	mu      sync.Mutex // guards the fields below
	open    map[net.Conn]bool
	delay   time.Duration // before each part of a response
	discard bool          // data is discarded, and the connections stay open
	noticed chan struct{} // closed when data is discarded; nil: no caller waits
	cut     int           // every cut-th part of a response is discarded and its connection closed; 0: none
	pieces  int           // parts of responses so far
}

func startNetwork(t *testing.T, server string) *network {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Must(t, err)
	n := &network{server: server, listener: l, open: map[net.Conn]bool{}}
	n.all.Go(n.accept)
	return n
}

// close closes all connections. The stores must be closed before.
func (n *network) close() {
	_ = n.listener.Close() // it was open
	n.configure((*network).closeAll)
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
			_ = client.Close() // as if the server were down
			continue
		}
		n.mu.Lock()
		n.open[client], n.open[server] = true, true
		n.mu.Unlock()
		both := func() {
			_ = client.Close() // may be closed already
			_ = server.Close()
		}
		n.all.Go(func() { defer both(); n.proxy(server, client, n.request) })
		n.all.Go(func() { defer both(); n.proxy(client, server, n.response) })
	}
}

// proxy copies data from one side to the other as far as pass allows.
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

func (n *network) request() (on, lost bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.notice()
	return !n.discard, false
}

// notice reports to partition that data is discarded. The caller holds the lock.
func (n *network) notice() {
	if n.discard && n.noticed != nil {
		close(n.noticed)
		n.noticed = nil
	}
}

// partition discards all data until there was some, in a request or a response, and then
// breaks the connections: their streams lack it. It fails the test if nothing is sent.
func (n *network) partition(t *testing.T) {
	t.Helper()
	noticed := make(chan struct{})
	n.configure(func(n *network) { n.discard, n.noticed = true, noticed })
	select {
	case <-noticed:
	case <-time.After(time.Minute):
		t.Error("no data was lost by a partition")
	}
	n.configure(func(n *network) {
		n.discard, n.noticed = false, nil
		n.closeAll()
	})
}

// closeAll closes all connections, whose goroutines end. The caller holds the lock.
func (n *network) closeAll() {
	for c := range n.open {
		_ = c.Close() // may be closed already
	}
	clear(n.open)
}

func (n *network) response() (on, lost bool) {
	n.mu.Lock()
	n.pieces++
	n.notice()
	delay, on, lost := n.delay, !n.discard, n.cut > 0 && n.pieces%n.cut == 0
	n.mu.Unlock()
	time.Sleep(delay)
	return on, lost
}

// configure changes the behavior of the network.
func (n *network) configure(change func(n *network)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	change(n)
}

// RunNetwork checks a store on a slow network that discards requests and loses responses.
// server is the server's address. open returns a store for the given address whose
// operations fail after timeout; the suite closes it.
func RunNetwork(t *testing.T, server string, timeout time.Duration, open func(address string) store.Store) {
	var waiting sync.WaitGroup // checks that wait for the timeout, while others run
	defer waiting.Wait()
	for name, change := range map[string]func(n *network){
		"too slow":  func(n *network) { n.delay = 2 * timeout },
		"discarded": func(n *network) { n.discard = true },
	} {
		c := connect(t, server, open)
		waiting.Go(func() { t.Run(name, func(t *testing.T) { c.check(t, timeout, change) }) })
	}
	c := connect(t, server, open)
	t.Run("slow", func(t *testing.T) {
		c.network.configure(func(n *network) { n.delay = timeout / 50 })
		testkit.Must(t, c.append(t, "slowly"))
		c.network.configure(func(n *network) { n.delay = 0 })
		c.checkLen(t, 2)
	})
	t.Run("lost responses", func(t *testing.T) { lostResponses(t, c.network, c.store) })
}

// connected is a store that reaches its server by a network.
type connected struct {
	network *network
	store   store.Store
	memory  *memory.Memory
}

// connect returns a store with one message in the session s. It is closed with the test.
func connect(t *testing.T, server string, open func(address string) store.Store) connected {
	t.Helper()
	n := startNetwork(t, server)
	t.Cleanup(n.close)
	s := open(n.listener.Addr().String())
	t.Cleanup(func() { testkit.Must(t, s.Close()) })
	c := connected{n, s, newMemory(t, s)}
	testkit.Must(t, c.append(t, "before"))
	return c
}

// append adds a message to the session s.
func (c connected) append(t *testing.T, text string) error {
	return c.memory.Append(t.Context(), "s", chat.Text(chat.User, text))
}

// checkLen checks the number of messages of the session s.
func (c connected) checkLen(t *testing.T, want int) {
	t.Helper()
	if got := len(entries(t, c.store, store.Key{Memory: "m", Session: "s"}, store.Query{})); got != want {
		t.Errorf("the history has %d messages, want %d", got, want)
	}
}

// check checks that operations fail after the timeout while the network is changed, and not afterwards.
func (c connected) check(t *testing.T, timeout time.Duration, change func(*network)) {
	c.network.configure(change)
	all := operations(t.Context(), c.store, store.Key{Memory: "m", Session: "s"})
	names := slices.Collect(maps.Keys(all))
	errs, took := make([]error, len(names)), make([]time.Duration, len(names))
	inParallel(len(names), func(i int) {
		began := time.Now()
		errs[i] = all[names[i]]()
		took[i] = time.Since(began)
	})
	for i, err := range errs {
		if checkUnavailable(t, err, ""); took[i] >= 2*timeout { // it tried a second time
			t.Errorf("%s took %v, the timeout was %v", names[i], took[i], timeout)
		}
	}
	c.network.configure(func(n *network) { n.delay, n.discard = 0, false })
	testkit.Must(t, c.append(t, "after"))
	c.checkLen(t, 2)
}

// lostResponses checks that a change whose response was lost is made once, even if
// the writer tries again after the error.
func lostResponses(t *testing.T, n *network, s store.Store) {
	const writers, each = 4, 30
	n.configure(func(n *network) { n.cut = 17 }) // a new connection of PostgreSQL needs several responses
	inParallel(writers, func(w int) {
		m := newMemory(t, s)
		for i := range each {
			addOnce(t, m, fmt.Sprint("l", w%2), fmt.Sprintf("%d-%d", w/2, i))
		}
	})
	n.configure(func(n *network) { n.cut = 0 })
	for i := range 2 {
		checkSerial(t, s, store.Key{Memory: "m", Session: fmt.Sprint("l", i)}, writers/2, each)
	}
}
