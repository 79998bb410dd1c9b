package python

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/qtype-dev/qtype/internal/containment"
	"github.com/qtype-dev/qtype/internal/httpx"
	"github.com/qtype-dev/qtype/internal/subprocess"
)

// maxWorkers is the default of Options.Workers.
const maxWorkers = 16

// maxLines is how many lines of the functions' output are logged.
const maxLines = 1000

// Options configure a Pool. The zero value is ready to use.
type Options struct {
	Workers    int                    // maximum number of processes of one configuration, and so of concurrent calls; 0 means maxWorkers
	Supervisor *subprocess.Supervisor // starts the processes; may be nil
	Log        func(line string)      // receives the functions' output by lines, possibly from several goroutines at the same time; may be nil
}

// Pool runs Python processes. A process is started when a call finds no idle one, and
// serves later calls with the modules that it has imported. A Pool is safe for
// concurrent use.
type Pool struct {
	opts  Options
	alive context.Context // ends with the pool, and ends every process
	end   context.CancelFunc
	lines atomic.Int64 // lines of output so far

	mu     sync.Mutex
	groups map[string]*group // by configuration
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

// WorkerConfig is how processes are started; calls with equal configurations share them.
type WorkerConfig struct {
	Interpreter string   // path of the interpreter
	Path        []string // folders that are searched first for modules
	Env         []string // the whole environment, as NAME=value
	MemoryMB    int      // maximum size of a process, in MiB of address space

	Container *containment.Container // limits a process; nil for no limits
}

func (s WorkerConfig) key() string {
	return fmt.Sprintf("%q %q %q %d %s", s.Interpreter, s.Path, s.Env, s.MemoryMB, s.Container.Key())
}

// group holds the processes of one configuration.
type group struct {
	setting WorkerConfig
	permits chan struct{} // one for each call that is running
	mu      sync.Mutex
	idle    []*worker // the most recently used one is last
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

// call runs a request in an idle process. The process returns to the pool unless it can
// serve no further call. The end of the context kills the process, because there is no
// other way to stop a function.
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

// get returns an idle process, or starts one.
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

// put returns a process to the pool; false if the pool is closed.
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

// closeTimeout is how long processes may take to exit.
const closeTimeout = time.Second

// Close lets idle processes exit. It kills processes that do not exit or are still
// working.
func (p *Pool) Close() {
	p.mu.Lock()
	p.closed = true
	var idle []*worker
	for _, g := range p.groups {
		idle = append(idle, g.idle...)
		g.idle = nil
	}
	p.mu.Unlock()
	late := time.NewTimer(closeTimeout)
	defer late.Stop()
	for _, w := range idle {
		_ = w.in.Close() // the process exits at the end of its input
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

// printed logs a line of output of a tool's function.
func (p *Pool) printed(tool, line string) {
	if p.opts.Log == nil || strings.TrimSpace(line) == "" {
		return
	}
	switch n := p.lines.Add(1); {
	case n < maxLines:
		p.opts.Log("tool " + tool + ": " + httpx.SingleLine(line, 500))
	case n == maxLines:
		p.opts.Log("tool " + tool + ": too much output; the rest is not shown")
	}
}
