package runtime

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/qtype-dev/qtype/internal/checkpoint"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/internal/timer"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/steps"
)

// Checkpoints is the file in which a run records finished rows and their results. An
// interrupted run is resumed from it. Open it with App.OpenCheckpoints and pass it to one
// Run with WithCheckpoints.
type Checkpoints struct {
	journal     *checkpoint.Journal
	flow        string
	retryFailed bool
}

// CheckpointConfig describes a run, so that only the same run is resumed.
type CheckpointConfig struct {
	Path        string            // the file
	Flow        string            // the flow's id; empty for the first flow
	Input       string            // the file with the input rows, whose content must not change; empty if there is none
	Settings    map[string]string // what else changes the results, such as the range of rows; the names appear in errors
	Restart     bool              // discard what the file has
	RetryFailed bool              // run failed rows again
	Begun       bool              // rows have results elsewhere, so that the run must be the same although none is finished
	Command     []string          // the arguments of the command line, for programs that list runs; may be empty
}

// ChangedRunError reports a checkpoint file of another run than the one to resume.
type ChangedRunError struct {
	Path     string   // the file
	Finished int64    // the number of input rows that it has
	Changes  []string // what is different
}

// Error lists the changes.
func (e *ChangedRunError) Error() string {
	return fmt.Sprintf("%s is of another run: %s", e.Path, strings.Join(e.Changes, "; "))
}

// OpenCheckpoints opens the checkpoint file of a run, or creates it. The error is a
// *ChangedRunError if the input, the settings, or the declarations of the flow and of
// what it uses have changed since. Keys that only change how fast or at what price rows
// are processed may change, such as timeout, retry, num_workers and prices. A file in the
// format of another version is an error.
func (a *App) OpenCheckpoints(cfg CheckpointConfig) (*Checkpoints, error) {
	flow, err := a.Flow(cfg.Flow)
	if err != nil {
		return nil, err
	}
	now := checkpoint.Header{
		Started: time.Now().UTC().Truncate(time.Second), Run: rand.Text(), Flow: flow.ID, Settings: maps.Clone(cfg.Settings),
		App: a.Spec().ID, Command: slices.Clone(cfg.Command),
		Parts: checkpoint.Fingerprint(flow, checkpoint.FingerprintOptions{Ignore: []string{"description", "ui", "fallbacks"}}),
	}
	if len(cfg.Command) > 0 {
		if now.Folder, err = os.Getwd(); err != nil {
			return nil, err
		}
	}
	if cfg.Input != "" {
		if now.Input, err = checkpoint.Describe(cfg.Input); err != nil {
			return nil, fmt.Errorf("%s: %w", cfg.Input, textfmt.WithoutPath(err))
		}
	}
	c := &Checkpoints{flow: flow.ID, retryFailed: cfg.RetryFailed}
	if c.journal, err = openJournal(cfg, now); err != nil {
		return nil, err
	}
	if cfg.RetryFailed {
		c.journal.ForgetFailed()
	}
	return c, nil
}

// openJournal opens the journal with finished rows of the same run, or creates one.
func openJournal(cfg CheckpointConfig, now checkpoint.Header) (*checkpoint.Journal, error) {
	key, err := checkpoint.UserKey()
	if err != nil {
		return nil, err
	}
	if cfg.Restart {
		return checkpoint.Create(cfg.Path, now, key)
	}
	j, err := checkpoint.Open(cfg.Path, key)
	if errors.Is(err, fs.ErrNotExist) {
		return checkpoint.Create(cfg.Path, now, key)
	}
	if err != nil {
		return nil, err
	}
	changes := j.Header().Changes(now)
	if len(changes) == 0 {
		return j, nil
	}
	finished, _ := j.Rows()
	empty := j.Empty()
	if err := j.Close(); err != nil {
		return nil, err
	}
	if empty && !cfg.Begun {
		return checkpoint.Create(cfg.Path, now, key)
	}
	return nil, &ChangedRunError{Path: cfg.Path, Finished: finished, Changes: changes}
}

// Path returns the path of the file.
func (c *Checkpoints) Path() string { return c.journal.Path() }

