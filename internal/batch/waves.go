package batch

import (
	"context"
	"errors"
	"fmt"
	"strings"

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
	case j.journal == nil && j.remote == nil:
		return fmt.Errorf("--batch: %s", j.note)
	case j.flow.Plan().IsComputation() || len(models) == 0:
		return errors.New("--batch: the flow calls no models")
	}
	if err := j.checkWindow(); err != nil {
		return err
	}
	j.Waves.Rebuy = j.Rebuy
	j.waves = &waveProgress{job: j}
	j.Waves.Report = j.waves.report
	made, what := j.Waves.Models(), "batches"
	if j.Waves.Window != "" {
		what = "responses in the background"
	}
	if err := j.noteOthers(what, models, func(m model.Info) bool { return made[m.ID] }, j.whyAtOnce); err != nil {
		return err
	}
	if j.in.total == 1 && j.Waves.Least <= 1 {
		fmt.Fprintln(j.Streams.Err, "note: the run has one row, which waits for a batch of its own")
	}
	if j.remote != nil && j.Cancel {
		return j.remote.Wait(ctx, j.engineJob(&runtime.Progress{}, nil))
	}
	if j.remote != nil || !j.Restart && !j.Cancel || !j.Waves.Exists() {
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

// windowKey is the key of the window of a run, in the file of its calls.
const windowKey = "window"

// checkWindow checks that the calls of an interrupted run were sent as those of this one are.
func (j *job) checkWindow() error {
	if j.remote != nil || !j.Waves.Exists() {
		return nil
	}
	if window := string(j.Waves.Recorded(windowKey)); window != j.Waves.Window {
		flag := "--batch"
		if window != "" {
			flag += "=" + window
		}
		err := fmt.Errorf("--batch: the interrupted run was one with %s: continue it with that, or cancel its calls with %s --cancel and remove %s", flag, flag, j.Waves.Path())
		return errors.Join(err, j.Waves.Close())
	}
	return j.Waves.Failed()
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

// runWaves runs the rows until their results are in the journal, or those of the engine are there.
func (j *job) runWaves(ctx context.Context, progress *runtime.Progress, sum *summary) error {
	if j.Waves == nil {
		return nil
	}
	defer j.waves.show(sum)()
	if j.remote != nil {
		return j.remote.Wait(ctx, j.engineJob(progress, sum))
	}
	if j.Waves.Window != "" {
		if err := j.Waves.Record(ctx, windowKey, []byte(j.Waves.Window)); err != nil {
			return err
		}
	}
	sum.before = j.journal.before
	p := &Passes{
		App: j.app, Flow: j.flow, Waves: j.Waves, Finish: j.Finish, Detach: j.Detach, MaxFailures: j.MaxFailures, Budget: j.flow.Budget,
		Begin: j.beginPass, Event: sum.event, Done: j.waves.pass,
	}
	return p.Run(ctx)
}

// beginPass opens the input for a pass.
func (j *job) beginPass(ctx context.Context, _ int) (*Pass, error) {
	in, err := openInput(ctx, j.Config, j.flow)
	if err != nil {
		return nil, err
	}
	in.run = j.in.run
	return &Pass{
		Context: steps.WithCallLog(remotefs.WithOwn(ctx, j.InputFile, j.Output, j.ErrorFile), j.Waves), Rows: in.rows,
		Options:   []runtime.RunOption{runtime.WithCheckpoints(j.journal.checkpoints), runtime.WithPartialInput(j.partialReason)},
		ReadError: func() error { return in.err }, Close: in.close, End: func() error { return j.journal.reopen(j.app) },
	}, nil
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

// closeWaves closes the file of the calls, and removes that of a complete run.
func (j *job) closeWaves(done bool) error {
	switch {
	case j.Waves == nil || j.remote != nil:
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
	if j.remote != nil {
		fmt.Fprintln(j.Streams.Err, terminal.Clean(j.remote.Advice()+"; collect the output with: "+ResumeCommand(j.Command)))
		return ErrDetached
	}
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
	c := s.job.waves.counts()
	parts := []string{fmt.Sprintf("batches: %s of %s in %s", countBatches(c.Batches), textfmt.Count(int64(c.Calls), "call"), textfmt.Count(int64(c.Waves), "wave"))}
	if s.job.Waves.Window != "" {
		parts[0] = fmt.Sprintf("background: %s in %s", textfmt.Count(int64(c.Calls), "call"), textfmt.Count(int64(c.Waves), "wave"))
	}
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
