// Package localruns finds the runs of the local engine by the files that they leave: journals of runs over
// rows, and the files of runs that wait for approvals. It has them in the form of package durable.
package localruns

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/checkpoint"
	"github.com/qtype-dev/qtype/internal/clienttool"
	"github.com/qtype-dev/qtype/internal/durable"
	"github.com/qtype-dev/qtype/internal/erasure"
	"github.com/qtype-dev/qtype/internal/waves"
	"github.com/qtype-dev/qtype/memory"
)

// The statuses of a local run; a waiting run has durable.WaitingStatus.
const (
	running     = "running"
	interrupted = "interrupted"
	unreadable  = "unreadable"
)

// List returns the runs whose files are in the folders and the folders in them, the newest first. Links
// are not followed.
func List(ctx context.Context, folders []string) ([]durable.Run, error) {
	key, err := checkpoint.UserKey()
	if err != nil {
		return nil, err
	}
	var all []durable.Run
	seen := map[string]bool{}
	for _, folder := range folders {
		err := EachFile(ctx, folder, func(path string, _ fs.DirEntry) error {
			if seen[path] {
				return nil
			}
			seen[path] = true
			r, err := read(path, key)
			if r != nil {
				all = append(all, *r)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(all, func(a, b durable.Run) int {
		return cmp.Or(b.Started.Compare(a.Started), cmp.Compare(a.ID, b.ID))
	})
	return all, nil
}

// Find returns the run with an id: the path of its output, of its journal, or of the file of --suspend. It is
// nil if there is none.
func Find(id string) (*durable.Run, error) {
	key, err := checkpoint.UserKey()
	if err != nil {
		return nil, err
	}
	for _, path := range []string{id + erasure.JournalSuffix, id} {
		if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() {
			continue
		}
		if r, err := read(path, key); r != nil || err != nil {
			return r, err
		}
	}
	return nil, nil
}

// read returns the run of a file, nil if it is of none.
func read(path string, key []byte) (*durable.Run, error) {
	output, isJournal := strings.CutSuffix(path, erasure.JournalSuffix)
	switch {
	case isJournal:
		return journalRun(output, path, key)
	case clienttool.IsSuspension(path):
		return suspendedRun(path)
	}
	return nil, nil
}

// journalRun returns the run of a journal, nil if it was deleted meanwhile.
func journalRun(output, path string, key []byte) (*durable.Run, error) {
	r := &durable.Run{ID: output, Engine: durable.Local, Status: interrupted}
	if checkpoint.IsUsed(path) {
		r.Status = running
	}
	in, err := checkpoint.Inspect(path, key)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		if r.Status != running { // it may be in the middle of its first lines
			r.Status = unreadable
		}
		r.Reason = reasonOf(err)
		return r, nil
	}
	h := in.Header
	r.Started, r.Flow, r.Document, r.Input = h.Started, h.Flow, h.App, h.Input.Path
	r.Rows, r.Failed = in.Finished, in.Failed
	r.Sessions, r.Users = owners(h.Settings["--session"], h.Settings["--user"])
	if r.Batches, err = waves.Inspect(context.Background(), output); err != nil {
		r.Reason = err.Error()
	}
	if r.Status == interrupted && r.Batches != nil && len(r.Batches.Open) > 0 {
		r.Status = durable.WaitingStatus
	}
	return r, nil
}

// reasonOf returns why a journal cannot be read; its path is the id of the run.
func reasonOf(err error) string {
	if known, ok := errors.AsType[*checkpoint.Error](err); ok {
		return known.Reason
	}
	return err.Error()
}

// suspendedRun returns the run of a file of --suspend.
func suspendedRun(path string) (*durable.Run, error) {
	s, err := clienttool.ReadSuspension(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	r := &durable.Run{ID: path, Engine: durable.Local, Status: durable.WaitingStatus}
	if err != nil {
		r.Status, r.Reason = unreadable, err.Error()
		return r, nil //nolint:nilerr // the error is part of the run
	}
	run := s.Run()
	r.Started, r.Flow, r.Document = run.Started, run.Flow, run.App
	r.Sessions, r.Users = owners(run.Session, run.User)
	open := s.Waiting()
	for number, req := range open {
		r.Waiting = append(r.Waiting, durable.Request{Number: number, Kind: durable.Approval, Row: 1, Session: memory.UserSession(run.User, run.Session),
			Step: req.Step, Tool: req.Tool, Arguments: req.Arguments})
	}
	slices.SortFunc(r.Waiting, func(a, b durable.Request) int { return cmp.Compare(a.Number, b.Number) })
	if len(open) == 0 { // all are answered, or its process was killed before it asked
		r.Status = interrupted
	}
	return r, nil
}

// owners returns a session and a user as lists.
func owners(session, user string) (sessions, users []string) {
	if session != "" {
		sessions = []string{session}
	}
	if user != "" {
		users = []string{user}
	}
	return sessions, users
}

// Cancel interrupts the process of a run, as Ctrl-C does. The run can be resumed.
func Cancel(r *durable.Run) error {
	if r.Status != running {
		return fmt.Errorf("%s does not run: it is %s", r.ID, r.Status)
	}
	pid, err := checkpoint.Writer(r.ID + erasure.JournalSuffix)
	if err != nil {
		return fmt.Errorf("%s cannot be canceled from here: %w; end it where it runs (Ctrl-C)", r.ID, err)
	}
	process, err := os.FindProcess(pid)
	if err == nil {
		err = process.Signal(os.Interrupt)
	}
	if err != nil {
		return fmt.Errorf("%s cannot be canceled: process %d: %w", r.ID, pid, err)
	}
	return nil
}

// RetryCommand returns the arguments that continue a run, and the folder in which it was started.
func RetryCommand(r *durable.Run) (args []string, folder string, err error) {
	switch r.Status {
	case interrupted:
	case durable.WaitingStatus:
		if r.Batches != nil {
			break
		}
		return nil, "", fmt.Errorf("%s waits for answers: repeat its command with --suspend %s --answer %d=yes, or =no, or =REASON", r.ID, r.ID, r.Waiting[0].Number)
	default:
		return nil, "", fmt.Errorf("%s cannot be retried: it is %s", r.ID, r.Status)
	}
	return command(r, "--resume")
}

// CancelCommand returns the arguments that cancel the batches of a run whose process has ended, and the folder in
// which it was started; none if it has no batches.
func CancelCommand(r *durable.Run) (args []string, folder string, err error) {
	if r.Status != durable.WaitingStatus || r.Batches == nil {
		return nil, "", nil
	}
	return command(r, "--cancel")
}

// command returns the command of a run with another flag, and the folder in which it was started. Only a
// journal with the key of the user names a command: others may come from anywhere.
func command(r *durable.Run, flag string) (args []string, folder string, err error) {
	key, err := checkpoint.UserKey()
	if err != nil {
		return nil, "", err
	}
	path := r.ID + erasure.JournalSuffix
	in, err := checkpoint.Inspect(path, key)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, "", fmt.Errorf("%s has no journal: repeat the command of the run", r.ID)
	case err != nil:
		return nil, "", err
	case !in.Header.Keyed || len(in.Header.Command) == 0:
		return nil, "", fmt.Errorf("%s does not have the command of the run: repeat it with %s", path, flag)
	}
	return append(in.Header.Command, flag), in.Header.Folder, nil
}
