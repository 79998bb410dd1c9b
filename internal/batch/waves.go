package batch

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"strings"
	"sync"
	"time"

	"github.com/qtype-dev/qtype/internal/remotefs"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/internal/waves"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/steps"
)

// ErrDetached is returned by Run if the run waits for batches that another process collects.
var ErrDetached = errors.New("the run waits for batches")

// checkWaves rejects a run that would forget the batches of an earlier one.
func (cfg *Config) checkWaves() error {
	exists := waves.New(cfg.Output + waves.Suffix).Exists()
	if cfg.Cancel && !exists {
		return fmt.Errorf("--cancel: %s has no batches of an interrupted run", cfg.Output)
	}
	if !exists || cfg.Waves != nil && (cfg.Resume || cfg.Restart || cfg.Cancel) {
		return nil
	}
	return fmt.Errorf("%s has the batches of an interrupted run: continue it with --batch --resume, or cancel them and start over with --batch --restart", cfg.Output+waves.Suffix)
}

// openWaves checks that the run can make calls in batches, and cancels those of a run that is discarded.
func (j *job) openWaves(ctx context.Context, models []model.Info) error {
	switch {
	case j.Waves == nil:
		return nil
	case j.journal == nil:
		return fmt.Errorf("--batch: %s", j.note)
	case j.journal.recompute || len(models) == 0:
		return errors.New("--batch: the flow calls no models")
	}
	j.Waves.Rebuy = j.Rebuy
	j.waves = &waveProgress{job: j}
	j.Waves.Report = j.waves.report
	made := j.Waves.Models()
	if err := j.noteOthers("batches", models, func(m model.Info) bool { return made[m.ID] }, j.whyAtOnce); err != nil {
		return err
	}
	if j.in.total == 1 && j.Waves.Least <= 1 {
		fmt.Fprintln(j.Streams.Err, "note: the run has one row, which waits for a batch of its own")
	}
	if !j.Restart && !j.Cancel || !j.Waves.Exists() {
		return nil
	}
	canceled, err := j.Waves.Cancel(ctx)
	if err != nil {
		return fmt.Errorf("the batches of the earlier run could not be canceled: %w", err)
	}
	switch line := countBatches(canceled) + " of the earlier run canceled"; {
	case j.Cancel:
		j.Waves.Report(line + "; collect the answers that were paid, and send the other calls again, with: " + ResumeCommand(j.Command))
		return j.Waves.Close()
	case canceled > 0:
		j.Waves.Report(line)
	}
	return j.Waves.Remove()
}

// whyAtOnce returns why calls of a model are made at once; empty if its provider has no batches.
func (j *job) whyAtOnce(m model.Info) string {
	for _, doc := range j.app.Spec().Documents() {
		for _, declared := range doc.Models {
			if declared.Base().ID == m.ID {
				_, why := j.app.WhyAtOnce(declared)
				return why
			}
		}
	}
	return ""
}

// checkFlex checks that models have the tier flex, if it is requested.
func (j *job) checkFlex(models []model.Info) error {
	if !j.Flex {
		return nil
	}
	return j.noteOthers("the tier flex", models, func(m model.Info) bool { return !m.Mock && m.Known.HasFlex() }, func(model.Info) string { return "" })
}

// noteOthers writes a note about the models that are called at the normal price, because they do not have what. It is an
// error if none has. why returns a reason beside the provider; empty for none.
func (j *job) noteOthers(what string, models []model.Info, has func(model.Info) bool, why func(model.Info) string) error {
	var others []string
	for _, m := range models {
		kind := m.Provider
		if m.Mock {
			kind = "mock"
		} else if reason := why(m); reason != "" {
			kind += ": " + reason
		}
		if !has(m) {
			others = append(others, fmt.Sprintf("%s (%s)", m.ID, kind))
		}
	}
	switch {
	case len(others) == len(models) && (j.Waves == nil || j.Waves.Least <= 1):
		return fmt.Errorf("--batch: no model of the flow has %s: %s", what, textfmt.List(others))
	case len(others) > 0:
		fmt.Fprintf(j.Streams.Err, "note: calls of these models are made at once, at the normal price: %s\n", terminal.Clean(strings.Join(others, ", ")))
	}
	return nil
}