// Finished returns the number of input rows that were finished when the file was
// opened. In a flow with batch steps, these rows had reached the first of them.
func (c *Checkpoints) Finished() int64 {
	finished, _ := c.journal.Rows()
	return finished
}

// RunID returns the id of the run, which stays the same when the run is resumed.
func (c *Checkpoints) RunID() string { return c.journal.Header().Run }

// Close closes the file, from which the run can be resumed.
func (c *Checkpoints) Close() error { return c.journal.Close() }

// Remove closes and deletes the file: the run is complete.
func (c *Checkpoints) Remove() error { return c.journal.Remove() }

// WithCheckpoints records finished rows in c. Rows that c has from an earlier run
// are not processed again: their results are yielded in their place, with the
// outputs of the flow only, and with Result.Replayed set. A turn that the earlier
// run has committed to a memory is not repeated either. The input must have the
// same rows in the same order. Rows that failed because a model rejected the
// credentials are never finished.
//
// A flow with batch steps is resumed in segments: rows before the first batch step are
// not processed again, the step itself is, and rows after it are found by their values.
// The error of Run is a *NotResumableError for a flow whose progress cannot be recorded.
func WithCheckpoints(c *Checkpoints) RunOption {
	return func(r *run) {
		r.checkpoints, r.checkpointFlow = c.journal, c.flow
		if !c.retryFailed { // the answer of a committed turn may be why its row has failed
			r.id = c.journal.Header().Run
		}
	}
}

// WithRunID gives a run an id, which is the same when the run is resumed: a turn that
// a run with this id has committed to a memory is not repeated, its answer is used.
// WithCheckpoints does the same. Different runs need different ids.
func WithRunID(id string) RunOption { return func(r *run) { r.id = id } }

// NotResumableError reports a flow whose progress cannot be recorded.
type NotResumableError struct {
	Flow string // the flow's id
	Step string // the step that is the reason
}

// Error names the step.
func (e *NotResumableError) Error() string {
	return fmt.Sprintf("step %s of flow %s counts rows of a conversation, so the run cannot be resumed", e.Step, e.Flow)
}

// BatchSteps returns the ids of the batch steps of a flow, in its order. Their results
// belong to no single row. The error is a *NotResumableError if a run of the flow
// cannot have checkpoints.
func (a *App) BatchSteps(f *spec.Flow) ([]string, error) {
	c, err := a.compile(f, 0)
	if err != nil {
		return nil, err
	}
	return c.batchSteps()
}

// WaveSegments returns the numbers of the segments of a flow that call models; see WithSegment.
func (a *App) WaveSegments(f *spec.Flow) (numbers []int, err error) {
	c, err := a.compile(f, 0)
	if err != nil {
		return nil, err
	}
	for _, s := range c.stages {
		for _, n := range s.nodes {
			for p := range n.plan.All() {
				if len(p.Models()) > 0 && !slices.Contains(numbers, s.segment) {
					numbers = append(numbers, s.segment)
				}
			}
		}
	}
	return numbers, nil
}

func (f *flow) batchSteps() (ids []string, err error) {
	for _, s := range f.stages {
		if s.isBatch {
			ids = append(ids, s.nodes[0].id)
			continue
		}
		for _, n := range s.nodes {
			if n.closer != nil {
				return ids, &NotResumableError{Flow: f.spec.ID, Step: n.id}
			}
		}
	}
	return ids, nil
}

// checkResumable returns an error if the run has checkpoints and its flow cannot
// have them.
func (r *run) checkResumable() error {
	if r.checkpoints == nil {
		return nil
	}
	if id := r.flow.spec.ID; r.checkpointFlow != id {
		return fmt.Errorf("the checkpoints are of flow %s, not of flow %s", r.checkpointFlow, id)
	}
	_, err := r.flow.batchSteps()
	return err
}

// CredentialsRejected returns the error of the model that rejected its credentials
// (HTTP status 401 or 403), nil if a row did not fail or failed for another reason.
func CredentialsRejected(err *steps.Error) *model.Error {
	if err == nil {
		return nil
	}
	if failure, ok := errors.AsType[*model.Error](err); ok && slices.Contains([]int{http.StatusUnauthorized, http.StatusForbidden}, failure.Status) {
		return failure
	}
	return nil
}

