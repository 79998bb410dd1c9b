package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/qtype-dev/qtype/internal/journal"
	"github.com/qtype-dev/qtype/internal/records"
	"github.com/qtype-dev/qtype/internal/remotefs"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec"
)

// journalSuffix is what a journal's name has behind the output's.
const journalSuffix = ".qtype-journal"

// runJournal is the journal of a run and how far its results were handed on.
// A nil *runJournal is a run without a journal.
type runJournal struct {
	journal *journal.Journal
	replay  *journal.Replay // what was finished before; nil where nothing was
	next    int64           // the first row that was finished before and is not handed on yet
	last    int64           // the last row that was finished before
	before  int64           // how many rows were
	format  records.Format
	shape   outputColumns
	gathers string // the first step that gathers rows: what comes out belongs to no single row, so rows are kept by the legs of their way; empty where there is none
	mu      sync.Mutex
	legs    map[int]*journal.Replay // what was finished before on each leg, where rows are kept so
}

// openJournal begins the journal of a run, or goes on with that of one that was
// interrupted. It is nil where a run cannot be resumed; then note says why.
func (r *runCommand) openJournal(app *runtime.App, flow *spec.Flow, in *input) (l *runJournal, note string, err error) {
	if r.inputFile == "" || r.output == "" {
		return nil, "", nil // --resume was refused
	}
	if why := r.unresumable(app, flow); why != "" {
		if r.resume {
			return nil, "", fmt.Errorf("--resume: %s", why)
		}
		return nil, why, nil
	}
	format, _ := records.FormatOf(r.output) // was checked
	l = &runJournal{format: format, shape: r.shape(flow, in), legs: map[int]*journal.Replay{}}
	now, err := r.describe(flow, resultColumns(format, l.shape))
	if err != nil {
		return nil, "", err
	}
	if gather, _ := app.BatchSteps(flow); len(gather) > 0 { // its error was told of
		l.gathers, now.Form = gather[0], formCheckpoint
	}
	if err := l.open(r, now); err != nil {
		return nil, "", err
	}
	l.next, l.last = now.Offset+1, l.journal.Last()
	if l.before, _ = l.journal.Rows(); l.before > 0 && l.gathers == "" {
		l.replay, err = l.journal.Replay()
	}
	return l, "", err
}

// name is what the turns of memories are known by when a row is done again after an
// interruption. Rows that failed are to be done afresh, whatever they said: their
// answer may be why they failed.
func (l *runJournal) name(retryFailed bool) string {
	if retryFailed {
		return ""
	}
	return l.journal.Header().Run
}

// unresumable is why a run has no journal; empty where it has one.
func (r *runCommand) unresumable(app *runtime.App, flow *spec.Flow) string {
	var counts *runtime.NotResumableError
	switch _, err := app.BatchSteps(flow); {
	case errors.As(err, &counts):
		return counts.Error() + ", and a run of it cannot be resumed"
	case err != nil:
		return "" // the run says so itself
	}
	for _, path := range []string{r.inputFile, r.output} {
		if _, remote := remotefs.Remote(path); remote {
			return path + " is not a file of this machine, and only a run between two of those can be resumed"
		}
		if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
			return path + " is a pipe or a device, and a run with one cannot be resumed"
		}
	}
	if r.ephemeral && len(runtime.MemoryIDs(flow)) > 0 {
		return "--ephemeral forgets the conversations, and a run of them cannot be resumed"
	}
	return ""
}

// describe tells what the run is of.
func (r *runCommand) describe(flow *spec.Flow, columns []records.Column) (journal.Header, error) {
	file, err := journal.Describe(r.inputFile)
	if err != nil {
		return journal.Header{}, fmt.Errorf("%s: %w", r.inputFile, plainCause(err))
	}
	h := journal.Header{Started: time.Now().UTC().Truncate(time.Second), Run: rand.Text(), Input: file, Offset: r.offset, Limit: r.limit,
		Flow: flow.ID, Parts: runtime.Fingerprints(flow), Options: map[string]string{}}
	for name, v := range map[string]string{"session": r.session, "session-column": r.sessionColumn} {
		if v != "" {
			h.Options[name] = v
		}
	}
	for _, c := range columns {
		h.Columns = append(h.Columns, c.Name)
	}
	return h, nil
}

