package python

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/qtype-dev/qtype/internal/httpx"
)

// maxWorkers is the most processes of one setting where Options says nothing.
const maxWorkers = 16

// maxLines is how many lines of what functions print are passed on.
const maxLines = 1000

// Options says what a Pool stands on. The zero value will do.
type Options struct {
	Workers int               // the most processes of one setting, and so of calls at once; maxWorkers where it is 0
	Log     func(line string) // is told what functions print, line by line, from several goroutines at once; may be nil
}

// Pool keeps Python processes and lends them out, one to a call. A process is
// started when a call finds none that is free, and serves later calls with the
// modules that it has imported. A Pool is safe for concurrent use.
type Pool struct {
	opts  Options
	alive context.Context // ends with the pool, and every process with it
	end   context.CancelFunc
	lines atomic.Int64 // that functions printed

	mu     sync.Mutex
	groups map[string]*group // by setting
	closed bool
}

// NewPool makes a pool; it starts nothing.
func NewPool(opts Options) *Pool {
	if opts.Workers <= 0 {
		opts.Workers = maxWorkers
	}
	p := &Pool{opts: opts, groups: map[string]*group{}}
	p.alive, p.end = context.WithCancel(context.Background())
	return p
}

// WorkerConfig is what processes are started with; calls of equal settings share them.
type WorkerConfig struct {
	Interpreter string   // the file of the interpreter
	Path        []string // folders in which modules are looked for first
	Env         []string // all of the environment, as NAME=value
	MemoryMB    int      // the most memory of a process, in MiB of address space
}

func (s WorkerConfig) key() string {
	return fmt.Sprintf("%q %q %q %d", s.Interpreter, s.Path, s.Env, s.MemoryMB)
}

// group is the processes of one setting.
type group struct {
	setting WorkerConfig
	permits chan struct{} // holds one for each process that may be at work
	mu      sync.Mutex
	idle    []*worker // the one used last is at the end
}

func (p *Pool) group(s WorkerConfig) *group {
	p.mu.Lock()
	defer p.mu.Unlock()
	g, ok := p.groups[s.key()]
	if !ok {
		g = &group{setting: s, permits: make(chan struct{}, p.opts.Workers)}
		p.groups[s.key()] = g
	}
	return g
}

// call asks a free process and gives it back, unless it cannot serve another
// call. The context's end ends the process, for there is no other way to stop a
// function.
func (p *Pool) call(ctx context.Context, s WorkerConfig, req *request) (*response, error) {
	g := p.group(s)
	select {
	case g.permits <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { <-g.permits }()
	w, err := p.get(ctx, g)
	if err != nil {
		return nil, err
	}
	resp, err := w.ask(ctx, req)
	if err != nil || resp.needsNewWorker() || !p.put(g, w) {
		w.kill()
	}
	return resp, err
}

// get is a process that waits for work.
func (p *Pool) get(ctx context.Context, g *group) (*worker, error) {
	for {
		g.mu.Lock()
		n := len(g.idle)
		if n == 0 {
			g.mu.Unlock()
			return p.start(ctx, g.setting)
		}
		w := g.idle[n-1]
		g.idle = g.idle[:n-1]
		g.mu.Unlock()
		if !w.exited() {
			return w, nil
		}
		w.kill()
	}
}

// put puts a process back, unless the pool was closed meanwhile.
func (p *Pool) put(g *group, w *worker) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.idle = append(g.idle, w)
	return true
}

// closing is how long processes may take to end by themselves.
const closing = time.Second

// Close lets the processes end, and ends those that do not or still work.
func (p *Pool) Close() {
	p.mu.Lock()
	p.closed = true
	var idle []*worker
	for _, g := range p.groups {
		idle = append(idle, g.idle...)
		g.idle = nil
	}
	p.mu.Unlock()
	late := time.NewTimer(closing)
	defer late.Stop()
	for _, w := range idle {
		_ = w.in.Close() // the end of its input is the sign to go
	}
	for _, w := range idle {
		select {
		case <-w.done:
		case <-late.C:
			late.Reset(0)
		}
		w.kill()
		<-w.done
	}
	p.end()
}

// printed passes a line on that a function of the tool has printed.
func (p *Pool) printed(tool, line string) {
	if p.opts.Log == nil || strings.TrimSpace(line) == "" {
		return
	}
	switch n := p.lines.Add(1); {
	case n < maxLines:
		p.opts.Log("tool " + tool + ": " + httpx.SingleLine(line, 500))
	case n == maxLines:
		p.opts.Log("tool " + tool + ": functions print a lot; the rest is left out")
	}
}
