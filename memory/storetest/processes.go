package storetest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/spec/chat"
)

// The variables that turn a test binary into a writer.
const (
	placeVariable = "QTYPE_TEST_WRITER" // where its store is
	nameVariable  = "QTYPE_TEST_WRITER_NAME"
	eachVariable  = "QTYPE_TEST_WRITER_EACH"  // messages of each goroutine; 0: until it is killed
	clockVariable = "QTYPE_TEST_WRITER_CLOCK" // how far its clock is ahead
)

const (
	processWriters  = 64 // goroutines of each process
	processSessions = 8
)

// The clocks of killed writers are ahead and behind by up to these. With the ttl a clock that is
// ahead expires no session, unless one that is behind had moved its time back.
const (
	writerTTL  = 24 * time.Hour
	mostAhead  = 20 * time.Hour
	mostBehind = 100 * time.Hour
)

// troubleEach is the number of writers of RunKills of which one has a server that is killed too, and
// one a network that loses everything for a while.
const troubleEach = 4

// WriterMain must be called at the beginning of TestMain of a package that calls
// RunProcesses. In the processes that RunProcesses starts it writes and does not return.
func WriterMain(open func(place string) (store.Store, error)) {
	place := os.Getenv(placeVariable)
	if place == "" {
		return
	}
	each, err := strconv.Atoi(os.Getenv(eachVariable))
	if err == nil {
		err = write(open, place, os.Getenv(nameVariable), each)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// write appends "name.goroutine-0", "-1" and so on in several goroutines, and
// prints what was acknowledged.
func write(open func(place string) (store.Store, error), place, name string, each int) error {
	store, err := open(place)
	if err != nil {
		return err
	}
	ahead, err := time.ParseDuration(os.Getenv(clockVariable))
	if err != nil {
		return err
	}
	m, err := memory.New(memory.Config{ID: "m", Limits: memory.Limits{"token_limit": 400, "chat_history_token_ratio": 0.5, "token_flush_size": 50}, Counter: runes{},
		TTL: writerTTL, Now: func() time.Time { return time.Now().Add(ahead) }}, store)
	if err != nil {
		return err
	}
	if each == 0 {
		go func() { // ends with the parent process
			_, _ = io.Copy(io.Discard, os.Stdin)
			os.Exit(2)
		}()
		each = 1 << 30
		go func() {
			if err := summarize(store, name); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
		}()
	}
	var mu sync.Mutex
	var first error
	inParallel(processWriters, func(g int) {
		for i := range each {
			who := fmt.Sprint(name, ".", g)
			err := m.Append(context.Background(), fmt.Sprint("s", g%processSessions), chat.Text(chat.User, fmt.Sprint(who, "-", i)))
			mu.Lock()
			if err != nil && first == nil {
				first = err
			}
			if err == nil {
				fmt.Println(who)
			}
			mu.Unlock()
			if err != nil {
				return
			}
		}
	})
	if first != nil {
		return first
	}
	return store.Close()
}

// process is a writer in another process.
type process struct {
	*exec.Cmd
	in    io.WriteCloser
	lines *bufio.Scanner
}

func startWriter(t *testing.T, place, name string, each int, ahead time.Duration) *process {
	t.Helper()
	p := &process{Cmd: exec.CommandContext(t.Context(), os.Args[0])}
	p.Env = append(os.Environ(), placeVariable+"="+place, nameVariable+"="+name, eachVariable+"="+strconv.Itoa(each), clockVariable+"="+ahead.String())
	p.Stderr = os.Stderr
	var err error
	p.in, err = p.StdinPipe()
	testkit.Must(t, err)
	out, err := p.StdoutPipe()
	testkit.Must(t, err)
	p.lines = bufio.NewScanner(out)
	testkit.Must(t, p.Start())
	return p
}

// acknowledge counts what the writer prints, until most lines or its end.
func (p *process) acknowledge(acknowledged map[string]int, most int) {
	for n := 0; n < most && p.lines.Scan(); n++ {
		acknowledged[p.lines.Text()]++
	}
}

// RunProcesses checks that several processes on one store lose nothing: two at
// once, and several with wrong clocks that are killed at random moments (QTYPE_KILLS, by
// default 24). place returns the address of an empty store. The package's TestMain must
// call WriterMain.
func RunProcesses(t *testing.T, place func(t *testing.T) string, open func(t *testing.T, place string) store.Store) {
	t.Run("two processes", func(t *testing.T) { twoProcesses(t, place(t), open) })
	t.Run("killed writers", func(t *testing.T) { killedWriters(t, place(t), kills(t), open, nil) })
}

// RunKills is the second part of RunProcesses with a server that no other test uses: address is that of the server, and place
// returns the address of one empty store for that of the server or of a proxy. While each fourth of the
// writers (QTYPE_KILLS, by default 12) is active, the server is killed and restarted; while another fourth
// is, the network between the writers and the server loses everything for a while.
func RunKills(t *testing.T, server Server, address string, place func(address string) string, open func(t *testing.T, place string) store.Store) {
	writers := 12
	if os.Getenv(killsVariable) != "" {
		writers = kills(t)
	}
	n := startNetwork(t, address)
	defer n.close()
	restarts, partitions := 0, 0
	killedWriters(t, place(n.listener.Addr().String()), writers, open, func(round int) bool {
		switch round % troubleEach {
		case 0:
			testkit.Must(t, server.Kill())
			testkit.Must(t, server.Restart())
			restarts++
		case 2:
			n.partition(t)
			partitions++
		default:
			return false
		}
		return true
	})
	t.Logf("%d writers killed, %d restarts of the server, %d partitions of the network", writers, restarts, partitions)
}

// killedWriters starts writers one after the other and kills them. Their clocks differ.
// trouble is called while one of them is active, unless it is nil, and reports whether it made any.
func killedWriters(t *testing.T, where string, n int, open func(t *testing.T, place string) store.Store, trouble func(round int) bool) {
	t.Helper()
	acknowledged := map[string]int{}
	first := startWriter(t, where, "first", 1, 0) // creates the sessions by the right clock
	first.acknowledge(acknowledged, 1<<30)
	testkit.Must(t, first.Wait())
	for round := range n {
		p := startWriter(t, where, fmt.Sprint("w", round), 0, rand.N(mostAhead+mostBehind)-mostBehind)
		p.acknowledge(acknowledged, rand.IntN(48))
		if trouble != nil && trouble(round) {
			p.acknowledge(acknowledged, rand.IntN(48))
		}
		time.Sleep(time.Duration(rand.IntN(2000)) * time.Microsecond) // at any moment of a write
		testkit.Must(t, p.Process.Kill())
		p.acknowledge(acknowledged, 1<<30) // the output before it was killed
		_ = p.Wait()                       // it was killed
	}
	store := open(t, where)
	defer func() { testkit.Must(t, store.Close()) }()
	checkAcknowledged(t, store, 1, acknowledged)
	checkSummaries(t, store)
}

// twoProcesses checks that two processes which write to the same sessions lose nothing.
func twoProcesses(t *testing.T, where string, open func(t *testing.T, place string) store.Store) {
	t.Helper()
	const each = 4
	both := []*process{startWriter(t, where, "a", each, 0), startWriter(t, where, "b", each, 0)}
	acknowledged := make([]map[string]int, len(both))
	inParallel(len(both), func(i int) {
		acknowledged[i] = map[string]int{}
		both[i].acknowledge(acknowledged[i], 1<<30)
	})
	for i, p := range both {
		testkit.Must(t, p.Wait())
		if len(acknowledged[i]) != processWriters {
			t.Errorf("%d goroutines wrote, want %d", len(acknowledged[i]), processWriters)
		}
	}
	store := open(t, where)
	defer func() { testkit.Must(t, store.Close()) }()
	for _, counts := range acknowledged {
		for who, n := range counts {
			if n != each {
				t.Errorf("%s: %d acknowledged, want %d", who, n, each)
			}
		}
	}
	checkAcknowledged(t, store, 0, acknowledged...)
}

// killsVariable is the number of writers that are killed.
const killsVariable = "QTYPE_KILLS"

func kills(t *testing.T) int {
	text := os.Getenv(killsVariable)
	if text == "" {
		return 24
	}
	n, err := strconv.Atoi(text)
	testkit.Must(t, err)
	return n
}

// checkAcknowledged checks that every session's history has no gaps, the messages
// of each writer in order, all acknowledged ones and at most inFlight more of each
// writer. The window is complete.
func checkAcknowledged(t *testing.T, s store.Store, inFlight int, acknowledged ...map[string]int) {
	t.Helper()
	found := map[string]int{}
	for i := range processSessions {
		key := store.Key{Memory: "m", Session: fmt.Sprint("s", i)}
		seq := int64(0)
		for _, e := range entries(t, s, key, store.Query{}) {
			who, number, _ := strings.Cut(e.Message.Text(), "-")
			if seq++; e.Seq != seq || number != strconv.Itoa(found[who]) {
				t.Fatalf("%s: entry %d at position %d is %s after %d of that writer", key.Session, e.Seq, seq, e.Message.Text(), found[who])
			}
			found[who]++
		}
		w, err := newMemory(t, s).Window(t.Context(), key.Session)
		testkit.Must(t, err)
		// A change of a killed writer that the server still had may have come meanwhile.
		if n := len(w.Entries); seq > 0 && (n == 0 || w.Entries[n-1].Seq < seq || w.Tokens > w.Limit) {
			t.Errorf("%s: the window of %d messages, %d tokens does not end with entry %d", key.Session, n, w.Tokens, seq)
		}
	}
	total := 0
	for _, counts := range acknowledged {
		for who, n := range counts {
			if got := found[who]; got < n || got > n+inFlight {
				t.Errorf("%s: %d acknowledged, %d found", who, n, got)
			}
			total += n
		}
	}
	t.Logf("%d messages acknowledged, %d found, by %d writers", total, sum(found), len(found))
}

func sum(counts map[string]int) int {
	total := 0
	for _, n := range counts {
		total += n
	}
	return total
}
