package batch

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/internal/waves"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/steps"
)

// Passes run the rows of a flow again and again, until each of them is finished: a pass notes the calls of models that have no answer,
// and they are sent in batches before the next one.
type Passes struct {
	App         *runtime.App // its models make their calls in Waves
	Flow        *spec.Flow
	Waves       *waves.Run
	Finish      Finish        // when the rest is done without batches
	Detach      bool          // end with waves.ErrDetached when the batches of a wave are created
	MaxFailures int64         // the number of failed rows that ends the passes; 0 for any number
	Budget      *spec.Budget  // of the flow; nil for none
	Spent       runtime.Spent // from the budget, before
	// Begin begins a pass over a segment of the flow; see runtime.WithSegment.
	Begin func(ctx context.Context, segment int) (*Pass, error)
	Event func(steps.Event)    // is called once for each event, by several goroutines
	Done  func(done, left int) // is called after each pass, with numbers of rows

	events *passEvents
	newest *waves.Pass
	rows   int             // results of the newest pass
	atOnce int             // passes that have made calls at once, since batches took too long
	few    map[string]bool // models whose calls are made at once in the next pass, as they are few

	mu  sync.Mutex
	all runtime.Spent // by all passes
}

// Pass is one pass over the rows.
type Pass struct {
	Context   context.Context
	Rows      iter.Seq[runtime.Input]
	Options   []runtime.RunOption // with the store of finished rows
	ReadError func() error        // why Rows has ended early; nil if it has not
	End       func() error        // is called when all rows have results, or are suspended: finished ones are not run again
	Close     func()              // is called at the end in any case
}

// Run makes passes, segment by segment, because a batch step takes all rows. Then the results of all rows are stored.
func (p *Passes) Run(ctx context.Context) error {
	segments, err := p.App.WaveSegments(p.Flow)
	if err != nil {
		return err
	}
	p.all = p.Spent
	p.events = &passEvents{seed: maphash.MakeSeed(), seen: map[int64]map[uint64]int{}, counted: map[uint64]int{}}
	p.events.count = func(ev steps.Event) {
		p.Event(ev)
		p.count(ev)
	}
	for _, segment := range segments {
		for {
			suspended, err := p.pass(ctx, segment)
			if err != nil {
				return err
			}
			if p.Done(p.rows-suspended, suspended); suspended == 0 {
				break
			}
			if err := p.next(ctx, suspended); err != nil {
				return err
			}
		}
	}
	return nil
}

// pass runs the rows to the end of a segment, and returns how many are suspended.
func (p *Passes) pass(ctx context.Context, segment int) (suspended int, err error) {
	begun, err := p.Begin(ctx, segment)
	if err != nil {
		return 0, err
	}
	defer begun.Close()
	defer p.events.end()
	p.rows = 0
	limit := &failureLimit{max: p.MaxFailures}
	p.newest = p.newPass()
	opts := append(slices.Clone(begun.Options), runtime.WithSegment(segment),
		runtime.WithEvents(p.events.add, steps.EventUsage, steps.EventTurn, steps.EventFallback, steps.EventDropped, steps.EventShortened, steps.EventToolCall, steps.EventToolResult))
	if p.Budget != nil {
		opts = append(opts, runtime.WithSharedBudget(runtime.SharedBudget{Budget: *p.Budget, Began: time.Now(), Sum: p.spent}))
	}
	for res, err := range p.App.Run(waves.WithPass(begun.Context, p.newest), p.Flow.ID, begun.Rows, opts...) {
		if err == nil && !runtime.Suspended(res) {
			err = limit.check(res)
		}
		if err == nil {
			err = begun.ReadError()
		}
		if err != nil {
			return 0, err
		}
		if p.rows++; runtime.Suspended(res) {
			suspended++
		}
		p.events.result(res)
	}
	if err := begun.ReadError(); err != nil {
		return 0, err
	}
	if err := p.Waves.Failed(); err != nil {
		return 0, err
	}
	return suspended, begun.End()
}

// spent returns what all passes have used; see runtime.SharedBudget.
func (p *Passes) spent(context.Context, runtime.Spent) (runtime.Spent, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.all, nil
}

// count counts a call.
func (p *Passes) count(ev steps.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if ev.Kind == steps.EventUsage || ev.Kind == steps.EventToolCall {
		p.all = runtime.Spent{Calls: p.all.Calls + 1, Tokens: p.all.Tokens + ev.Input + ev.Output, Money: p.all.Money + ev.Cost}
	}
}

// newPass returns the next pass.
func (p *Passes) newPass() *waves.Pass {
	if p.atOnce > 0 {
		return p.Waves.NewFinish()
	}
	return p.Waves.NewFew(p.few)
}

