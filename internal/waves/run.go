package waves

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/qtype-dev/qtype/internal/model/wire"
	"github.com/qtype-dev/qtype/internal/sqlitefile"
	"github.com/qtype-dev/qtype/internal/textfmt"
)

// Run is the calls of one run, in a file. It is safe for concurrent use. It implements steps.CallLog.
type Run struct {
	// Report receives a line about the progress of batches; nil for none.
	Report func(line string)
	// Poll returns how long to wait before a look at batches, after n looks.
	Poll func(n int) time.Duration
	// Least is the number of calls of a model for which a batch is worth waiting, unless the model declares it: fewer are made at
	// once.
	Least int
	// Settle is how long after a creation that may have succeeded a batch is surely listed.
	Settle time.Duration
	// Rebuy is whether the calls of batches that their providers have lost are sent again, although they may have been paid.
	Rebuy bool
	// Window is the time within which calls are made in the background, such as 2h, instead of in batches; empty for batches.
	Window string
	// Log gets the changes of the file, so that another process can repeat them; nil for none.
	Log Log

	file   *sqlitefile.File[statements]
	shared *Shared      // makes the calls of runs that come and go; nil for one run
	ended  atomic.Int64 // batches

	mu      sync.Mutex
	apis    map[string]*modelBatches // by the ids of models
	noted   []call                   // not stored yet
	trouble string                   // the error that was reported last
	failed  error                    // why the file is not usable
	counts  Counts
	repeats map[string]int      // by the ids of calls: how often one that was made at once has failed for a time
	lost    map[int64]int       // by the ids of batches: the calls without an answer of those that are lost
	singles map[singleEvent]int // what was not reported yet
	stalled map[string]bool     // by the ids of models: the newest creation of a batch of one call has failed for a time
}

// Counts is what a run has sent.
type Counts struct {
	Waves, Batches int
	Calls          int // in batches
	Repeated       int // calls that a batch did not make, or that failed for a time, sent again
	Ignored        int // results of no call
	AtOnce         int // calls that were made at once, because their batches took too long
}

// modelBatches is the batch API of a model.
type modelBatches struct {
	wire.Batches
	hold   time.Time // before which no batch is created
	limits wire.BatchLimits
	least  int           // calls for which a batch is worth waiting
	short  map[int64]int // how often the results of batches were not complete
	gone   map[int64]int // how often the provider has said that it does not have a batch
	busy   int           // how often in succession the provider had no room for a batch, and none of the run was waiting
}

// New returns the run of a file, without touching it.
func New(path string) *Run {
	return &Run{
		Poll: poll, Settle: 30 * time.Second, apis: map[string]*modelBatches{}, repeats: map[string]int{}, lost: map[int64]int{}, singles: map[singleEvent]int{}, stalled: map[string]bool{}, file: newFile(path),
	}
}

func newFile(path string) *sqlitefile.File[statements] {
	return sqlitefile.New(path, sqlitefile.Config[statements]{ApplicationID: applicationID, Migrations: migrations, Pragmas: []string{"journal_mode(WAL)", "synchronous(NORMAL)"}, Prepare: prepare})
}

// poll begins with two seconds and ends with a minute.
func poll(n int) time.Duration {
	return min(time.Minute, time.Duration(2*math.Pow(1.5, float64(min(n, 20)))*float64(time.Second)))
}

// newName returns the name of a batch.
func newName() string { return strings.ToLower(rand.Text()) }

// Path returns the path of the file.
func (r *Run) Path() string { return r.file.Path() }

// Exists reports whether there is a file.
func (r *Run) Exists() bool {
	_, err := os.Stat(r.file.Path())
	return err == nil
}

// Close closes the file.
func (r *Run) Close() error { return r.file.Close(nil) }

// Remove closes and deletes the file. The run can begin anew.
func (r *Run) Remove() error {
	err := r.Close()
	defer func() { r.file = newFile(r.file.Path()) }()
	for _, path := range Files(strings.TrimSuffix(r.file.Path(), Suffix)) {
		if removed := os.Remove(path); !errors.Is(removed, os.ErrNotExist) {
			err = errors.Join(err, removed)
		}
	}
	return err
}

// Counts returns what this process has sent.
func (r *Run) Counts() Counts {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.counts
}

// Totals returns what all processes of the run have sent.
func (r *Run) Totals(ctx context.Context) (n Counts, err error) {
	c, err := r.conn()
	if err != nil {
		return n, err
	}
	n.Ignored = r.Counts().Ignored
	err = c.Read.QueryRowContext(ctx, `
SELECT (SELECT coalesce(max(wave), 0) FROM batches), (SELECT count(*) FROM batches), (SELECT coalesce(sum(count), 0) FROM batches WHERE remote <> ''),
  (SELECT coalesce(sum(tries - 1), 0) FROM calls WHERE tries > 1), (SELECT count(*) FROM calls WHERE at_once = 1)`).Scan(&n.Waves, &n.Batches, &n.Calls, &n.Repeated, &n.AtOnce)
	return n, r.storeError(err)
}

