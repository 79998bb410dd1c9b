package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/journal"
	"github.com/qtype-dev/qtype/runtime"
)

// formCheckpoint is the form of the journal of a flow that gathers rows: a result is
// one cell, the row as it is at the end of a leg (journal.Header.Form).
const formCheckpoint = 1

// withJournal has the run tell the journal of what is finished.
func (l *runJournal) withJournal() runtime.RunOption {
	if l.gathers != "" {
		return runtime.WithCheckpoints(l)
	}
	return runtime.WithRowDone(l.finished)
}

// progress is how far the rows came that the journal has.
func (l *runJournal) progress() string {
	if l.gathers != "" {
		return "came as far as step " + l.gathers
	}
	return "finished"
}

// Keep keeps what a row became on a leg. Rows that failed because the model
// refuses the credentials are not finished: with the right ones they can be.
func (l *runJournal) Keep(row runtime.CheckpointKey, made []runtime.CheckpointRow, last bool) error {
	if slices.ContainsFunc(made, func(k runtime.CheckpointRow) bool { return refused(k.Err) != nil }) {
		return nil
	}
	results := make([]journal.Result, len(made))
	for i, k := range made {
		results[i].Values = []any{k.Data}
		if k.Err != nil {
			results[i].Failure = &journal.Failure{} // the cell has it
		}
	}
	if row.Leg == 0 {
		return l.journal.Add(row.Row, results, last)
	}
	return l.journal.AddGroup(journal.BatchKey{Leg: row.Leg, Digest: row.Digest}, results, last)
}

// Kept hands over what a row became on a leg in an earlier run.
func (l *runJournal) Kept(row runtime.CheckpointKey, take func(data []byte) error) (bool, error) {
	group := journal.BatchKey{Leg: row.Leg, Digest: row.Digest}
	if row.Leg == 0 && !l.journal.Finished(row.Row) || row.Leg > 0 && !l.journal.FinishedGroup(group) {
		return false, nil
	}
	replay, err := l.leg(row.Leg)
	if err != nil {
		return true, err
	}
	each := func(results []journal.Result) error {
		for _, res := range results {
			var data []byte
			if len(res.Values) == 1 {
				data, _ = res.Values[0].([]byte)
			}
			if err := take(data); err != nil {
				return err
			}
		}
		return nil
	}
	if row.Leg == 0 {
		return true, replay.Row(row.Row, each)
	}
	return true, replay.Group(group, each)
}

// leg reads what was finished before on a leg: one reader each, for the rows of
// one leg stand in the journal in about the order in which they are asked for.
func (l *runJournal) leg(leg int) (*journal.Replay, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.legs[leg] == nil {
		replay, err := l.journal.Replay()
		if err != nil {
			return nil, err
		}
		l.legs[leg] = replay
	}
	return l.legs[leg], nil
}

// staleTempFiles are the unfinished outputs, under names that listings hide, of runs
// that were killed. Whether their runs are dead is known once this one has the journal.
func (r *runCommand) staleTempFiles() []string {
	if r.output == "" || r.inputFile == "" {
		return nil
	}
	final := r.output
	if real, err := filepath.EvalSymlinks(final); err == nil {
		final = real
	}
	dir, base := filepath.Split(final)
	if dir == "" {
		dir = "."
	}
	entries, _ := os.ReadDir(dir) // what cannot be listed is left alone
	var stale []string
	for _, e := range entries {
		rest, ok := strings.CutPrefix(e.Name(), "."+base+".")
		id, temporary := strings.CutSuffix(rest, ".tmp")
		if ok && temporary && len(id) == 12 && strings.Trim(id, "0123456789abcdef") == "" && e.Type().IsRegular() {
			stale = append(stale, filepath.Join(dir, e.Name()))
		}
	}
	return stale
}

// remove removes files; one that stays does no harm.
func remove(paths []string) {
	for _, path := range paths {
		_ = os.Remove(path)
	}
}
