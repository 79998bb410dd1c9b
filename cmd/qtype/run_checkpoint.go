package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/qtype-dev/qtype/internal/remotefs"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec"
)

// journalSuffix is appended to the name of the output to name its journal.
const journalSuffix = ".qtype-journal"

// runJournal has the checkpoints of a run. A nil *runJournal is a run without a
// journal.
type runJournal struct {
	checkpoints *runtime.Checkpoints
	before      int64  // the number of input rows that were finished before
	batchStep   string // the first batch step of the flow, empty if it has none
}

// openJournal opens the journal of a run, or creates it. It is nil if the run
// cannot be resumed; note is the reason.
func (r *runCommand) openJournal(app *runtime.App, flow *spec.Flow) (l *runJournal, note string, err error) {
	if r.inputFile == "" || r.output == "" {
		return nil, "", nil // validateFlags has rejected --resume
	}
	if why := r.unresumable(app, flow); why != "" {
		if r.resume {
			return nil, "", fmt.Errorf("--resume: %s", why)
		}
		return nil, why, nil
	}
	cfg := runtime.CheckpointConfig{Path: r.output + journalSuffix, Flow: flow.ID, Input: r.inputFile, Settings: r.settings(),
		Restart: r.restart, RetryFailed: r.retryFailed}
	if _, err := os.Stat(cfg.Path); err != nil && r.resume {
		if _, err := os.Stat(r.output); err == nil {
			return nil, "", fmt.Errorf("--resume: no interrupted run found for %s; omit --resume to overwrite it", r.output)
		}
	}
	l = &runJournal{}
	l.checkpoints, err = app.OpenCheckpoints(cfg)
	changed, isOther := errors.AsType[*runtime.ChangedRunError](err)
	switch {
	case isOther && r.resume:
		return nil, "", fmt.Errorf("--resume: this is not the run that was interrupted: %s; --restart starts over", strings.Join(changed.Changes, "; "))
	case isOther:
		return nil, "", interruptedError(cfg.Path, changed.Finished)
	case err != nil:
		return nil, "", err
	}
	if l.before = l.checkpoints.Finished(); l.before > 0 && !r.resume {
		return nil, "", errors.Join(interruptedError(cfg.Path, l.before), l.checkpoints.Close())
	}
	if steps, _ := app.BatchSteps(flow); len(steps) > 0 { // unresumable has reported its error
		l.batchStep = steps[0]
	}
	return l, "", nil
}

// interruptedError reports a journal that a new run would replace.
func interruptedError(path string, rows int64) error {
	return fmt.Errorf("%s has an interrupted run (%s finished): use --resume to continue or --restart to start over", path, count(rows, "row"))
}

// unresumable returns why a run has no journal, "" if it has one.
func (r *runCommand) unresumable(app *runtime.App, flow *spec.Flow) string {
	_, err := app.BatchSteps(flow)
	if cause, ok := errors.AsType[*runtime.NotResumableError](err); ok {
		return cause.Error()
	}
	if err != nil {
		return "" // the run reports it
	}
	for _, path := range []string{r.inputFile, r.output} {
		if _, remote := remotefs.Remote(path); remote {
			return path + " is not a local file, so the run cannot be resumed"
		}
		if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
			return path + " is a pipe or a device, so the run cannot be resumed"
		}
	}
	if r.ephemeral && len(runtime.MemoryIDs(flow)) > 0 {
		return "--ephemeral does not store the conversations, so the run cannot be resumed"
	}
	return ""
}

// settings are the flags that change the results of a run.
func (r *runCommand) settings() map[string]string {
	all := map[string]string{
		"--offset": strconv.FormatInt(r.offset, 10), "--limit": strconv.FormatInt(r.limit, 10),
		"--session": r.session, "--session-column": r.sessionColumn,
	}
	for name, v := range all {
		if v == "" {
			delete(all, name)
		}
	}
	return all
}

// progress describes the state of the rows of the journal.
func (l *runJournal) progress() string {
	if l.batchStep != "" {
		return "reached step " + l.batchStep
	}
	return "finished"
}

// end removes the journal if the run is complete, else closes it.
func (l *runJournal) end(done bool) error {
	switch {
	case l == nil:
		return nil
	case done:
		return l.checkpoints.Remove()
	}
	return l.checkpoints.Close()
}

// advice is how to continue an incomplete run; "" if it cannot be resumed.
func (l *runJournal) advice(args []string) string {
	if l == nil {
		return ""
	}
	command := []string{"qtype"}
	for _, a := range args {
		if a != "--resume" && a != "--restart" {
			command = append(command, shellQuote(a))
		}
	}
	return ": finished rows are in " + l.checkpoints.Path() + "; continue with: " + strings.Join(append(command, "--resume"), " ")
}

// shellQuote quotes a word for a shell where it is needed.
func shellQuote(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:=@%+,", r)
	}
	if word != "" && strings.IndexFunc(word, func(r rune) bool { return !plain(r) }) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