// next makes the calls that the last pass has noted: in a wave, or at once in the next pass if batches take too long.
func (p *Passes) next(ctx context.Context, suspended int) (err error) {
	if err := p.newest.Lost(); err != nil {
		return err
	}
	switch {
	case p.atOnce > 0: // the calls that are left have failed for a time
		p.atOnce++
		return p.Waves.Pause(ctx, p.atOnce)
	case !p.Finish.isDue(suspended, p.rows):
		before := len(p.few)
		if p.few, err = p.Waves.Few(); err != nil {
			return err
		}
		if len(p.few) > 0 {
			if before > 0 { // the calls may have failed for a time
				return p.Waves.Pause(ctx, 0)
			}
			return nil
		}
		if err := p.send(ctx); !errors.Is(err, waves.ErrLate) {
			return err
		}
	}
	p.atOnce++
	p.Waves.Report(fmt.Sprintf("%s left: their calls are made at once", textfmt.Count(int64(suspended), "row")))
	return p.Waves.Finish(ctx)
}

// send sends a wave. It has no more calls than the budget of the flow admits.
func (p *Passes) send(ctx context.Context) error {
	opts := waves.SendOptions{Detach: p.Detach, For: p.Finish.After}
	if p.Budget == nil {
		return p.Waves.Send(ctx, opts)
	}
	n, err := p.Waves.Waiting()
	if err == nil && n > 0 {
		opts.Most, err = p.admitted(n)
	}
	if err != nil {
		return err
	}
	if n > 0 && opts.Most < min(n, p.Waves.LeastCalls()) { // the budget ends calls that are made at once, too
		p.few = p.Waves.Models()
		return nil
	}
	return p.Waves.Send(ctx, opts)
}

// firstCalls is the number of calls that show what a call uses.
const firstCalls = 50

// admitted returns how many of n new calls the budget admits. What a call uses is known from those
// before; without any a few are made first.
func (p *Passes) admitted(n int) (int, error) {
	b, over := p.Budget, func(what, limit, spent string) error {
		return &runtime.BudgetError{Flow: p.Flow.ID, What: what, Limit: limit, Spent: spent}
	}
	if b.Calls > 0 {
		if n = min(n, b.Calls-p.all.Calls); n <= 0 {
			return 0, over("calls", fmt.Sprint(b.Calls), fmt.Sprintf("%d and more", p.all.Calls))
		}
	}
	if b.Tokens <= 0 && b.Money <= 0 {
		return n, nil
	}
	if p.all.Calls == 0 {
		return min(n, max(firstCalls, p.Waves.LeastCalls())), nil
	}
	calls := float64(p.all.Calls)
	if b.Tokens > 0 {
		if each := float64(p.all.Tokens) / calls; each > 0 {
			n = min(n, int(float64(b.Tokens-p.all.Tokens)/each))
		}
		if n <= 0 {
			return 0, over("tokens", fmt.Sprint(b.Tokens), fmt.Sprintf("%d and more", p.all.Tokens))
		}
	}
	if b.Money > 0 {
		if each := p.all.Money / calls; each > 0 {
			n = min(n, int((b.Money-p.all.Money)/each))
		}
		if n <= 0 {
			return 0, over("money", textfmt.Amount(b.Money), textfmt.Amount(p.all.Money)+" and more")
		}
	}
	return n, nil
}

// passEvents counts the events of all passes: the steps of a suspended row are repeated in the next one, and
// report the same events again, before new ones.
type passEvents struct {
	count func(steps.Event) // is called once for each event

	mu        sync.Mutex
	seed      maphash.Seed
	seen      map[int64]map[uint64]int // in this pass, by the numbers of rows and the keys of events; 0 for events of no single row
	counted   map[uint64]int           // in the passes before, of rows that are not finished
	last      int64                    // the newest row with a result
	suspended bool                     // one of its results is
}

// key returns the key of the kind of an event of a step after a call: rows that one was divided into have the same number.
func (e *passEvents) key(ev *steps.Event) uint64 {
	return maphash.Comparable(e.seed, struct {
		row          int64
		step, origin string
		kind         steps.EventKind
	}{ev.Row, ev.Step, ev.Origin, ev.Kind})
}

// add notes an event of a pass.
func (e *passEvents) add(ev steps.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	key, row := e.key(&ev), e.seen[ev.Row]
	if row == nil {
		row = map[uint64]int{}
		e.seen[ev.Row] = row
	}
	if row[key]++; row[key] > e.counted[key] {
		e.count(ev)
	}
}

// result notes a result of a pass.
func (e *passEvents) result(res *runtime.Result) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if res.Number != e.last {
		e.close()
		e.last, e.suspended = res.Number, false
	}
	e.suspended = e.suspended || runtime.Suspended(res)
}

// close ends the newest row. The mutex is locked.
func (e *passEvents) close() {
	switch {
	case e.last == 0:
		return
	case e.suspended:
		e.keep(e.last)
	default:
		for key := range e.seen[e.last] {
			delete(e.counted, key)
		}
	}
	delete(e.seen, e.last)
}

// keep keeps how many events of a row were counted.
func (e *passEvents) keep(row int64) {
	for key, n := range e.seen[row] {
		e.counted[key] = max(e.counted[key], n)
	}
}

// end ends a pass.
func (e *passEvents) end() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.close()
	e.last = 0
	for row := range e.seen {
		e.keep(row)
	}
	clear(e.seen)
}
