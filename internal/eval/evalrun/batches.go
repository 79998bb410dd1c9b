package evalrun

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/qtype-dev/qtype/internal/model/provider"
	"github.com/qtype-dev/qtype/internal/waves"
	"github.com/qtype-dev/qtype/runtime"
)

// JournalSuffix ends the name of the file with finished rows, beside the report.
const JournalSuffix = ".qtype-journal"

// batchWorkers is how many sessions wait for a wave at a time, at most.
const batchWorkers = 5000

// openBatches rejects an evaluation that cannot wait for batches, and one that would forget those of an earlier one. It
// cancels these if the evaluation starts over.
func (x *execution) openBatches(ctx context.Context) error {
	file := x.config.Waves
	if file != nil {
		if why := x.cannotWait(); why != "" {
			return &UsageError{"--batch: " + why}
		}
		if err := x.noteAtOnce(ctx); err != nil {
			return err
		}
	} else if x.config.Journal != "" {
		file = waves.New(strings.TrimSuffix(x.config.Journal, JournalSuffix) + waves.Suffix)
	}
	switch {
	case file == nil || !file.Exists() || x.config.Waves != nil && x.config.Resume:
		return nil
	case x.config.Waves == nil || !x.config.Restart:
		return fmt.Errorf("%s has the batches of an interrupted evaluation: continue it with --batch --resume, or cancel them and start over with --batch --restart", file.Path())
	}
	if _, err := file.Cancel(ctx); err != nil {
		return fmt.Errorf("the batches of the earlier evaluation could not be canceled: %w", err)
	}
	return file.Remove()
}

// noteAtOnce reports the models that have no batches. It is an error if none has, unless batches are not required.
func (x *execution) noteAtOnce(ctx context.Context) error {
	var others []string
	hasBatches := x.config.Waves.Least > 1
	for m := range x.called() {
		isMock := m.Base().IsMock()
		if has, why := provider.WhyAtOnce(m, runtime.PartsOf(ctx).Models, ""); has && why == "" {
			hasBatches = true
		} else if name := m.Base().ID; !isMock && !slices.Contains(others, name) {
			others = append(others, name)
		}
	}
	if !hasBatches {
		return &UsageError{"--batch: no model of the evaluation has batches"}
	}
	if report := x.config.Waves.Report; len(others) > 0 && report != nil {
		report("note: calls of these models are made at once, at the normal price: " + strings.Join(others, ", "))
	}
	return nil
}

// cannotWait returns what the time of batches would change; empty for nothing.
func (x *execution) cannotWait() string {
	for _, m := range x.metrics {
		if m.row.Unit == "s" {
			return "metric " + m.declared.Name() + " would measure the time of batches"
		}
	}
	for _, v := range x.variants {
		for _, f := range v.program.App.Flows {
			for s := range f.Plan().All() {
				if f.ID == x.flow.ID && s.Step.Common().Timeout > 0 {
					return "step " + s.Step.EntityID() + " has a timeout, which would end calls that wait for a batch"
				}
			}
		}
	}
	return ""
}

// closeBatches closes the file of the calls, and removes that of a complete evaluation.
func (x *execution) closeBatches(done bool) error {
	switch {
	case x.config.Waves == nil:
		return nil
	case done:
		return x.config.Waves.Remove()
	}
	return x.config.Waves.Close()
}

// start starts workers that run groups. With batches many wait for their waves, and few run at once.
func (x *execution) start(ctx context.Context, workers *sync.WaitGroup, n int, run func(ctx context.Context, g group), work <-chan group) context.Context {
	few := min(max(x.config.Workers, 1), max(n, 1))
	if x.config.Waves == nil {
		for range few {
			workers.Go(func() {
				for g := range work {
					run(ctx, g)
				}
			})
		}
		return ctx
	}
	n = max(min(n, batchWorkers), 1)
	tasks := x.config.Waves.NewTasks(n, few)
	ctx, stop := context.WithCancelCause(ctx)
	workers.Go(func() {
		defer stop(nil)
		tasks.Send(ctx, x.config.Detach, func(err error) {
			x.fail(err)
			stop(err)
		})
	})
	for range n {
		workers.Go(func() {
			defer tasks.Leave()
			for g := range work {
				ctx, end := tasks.Begin(ctx, fmt.Sprintf("%q %d %d ", x.variants[g.variant].declared.ID, x.data.rows[g.rows[0]].Number, g.trial))
				run(ctx, g)
				end()
			}
		})
	}
	return ctx
}