// runWaves runs the rows until their results are in the journal: each pass notes the calls that have no answer,
// and sends them. Segment by segment, because a batch step takes all rows.
func (j *job) runWaves(ctx context.Context, sum *summary) error {
	if j.Waves == nil {
		return nil
	}
	segments, err := j.app.WaveSegments(j.flow)
	if err != nil {
		return err
	}
	defer j.waves.show(sum)()
	sum.before = j.journal.before
	p := &wavePasses{job: j, events: &passEvents{seed: maphash.MakeSeed(), seen: map[int64]map[uint64]int{}, counted: map[uint64]int{}}}
	p.events.count = func(ev steps.Event) {
		sum.event(ev)
		p.count(ev)
	}
	for _, segment := range segments {
		for {
			suspended, err := p.pass(ctx, segment)
			if err != nil {
				return err
			}
			if j.waves.pass(p.rows-suspended, suspended); suspended == 0 {
				break
			}
			if err := p.next(ctx, suspended); err != nil {
				return err
			}
		}
	}
	return nil
}

// wavePasses are the passes of a run.
type wavePasses struct {
	job    *job
	events *passEvents
	newest *waves.Pass
	rows   int             // results of the newest pass
	atOnce int             // passes that have made calls at once, since batches took too long
	few    map[string]bool // models whose calls are made at once in the next pass, as they are few

	mu  sync.Mutex
	all runtime.Spent // by all passes
}

// pass runs the rows to the end of a segment, and returns how many are suspended.
func (p *wavePasses) pass(ctx context.Context, segment int) (suspended int, err error) {
	j := p.job
	in, err := openInput(ctx, j.Config, j.flow)
	if err != nil {
		return 0, err
	}
	defer in.close()
	in.run = j.in.run
	defer p.events.end()
	p.rows = 0
	limit := &failureLimit{max: j.MaxFailures}
	p.newest = p.newPass()
	ctx = waves.WithPass(steps.WithCallLog(remotefs.WithOwn(ctx, j.InputFile, j.Output, j.ErrorFile), j.Waves), p.newest)
	opts := []runtime.RunOption{
		runtime.WithCheckpoints(j.journal.checkpoints), runtime.WithPartialInput(j.partialReason), runtime.WithSegment(segment),
		runtime.WithEvents(p.events.add, steps.EventUsage, steps.EventTurn, steps.EventFallback, steps.EventDropped, steps.EventShortened, steps.EventToolCall, steps.EventToolResult),
	}
	if b := j.flow.Budget; b != nil {
		opts = append(opts, runtime.WithSharedBudget(runtime.SharedBudget{Budget: *b, Began: time.Now(), Sum: p.spent}))
	}
	for res, err := range j.app.Run(ctx, j.flow.ID, in.rows, opts...) {
		if err == nil && !runtime.Suspended(res) {
			err = limit.check(res)
		}
		if err == nil {
			err = in.err
		}
		if err != nil {
			return 0, err
		}
		if p.rows++; runtime.Suspended(res) {
			suspended++
		}
		p.events.result(res)
	}
	if in.err != nil {
		return 0, in.err
	}
	if err := j.Waves.Failed(); err != nil {
		return 0, err
	}
	return suspended, j.journal.reopen(j.app)
}

// reopen makes the rows that were finished since it was opened those of an earlier run.
func (l *journal) reopen(app *runtime.App) (err error) {
	if err := l.checkpoints.Close(); err != nil {
		return err
	}
	again := l.config
	again.Restart = false
	if l.checkpoints, err = app.OpenCheckpoints(again); err == nil {
		l.before = l.checkpoints.Finished()
	}
	return err
}

// spent returns what all passes have used; see runtime.SharedBudget.
func (p *wavePasses) spent(context.Context, runtime.Spent) (runtime.Spent, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.all, nil
}

// count counts a call.
func (p *wavePasses) count(ev steps.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if ev.Kind == steps.EventUsage || ev.Kind == steps.EventToolCall {
		p.all = runtime.Spent{Calls: p.all.Calls + 1, Tokens: p.all.Tokens + ev.Input + ev.Output, Money: p.all.Money + ev.Cost}
	}
}

// newPass returns the next pass.
func (p *wavePasses) newPass() *waves.Pass {
	if p.atOnce > 0 {
		return p.job.Waves.NewFinish()
	}
	return p.job.Waves.NewFew(p.few)
}

// next makes the calls that the last pass has noted: in a wave, or at once in the next pass if batches take too long.
func (p *wavePasses) next(ctx context.Context, suspended int) (err error) {
	j := p.job
	if err := p.newest.Lost(); err != nil {
		return err
	}
	switch {
	case p.atOnce > 0: // the calls that are left have failed for a time
		p.atOnce++
		return j.Waves.Pause(ctx, p.atOnce)
	case !j.Finish.isDue(suspended, p.rows):
		before := len(p.few)
		if p.few, err = j.Waves.Few(); err != nil {
			return err
		}
		if len(p.few) > 0 {
			if before > 0 { // the calls may have failed for a time
				return j.Waves.Pause(ctx, 0)
			}
			return nil
		}
		if err := p.send(ctx); !errors.Is(err, waves.ErrLate) {
			return err
		}
	}
	p.atOnce++
	j.Waves.Report(fmt.Sprintf("%s left: their calls are made at once", textfmt.Count(int64(suspended), "row")))
	return j.Waves.Finish(ctx)
}

