package batch

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/qtype-dev/qtype/internal/remotefs"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec"
)

// journalSuffix is appended to the name of the output to name its journal.
const journalSuffix = ".qtype-journal"

// journal has the checkpoints of a run. A nil *journal is a run without a
// journal.
type journal struct {
	checkpoints *runtime.Checkpoints
	config      runtime.CheckpointConfig // to open it again
	recompute   bool                     // the steps only compute: no rows are stored, a resumed run computes them again
	before      int64                    // the number of input rows that were finished before
	batchStep   string                   // the first batch step of the flow, empty if it has none
}

// openJournal opens the journal of a run, or creates it. It is nil if the run
// cannot be resumed; note is then the reason.
func openJournal(app *runtime.App, flow *spec.Flow, cfg *Config) (l *journal, note string, err error) {
	if cfg.InputFile == "" || cfg.Output == "" || cfg.Engine != nil {
		return nil, "", nil // the caller has rejected --resume, or the engine resumes the run
	}
	if why := cfg.unresumable(app, flow); why != "" {
		if cfg.Resume {
			return nil, "", fmt.Errorf("--resume: %s", why)
		}
		return nil, why, nil
	}
	if err := cfg.checkWaves(); err != nil {
		return nil, "", err
	}
	l = &journal{recompute: flow.Plan().IsComputation(), config: cfg.checkpoints(flow)}
	if l.checkpoints, err = openCheckpoints(app, cfg, l.config); err != nil {
		return nil, "", err
	}
	if !l.recompute {
		l.before = l.checkpoints.Finished()
	}
	if steps, _ := app.BatchSteps(flow); len(steps) > 0 { // unresumable has reported its error
		l.batchStep = steps[0]
	}
	return l, "", nil
}

// checkpoints describes the journal of a run.
func (cfg *Config) checkpoints(flow *spec.Flow) runtime.CheckpointConfig {
	return runtime.CheckpointConfig{Path: cfg.Output + journalSuffix, Flow: flow.ID, Input: cfg.InputFile, Settings: cfg.settings(),
		Begun: cfg.Waves != nil && cfg.Waves.Exists(), Restart: cfg.Restart, RetryFailed: cfg.RetryFailed, Command: recordedCommand(cfg.Command)}
}

func openCheckpoints(app *runtime.App, cfg *Config, c runtime.CheckpointConfig) (*runtime.Checkpoints, error) {
	_, missing := os.Stat(c.Path)
	if missing != nil && cfg.Resume {
		if _, err := os.Stat(cfg.Output); err == nil {
			return nil, fmt.Errorf("--resume: no interrupted run found for %s; omit --resume to overwrite it", cfg.Output)
		}
	}
	checkpoints, err := app.OpenCheckpoints(c)
	changed, isOther := errors.AsType[*runtime.ChangedRunError](err)
	switch {
	case isOther && (cfg.Resume || cfg.Cancel):
		return nil, fmt.Errorf("--resume: this is not the run that was interrupted: %s; --restart starts over", strings.Join(changed.Changes, "; "))
	case isOther:
		return nil, interruptedError(c.Path, changed.Finished)
	case err != nil, cfg.Resume, cfg.Cancel, cfg.Restart, missing != nil:
		return checkpoints, err
	}
	finished := checkpoints.Finished()
	if err := checkpoints.Close(); err != nil {
		return nil, err
	}
	if finished > 0 {
		return nil, interruptedError(c.Path, finished)
	}
	c.Restart = true // a new run does not use turns that the earlier one has committed
	return app.OpenCheckpoints(c)
}

// recordedCommand returns the arguments that a journal has. They are none if one is an address that may have
// a password: files have no secrets.
func recordedCommand(args []string) []string {
	for _, a := range withoutAddress(args) {
		if strings.Contains(a, "://") && strings.ContainsAny(a, "@?") {
			return nil
		}
	}
	return withoutResume(args)
}

// interruptedError reports a journal that a new run would replace.
func interruptedError(path string, rows int64) error {
	return fmt.Errorf("%s has an interrupted run (%s finished): use --resume to continue or --restart to start over", path, textfmt.Count(rows, "row"))
}

// unresumable returns why a run has no journal, "" if it has one.
func (cfg *Config) unresumable(app *runtime.App, flow *spec.Flow) string {
	_, err := app.BatchSteps(flow)
	if cause, ok := errors.AsType[*runtime.NotResumableError](err); ok {
		return cause.Error()
	}
	if err != nil {
		return "" // the run reports it
	}
	if cfg.InputFile == stdinFile {
		return "standard input cannot be read again, so the run cannot be resumed"
	}
	for _, path := range []string{cfg.InputFile, cfg.Output} {
		if _, remote := remotefs.Remote(path); remote {
			return path + " is not a local file, so the run cannot be resumed"
		}
		if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
			return path + " is a pipe or a device, so the run cannot be resumed"
		}
	}
	if cfg.Ephemeral && len(runtime.MemoryIDs(flow)) > 0 {
		return "--ephemeral does not store the conversations, so the run cannot be resumed"
	}
	return ""
}

// settings returns the flags that change the results of a run.
func (cfg *Config) settings() map[string]string {
	all := map[string]string{
		"--offset": strconv.FormatInt(cfg.Offset, 10), "--limit": strconv.FormatInt(cfg.Limit, 10),
		"--session": cfg.Session, "--session-column": cfg.SessionColumn, "--user": cfg.User, "--user-column": cfg.UserColumn,
	}
	if cfg.SessionPerRow {
		all["--session-per-row"] = "true"
	}
	for name, v := range all {
		if v == "" {
			delete(all, name)
		}
	}
	return all
}

// progress describes how far the rows of the journal came.
func (l *journal) progress() string {
	if l.batchStep != "" {
		return "reached step " + l.batchStep
	}
	return "finished"
}

// end removes the journal of a run that is complete, and keeps another.
func (l *journal) end(done bool) error {
	switch {
	case l == nil:
		return nil
	case done:
		return l.checkpoints.Remove()
	}
	return l.checkpoints.Close()
}

// advice returns how to continue a run that has not come to its end; "" if it cannot be
// continued.
func (l *journal) advice(args []string) string {
	if l == nil {
		return ""
	}
	if l.recompute {
		return ": its steps only compute, so that all rows run again; continue with: " + ResumeCommand(args)
	}
	return ": finished rows are in " + l.checkpoints.Path() + "; continue with: " + ResumeCommand(args)
}