// open finds the journal that there is, or makes one.
func (l *runJournal) open(r *runCommand, now journal.Header) (err error) {
	path := r.output + journalSuffix
	if r.restart {
		l.journal, err = journal.Create(path, now)
		return err
	}
	l.journal, err = journal.Open(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if _, err := os.Stat(r.output); err == nil && r.resume {
			return fmt.Errorf("--resume: %s is there and has no journal: nothing was interrupted; without --resume it is written anew", r.output)
		}
		l.journal, err = journal.Create(path, now)
		return err
	case err != nil:
		return err
	}
	rows, failed := l.journal.Rows()
	if !r.resume {
		if groups := l.journal.Groups(); rows+groups > 0 {
			_ = l.journal.Close() // nothing was added
			return fmt.Errorf("%s holds %s of a run that was interrupted: --resume goes on with it, --restart begins again", path, count(max(rows, groups), "finished row"))
		}
		_ = l.journal.Close() // nothing was added
		l.journal, err = journal.Create(path, now)
		return err
	}
	if changes := l.journal.Header().Changes(now); len(changes) > 0 {
		_ = l.journal.Close() // nothing was added
		return fmt.Errorf("--resume: this is not the run that was interrupted: %s; --restart begins again", strings.Join(changes, "; "))
	}
	if r.retryFailed && (failed > 0 || l.gathers != "") {
		l.journal.ForgetFailed()
	}
	return nil
}

// finished keeps what became of a row. Rows that failed because the model
// refuses the credentials are not finished: with the right ones they can be.
func (l *runJournal) finished(number int64, results []*runtime.Result, last bool) error {
	if slices.ContainsFunc(results, func(res *runtime.Result) bool { return refused(res.Err) != nil }) {
		return nil
	}
	all := make([]journal.Result, len(results))
	for i, res := range results {
		all[i] = journal.Result{Values: plainCells(l.shape.values(l.format, res)), Failure: failureOf(res)}
	}
	return l.journal.Add(number, all, last)
}

// seen tells whether a row was finished before.
func (l *runJournal) seen(number int64) bool { return l != nil && l.journal.Finished(number) }

// until hands on what became of the rows before one that were finished before.
func (l *runJournal) until(number int64, take func(number int64, res journal.Result) error) error {
	if l == nil || l.replay == nil {
		return nil
	}
	for ; l.next < number && l.next <= l.last; l.next++ {
		if !l.journal.Finished(l.next) {
			continue
		}
		err := l.replay.Row(l.next, func(some []journal.Result) error {
			for _, res := range some {
				if err := take(l.next, res); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// end keeps the journal of a run that did not come to its end, and removes the
// other.
func (l *runJournal) end(done bool) error {
	if l == nil {
		return nil
	}
	if l.replay != nil {
		_ = l.replay.Close() // it was only read
	}
	for _, leg := range l.legs {
		_ = leg.Close() // it was only read
	}
	if done {
		return l.journal.Remove()
	}
	return l.journal.Close()
}

// advice is how to go on with a run that has ended before its time; empty where
// it cannot be.
func (l *runJournal) advice(args []string) string {
	if l == nil {
		return ""
	}
	command := []string{"qtype"}
	for _, a := range args {
		if a != "--resume" && a != "--restart" {
			command = append(command, quoted(a))
		}
	}
	return ": what is finished is in " + l.journal.Path() + "; go on with: " + strings.Join(append(command, "--resume"), " ")
}

// quoted is a word as a shell takes it.
func quoted(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:=@%+,", r)
	}
	if word != "" && strings.IndexFunc(word, func(r rune) bool { return !plain(r) }) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
