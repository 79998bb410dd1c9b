package servers_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/qtype-dev/qtype/distribution/memory/postgres"
	"github.com/qtype-dev/qtype/distribution/memory/redis"
	"github.com/qtype-dev/qtype/internal/servertest"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory"
)

// writerVariable is the environment variable by which this program is a writer on another host: the address
// of its store and the numbers of its first writer and the one after its last.
const writerVariable = "QTYPE_TEST_WRITERS"

const callsOfWriter = 8

// writerCall is a call as the process of a writer prints it; times are those of the computer, which all
// hosts share.
type writerCall struct {
	Writer       int
	Text         string // empty for a read
	Done         bool
	Read         []string
	Began, Ended int64
}

// openURL opens the store of an address.
func openURL(url string) (memory.Store, error) {
	if strings.HasPrefix(url, "redis:") {
		return redis.Open(url)
	}
	return postgres.Open(url)
}

// TestMemory_PartitionWriter is the process of the writers of TestMemory_Partition.
func TestMemory_PartitionWriter(t *testing.T) {
	var url string
	var from, to int
	if _, err := fmt.Sscan(os.Getenv(writerVariable), &url, &from, &to); err != nil {
		return // TestMemory_Partition starts it
	}
	redis.Quiet()
	out := json.NewEncoder(os.Stdout)
	var mu sync.Mutex
	var writers sync.WaitGroup
	for w := from; w < to; w++ {
		store, err := openURL(url)
		testkit.Must(t, err)
		m := newMemory(t, store)
		writers.Go(func() {
			defer func() { _ = store.Close() }()
			for i := range callsOfWriter {
				op := recordCall(t, m, w, i, time.Unix(0, 0))
				c := writerCall{Writer: w, Text: op.Input.(call).text, Began: op.Call, Ended: op.Return}
				if c.Text == "" {
					c.Read = op.Output.([]string)
				} else {
					c.Done = op.Output.(bool)
				}
				mu.Lock()
				_ = out.Encode(c) // the parent misses it
				mu.Unlock()
			}
		})
	}
	writers.Wait()
}

// TestMemory_Partition: 8 writers on 3 hosts append to one session and read it, while one host is removed from the
// network and returns. The calls are those of a list: nothing is lost, and nothing is there twice.
func TestMemory_Partition(t *testing.T) {
	pg, err := servertest.Postgres()
	servertest.Need(t, err)
	defer func() { testkit.Must(t, pg.Close()) }()
	rd, err := servertest.Redis("--appendfsync", "always")
	servertest.Need(t, err)
	defer func() { testkit.Must(t, rd.Close()) }()
	hosts := servertest.NeedHosts(t, 3)
	redis.Quiet()
	for name, local := range map[string]string{
		"postgres": pg.URL() + "&pool_max_conns=1",
		"redis":    "redis://" + rd.Address() + "?pool_size=1",
	} {
		t.Run(name, func(t *testing.T) {
			target := pg.Address()
			if name == "redis" {
				target = rd.Address()
			}
			address, err := hosts.Forward(target)
			testkit.Must(t, err)
			p := &partition{t: t, hosts: hosts, url: strings.Replace(local, net.JoinHostPort("127.0.0.1", port(target)), address, 1), calls: make(chan writerCall, 1024)}
			if p.url == local {
				t.Fatalf("%s has no address of this computer", local)
			}
			all := p.run()
			store, err := openURL(local)
			testkit.Must(t, err)
			all = withPositions(t, all, historyTexts(t, newMemory(t, store)), time.Duration(p.end))
			testkit.Must(t, store.Close())
			if result := porcupine.CheckOperationsTimeout(historyModel, all, time.Minute); result != porcupine.Ok {
				t.Errorf("%d calls are not linearizable: %s", len(all), result)
			}
			t.Logf("%d calls, the longest took %s", len(all), p.longest)
		})
	}
}

// port returns the port of an address.
func port(address string) string {
	_, port, _ := net.SplitHostPort(address)
	return port
}

// partition is a run of TestMemory_Partition on one store.
type partition struct {
	t       *testing.T
	hosts   *servertest.Hosts
	url     string
	calls   chan writerCall
	end     int64
	longest time.Duration
}

// maxCut is how long the host is away at most: others may have to wait for what it has locked.
const maxCut = 4 * time.Second

// run lets the writers work and returns their calls.
func (p *partition) run() (all []porcupine.Operation) {
	var processes sync.WaitGroup
	for host, writers := range [][2]int{{0, 3}, {3, 6}, {6, 8}} {
		cmd := p.hosts.Command(p.t.Context(), host, os.Args[0], "-test.run=^TestMemory_PartitionWriter$")
		cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %d %d", writerVariable, p.url, writers[0], writers[1]))
		out, err := cmd.StdoutPipe()
		testkit.Must(p.t, err)
		testkit.Must(p.t, cmd.Start())
		processes.Go(func() { p.read(cmd, bufio.NewScanner(out)) })
	}
	go func() { processes.Wait(); close(p.calls) }()
	var healed <-chan time.Time
	others := 5 * callsOfWriter
	for n := 0; ; n++ {
		select {
		case c, ok := <-p.calls:
			if !ok {
				if healed != nil {
					testkit.Must(p.t, p.hosts.Heal(0))
				}
				return all
			}
			all = append(all, p.operation(&c))
			if c.Writer >= 3 {
				others--
			}
			if n == callsOfWriter {
				testkit.Must(p.t, p.hosts.Cut(0))
				healed = time.After(maxCut)
			}
			if others > 0 || healed == nil {
				continue
			}
		case <-healed:
		}
		testkit.Must(p.t, p.hosts.Heal(0))
		healed = nil
	}
}

// read reads the calls of a process.
func (p *partition) read(cmd *exec.Cmd, lines *bufio.Scanner) {
	for lines.Scan() {
		var c writerCall
		if json.Unmarshal(lines.Bytes(), &c) == nil { // other lines are those of the test
			p.calls <- c
		}
	}
	if err := cmd.Wait(); err != nil && p.t.Context().Err() == nil {
		p.t.Errorf("a process of writers: %v", err)
	}
}

// operation returns a call for the check.
func (p *partition) operation(c *writerCall) porcupine.Operation {
	p.end, p.longest = max(p.end, c.Ended), max(p.longest, time.Duration(c.Ended-c.Began))
	op := porcupine.Operation{ClientId: c.Writer, Input: call{text: c.Text}, Call: c.Began, Return: c.Ended, Output: c.Done}
	if c.Text == "" {
		op.Output = c.Read
	}
	return op
}