// send sends a wave. It has no more calls than the budget of the flow admits.
func (p *wavePasses) send(ctx context.Context) error {
	j := p.job
	opts := waves.SendOptions{Detach: j.Detach, For: j.Finish.After}
	if j.flow.Budget == nil {
		return j.Waves.Send(ctx, opts)
	}
	n, err := j.Waves.Waiting()
	if err == nil && n > 0 {
		opts.Most, err = p.admitted(n)
	}
	if err != nil {
		return err
	}
	if n > 0 && opts.Most < min(n, j.Waves.LeastCalls()) { // the budget ends calls that are made at once, too
		p.few = j.Waves.Models()
		return nil
	}
	return j.Waves.Send(ctx, opts)
}

// firstCalls is the number of calls that show what a call uses.
const firstCalls = 50

// admitted returns how many of n new calls the budget admits. What a call uses is known from those
// before; without any a few are made first.
func (p *wavePasses) admitted(n int) (int, error) {
	b, over := p.job.flow.Budget, func(what, limit, spent string) error {
		return &runtime.BudgetError{Flow: p.job.flow.ID, What: what, Limit: limit, Spent: spent}
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
		return min(n, max(firstCalls, p.job.Waves.LeastCalls())), nil
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

// closeWaves closes the file of the calls, and removes that of a complete run.
func (j *job) closeWaves(done bool) error {
	switch {
	case j.Waves == nil:
		return nil
	case done:
		return j.Waves.Remove()
	}
	return j.Waves.Close()
}

// wavesAdvice returns how to continue a run that has not come to its end.
func (j *job) wavesAdvice(err error) string {
	if _, lost := errors.AsType[*waves.LostError](err); lost {
		return ": " + LostAdvice(j.Command)
	}
	advice := ": "
	created, unconfirmed, err := j.Waves.Live()
	if err == nil && created > 0 {
		advice += countBatches(created) + " at the provider will go on; "
	}
	if err == nil && unconfirmed > 0 {
		advice += "the creation of " + countBatches(unconfirmed) + " was not confirmed; "
	}
	return advice + "continue with: " + ResumeCommand(j.Command)
}

// LostAdvice returns how a command goes on without the answers of lost batches.
func LostAdvice(args []string) string {
	return "if the keys and the base_url of the models are right, make the calls again, at the price of new ones, with: " + ResumeCommand(args) + " --rebuy"
}

// detached reports that batches were sent.
func (j *job) detached() error {
	n, _, err := j.Waves.Live()
	if err != nil {
		return err
	}
	line := "waiting for " + countBatches(n) + "; collect the answers with: "
	if n == 0 {
		line = "there are calls to send again; continue with: "
	}
	fmt.Fprintln(j.Streams.Err, line+terminal.Clean(ResumeCommand(j.Command)))
	return ErrDetached
}

// waves returns a line with the batches of the run, and with what they or the tier flex saved; empty without any.
func (s *summary) waves() string {
	saved := ""
	if s.saved > 0 {
		saved = fmt.Sprintf("saved %s (%.0f %%)", textfmt.Amount(s.saved), 100*s.saved/(s.saved+s.cost))
	}
	if s.job.Waves == nil {
		return saved
	}
	c := s.job.Waves.Counts()
	parts := []string{fmt.Sprintf("batches: %s of %s in %s", countBatches(c.Batches), textfmt.Count(int64(c.Calls), "call"), textfmt.Count(int64(c.Waves), "wave"))}
	if saved != "" {
		parts = append(parts, saved)
	}
	if c.Repeated > 0 {
		parts = append(parts, textfmt.Count(int64(c.Repeated), "call")+" sent again")
	}
	if c.AtOnce > 0 {
		parts = append(parts, textfmt.Count(int64(c.AtOnce), "call")+" made at once")
	}
	if c.Ignored > 0 {
		parts = append(parts, textfmt.Count(int64(c.Ignored), "result")+" of no call ignored")
	}
	return strings.Join(parts, " · ")
}

// countBatches returns a number with its unit.
func countBatches(n int) string {
	if n == 1 {
		return "1 batch"
	}
	return textfmt.Thousands(n) + " batches"
}