// StoreFailed returns the error of a memory store that no row can use now: it is
// unreachable, locked or full, or refuses this program. It is nil if a row did not fail or
// failed for another reason.
func StoreFailed(err *steps.Error) *memory.StoreError {
	if err == nil {
		return nil
	}
	unusable := []store.ErrorKind{store.Unavailable, store.Locked, store.Full, store.Denied, store.TooNew}
	if failure, ok := errors.AsType[*memory.StoreError](err); ok && slices.Contains(unusable, failure.Problem) {
		return failure
	}
	return nil
}

// OutageLasts returns the error of a server that was away for longer than WithOutage permits, nil if a row did not fail
// or failed for another reason.
func OutageLasts(err *steps.Error) error {
	if err == nil {
		return nil
	}
	if failure, away := errors.AsType[*timer.OutageError](err); away {
		return failure
	}
	return nil
}

// liveSlots returns the slots that are read from the start of a segment on, by its
// steps, by later ones, or as an output of the flow.
func (f *flow) liveSlots(segment int) []int {
	live := make([]bool, f.layout.Len())
	mark := func(v *spec.Variable) {
		if slot := f.layout.Slot(v); slot >= 0 {
			live[slot] = true
		}
	}
	for _, ref := range f.spec.Outputs {
		mark(ref.To)
	}
	for _, s := range f.stages {
		if s.segment < segment {
			continue
		}
		for _, n := range s.nodes {
			for _, ref := range n.plan.Reads {
				mark(ref.To)
			}
			for slot := range live {
				live[slot] = live[slot] || n.plan.ReadsAll
			}
		}
	}
	var slots []int
	for slot, is := range live {
		if is {
			slots = append(slots, slot)
		}
	}
	return slots
}

// run is one run of a flow.
type run struct {
	flow     *flow
	part     func([]stage) []stage // returns the stages of the flow that run; nil for all
	stages   []stage               // those that run
	progress *Progress
	listen   func(steps.Event)
	kinds    []steps.EventKind
	outputs  []outputSlot       // the flow's
	mayDefer func(*Result) bool // see WithDeferFailed; nil if each failed row may wait
	timed    bool               // the time of each step is measured
	partial  func() string      // see WithPartialInput; may be nil
	replayed atomic.Bool        // rows of an earlier run were taken from a journal

	observers []steps.Observer // see WithObserver
	trace     *flowTrace       // nil if nothing observes the run

	id             string           // see WithRunID
	checkpoints    checkpoint.Store // nil if nothing is recorded
	checkpointFlow string           // the id of the flow that they are of

	outage time.Duration // see WithOutage

	budget *SharedBudget // see WithSharedBudget; nil for a budget of this run
}

// partialReason returns why the run may miss a part of its input. The journal does not record rows that a
// step with on_error dropped or continued without outputs; later steps may make other entries of them, or
// none.
func (r *run) partialReason() string {
	if r.partial != nil {
		if reason := r.partial(); reason != "" {
			return reason
		}
	}
	if _, isJournal := r.checkpoints.(*checkpoint.Journal); !isJournal || !r.replayed.Load() {
		return ""
	}
	for p := range r.flow.spec.Plan().All() {
		if policy := errorPolicy(p.Step.Common().OnError); policy == onErrorSkip || policy == onErrorContinue {
			return steps.MayHaveLost
		}
	}
	return ""
}

// RunOption changes one run.
type RunOption func(*run)

// feed pushes all inputs through the chain.
func (r *run) feed(ctx context.Context, rows iter.Seq[Input], first sink) error {
	number := int64(0)
	made := r.flow.newRowAllocator()
	for in := range rows {
		number++
		if in.Number > 0 {
			number = in.Number
		}
		r.progress.rows.Add(1)
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		row := made.fromInput(ctx, in, number)
		r.trace.begin(row)
		if err := first.push(ctx, row); err != nil {
			return err
		}
	}
	// The rows may have ended because the caller canceled the run. A budget that the last row
	// exceeds has nothing left to stop.
	if cause := context.Cause(ctx); cause != nil && !isBudget(cause) {
		return cause
	}
	return first.finish(ctx)
}

// isBudget reports whether a run ends because it is over its budget.
func isBudget(err error) bool {
	_, over := errors.AsType[*BudgetError](err)
	return over
}