// Models returns the ids of the models whose calls are made in batches.
func (r *Run) Models() map[string]bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := map[string]bool{}
	for id := range r.apis {
		all[id] = true
	}
	return all
}

// fail notes that the file is not usable.
func (r *Run) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failed == nil {
		r.failed = err
	}
}

// Failed returns why the file is not usable; nil if it is.
func (r *Run) Failed() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed
}

// report reports progress.
func (r *Run) report(format string, args ...any) {
	if r.Report != nil {
		r.Report(fmt.Sprintf(format, args...))
	}
}

// api returns the batch API of a model.
func (r *Run) api(model string) (*modelBatches, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if api := r.apis[model]; api != nil {
		return api, nil
	}
	return nil, fmt.Errorf("%s has batches of model %s, which the flow does not use", r.file.Path(), model)
}

// SendOptions changes how calls are sent.
type SendOptions struct {
	Most   int  // the number of new calls; the rest waits for the next Send. 0 for all
	Detach bool // return ErrDetached if the batches are created and have not ended
	// For is how long after the first batch of the run the answers are awaited: then ErrLate is returned. 0 for any time.
	For time.Duration
}

// Few returns the models for whose calls that wait a batch is not worth waiting; see NewFew.
func (r *Run) Few() (map[string]bool, error) {
	if _, err := r.Waiting(); err != nil { // stores what was noted
		return nil, err
	}
	all, err := r.waitingCalls(0)
	if err != nil {
		return nil, err
	}
	few := map[string]bool{}
	for _, w := range all {
		if api, err := r.api(w.model); err == nil && (w.calls < api.least || w.alike < api.limits.Least) {
			few[w.model] = true
			r.report("%s to model %s made at once: a batch has at least %d", textfmt.Count(int64(w.calls), "call"), w.model, api.least)
		}
	}
	return few, nil
}

// waitingModel is a model with calls that are in no batch.
type waitingModel struct {
	model string
	calls int
	alike int // the largest number of those that one batch can have
}

// waitingCalls returns the models with calls that are in no batch, and were sent at least that often.
func (r *Run) waitingCalls(tries int) (all []waitingModel, err error) {
	c, err := r.conn()
	if err != nil {
		return nil, err
	}
	rows, err := c.Read.QueryContext(context.Background(), `
SELECT model, sum(n), max(n) FROM (
  SELECT model, count(*) AS n FROM calls WHERE batch IS NULL AND status = 0 AND tries >= ? GROUP BY model, method, head, most
) GROUP BY model ORDER BY model`, tries)
	if err != nil {
		return nil, r.storeError(err)
	}
	defer func() { _ = rows.Close() }() // only read
	for rows.Next() {
		var w waitingModel
		if err := rows.Scan(&w.model, &w.calls, &w.alike); err != nil {
			return nil, r.storeError(err)
		}
		all = append(all, w)
	}
	return all, r.storeError(rows.Err())
}

// LeastCalls returns how many calls a batch of the models has, at least, by the limits of their providers.
func (r *Run) LeastCalls() (least int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, api := range r.apis {
		least = max(least, api.limits.Least)
	}
	return least
}

// Send sends the calls that were noted as batches, waits for their end, and stores the answers. Calls that
// were not made are sent again. If ctx ends, batches go on: a later process finds them in the file.
func (r *Run) Send(ctx context.Context, opts SendOptions) error {
	late, err := r.deadline(ctx, opts.For)
	if err == nil && time.Now().Before(late) {
		err = r.planAll(planWanted{isNew: true, most: opts.Most})
	}
	for n := 0; err == nil; n++ {
		if !time.Now().Before(late) {
			return ErrLate
		}
		var waits bool
		if waits, err = r.step(ctx, opts.Detach); err != nil || !waits {
			return err
		}
		err = r.wait(ctx, min(r.Poll(n), time.Until(late)))
	}
	return err
}

// ErrLate ends the wait for batches that take too long.
var ErrLate = errors.New("the batches take too long")

// deadline returns a time after the first batch of the run; for 0 one that does not come.
func (r *Run) deadline(ctx context.Context, after time.Duration) (time.Time, error) {
	const never = 100 * 365 * 24 * time.Hour
	if after <= 0 {
		return time.Now().Add(never), nil
	}
	c, err := r.conn()
	if err != nil {
		return time.Time{}, err
	}
	first := time.Now().UnixMilli()
	err = c.Read.QueryRowContext(ctx, "SELECT coalesce(min(since), ?) FROM batches", first).Scan(&first)
	return time.UnixMilli(first).Add(after), r.storeError(err)
}

// Pause waits before attempt n.
func (r *Run) Pause(ctx context.Context, n int) error { return r.wait(ctx, r.Poll(n)) }

func (r *Run) wait(ctx context.Context, span time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(span):
	}
	return nil
}

// ErrDetached ends a run whose batches another process collects.
var ErrDetached = errors.New("the batches are sent")

// step plans, creates, reads and collects what can be. It reports whether there is something to wait for.
func (r *Run) step(ctx context.Context, detach bool) (waits bool, err error) {
	if err := r.planAll(planWanted{}); err != nil {
		return false, err
	}
	batches, err := r.live()
	if err != nil {
		return false, err
	}
	isNew := func(b *batch) bool { return b.remote == "" }
	created, unread := slices.DeleteFunc(slices.Clone(batches), func(b *batch) bool { return !isNew(b) }), batches
	if err := r.createAll(created, func(b *batch) error { return r.create(ctx, b) }); err != nil {
		return false, err
	}
	isCreated := !slices.ContainsFunc(created, func(b *batch) bool { return isNew(b) && (!b.single || b.isUnsure()) })
	if err := r.each(slices.DeleteFunc(unread, isNew), func(b *batch) error { return r.read(ctx, b) }); err != nil {
		return false, err
	}
	waits, err = r.hasMore()
	if waits && err == nil && detach && isCreated {
		return false, ErrDetached
	}
	return waits, err
}

// hasMore reports whether calls that were sent have no answer, and can be in a batch.
func (r *Run) hasMore() (bool, error) {
	batches, err := r.live()
	if err != nil || len(batches) > 0 {
		return true, err
	}
	all, err := r.waitingCalls(1)
	return slices.ContainsFunc(all, func(w waitingModel) bool {
		api, unknown := r.api(w.model)
		return unknown != nil || w.alike >= api.limits.Least
	}), err
}

// Waiting returns how many calls were noted and not sent.
func (r *Run) Waiting() (calls int, err error) {
	r.mu.Lock()
	err = r.flush()
	r.mu.Unlock()
	if err == nil {
		err = r.Failed()
	}
	if err != nil {
		return 0, err
	}
	c, err := r.conn()
	if err != nil {
		return 0, err
	}
	err = c.Read.QueryRowContext(context.Background(), "SELECT count(*) FROM calls WHERE batch IS NULL AND status = 0 AND tries = 0").Scan(&calls)
	return calls, r.storeError(err)
}

// planWanted is which of the calls that wait are sent.
type planWanted struct {
	isNew   bool            // also new ones; otherwise only those that are sent again
	most    int             // how many; 0 for all
	without map[string]bool // the ids of models whose calls are made at once
}

// planAll makes batches of the calls that wait.
func (r *Run) planAll(w planWanted) error {
	if w.isNew {
		if _, err := r.Waiting(); err != nil { // stores what was noted
			return err
		}
	}
	limits := func(model string) wire.BatchLimits {
		api, err := r.api(model)
		if err != nil {
			return wire.BatchLimits{Calls: 1, Bytes: 1} // create reports the error
		}
		return api.limits
	}
	hold := func(model string) bool {
		api, err := r.api(model)
		if err != nil { // create reports it
			return r.shared != nil
		}
		return w.without[model] || time.Now().Before(api.hold)
	}
	planned, err := r.plan(planning{limits: limits, hold: hold, tries: btoi(!w.isNew), left: cmp.Or(w.most, math.MaxInt32)})
	if planned > 0 {
		r.mu.Lock()
		r.counts.Waves++
		r.counts.Batches += planned
		r.mu.Unlock()
	}
	return err
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// read reads the state of a batch, and collects one that has ended.
func (r *Run) read(ctx context.Context, b *batch) error {
	api, err := r.api(b.model)
	if err != nil {
		return err
	}
	state, err := api.State(ctx, b.remote)
	switch {
	case isGone(err):
		return r.gone(ctx, b, api, err)
	case err != nil:
		return r.passing(ctx, b, err)
	}
	if state.Word != b.state {
		b.state = state.Word
		if err := r.update(b); err != nil {
			return err
		}
		if !state.Ended {
			r.reportBatch(b, "", "wave %d: batch %s is %s", b.wave, b.remote, b.state)
		}
	}
	switch {
	case !state.Ended:
		return nil
	case state.Failed != nil:
		return r.refused(b, api, state.Failed)
	}
	return r.collect(ctx, b, api, state)
}
