package clienttool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/steps"
	"github.com/qtype-dev/qtype/tool"
)

// Suspension is the file of a run that waits for approvals: what it has called so far, and
// the approvals that it needs. Another process continues the run with it. It implements
// steps.CallLog, and is safe for concurrent use.
type Suspension struct {
	path string
	next tool.Approver // approves calls without a request; nil for none

	mu    sync.Mutex
	stop  context.CancelCauseFunc
	seen  map[string]int // equal calls so far
	state suspensionState
}

// suspensionState is the content of the file.
type suspensionState struct {
	Format   int                        `json:"format"`
	Run      string                     `json:"run"` // what is run
	ID       string                     `json:"id"`  // of the run
	Calls    map[string]json.RawMessage `json:"calls"`
	Requests []*ApprovalRequest         `json:"requests"`
}

// suspensionFormat is the format of the file.
const suspensionFormat = 1

// ApprovalRequest is a call of a tool that requires approval.
type ApprovalRequest struct {
	Key       string          `json:"key"`
	Step      string          `json:"step"`
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
	Answered  bool            `json:"answered"`
	Approved  bool            `json:"approved"`
	Reason    string          `json:"reason,omitempty"` // of a rejection
}

// OpenSuspension reads the file of a run, or begins one if it does not exist. run describes
// what is run, and id is the id of a new run. next approves calls without a request; it may be nil.
func OpenSuspension(path, run, id string, next tool.Approver) (*Suspension, error) {
	s := &Suspension{path: path, next: next, seen: map[string]int{},
		state: suspensionState{Format: suspensionFormat, Run: run, ID: id, Calls: map[string]json.RawMessage{}}}
	raw, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return s, nil
	case err != nil:
		return nil, err
	}
	s.state = suspensionState{}
	if err := json.Unmarshal(raw, &s.state); err != nil || s.state.Format != suspensionFormat || s.state.Calls == nil {
		return nil, fmt.Errorf("%s is not the file of a run that waits for approvals", path)
	}
	if s.state.Run != run {
		return nil, fmt.Errorf("%s is of another run: use the same document, flow, input and session, or another file", path)
	}
	return s, nil
}

// Answer answers a request by its number, from 1: yes, no, or the reason of a rejection.
func (s *Suspension) Answer(number int, text string) error {
	if number < 1 || number > len(s.state.Requests) {
		return fmt.Errorf("%s has no request %d", s.path, number)
	}
	r := s.state.Requests[number-1]
	if r.Answered {
		return fmt.Errorf("request %d has been answered", number)
	}
	r.Answered = true
	r.Approved, r.Reason = ParseApproval(text)
	return nil
}

// ParseApproval reads an answer to an approval: yes, no, or the reason of a rejection.
func ParseApproval(text string) (approved bool, reason string) {
	switch word := strings.TrimSpace(text); strings.ToLower(word) {
	case "y", "yes":
		return true, ""
	case "", "n", "no":
		return false, ""
	default:
		return false, word
	}
}

// RunID returns the id of the run, which stays the same when the run is continued.
func (s *Suspension) RunID() string { return s.state.ID }

// Context returns the context of the run, which ends when the run has to wait.
func (s *Suspension) Context(ctx context.Context) (context.Context, context.CancelCauseFunc) {
	ctx, s.stop = context.WithCancelCause(ctx)
	return steps.WithRunID(steps.WithCallLog(ctx, s), s.state.ID), s.stop
}

// Approve returns the answer to a request. Without one, it ends the run.
func (s *Suspension) Approve(ctx context.Context, call tool.Request) (approved bool, reason string, err error) {
	if s.next != nil {
		approved, reason, err := s.next(ctx, call)
		if approved || err != nil {
			return approved, reason, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	key := fmt.Sprintf("%d %s %s %s", call.Caller.Row, call.Caller.Step, call.Tool.ID, call.Args)
	s.seen[key]++
	key = fmt.Sprintf("%s %d", key, s.seen[key])
	for _, r := range s.state.Requests {
		if r.Key == key && r.Answered {
			return r.Approved, r.Reason, nil
		}
	}
	s.request(key, call)
	if err := s.write(); err != nil {
		return false, "", err
	}
	s.stop(memory.ErrSuspended)
	return false, "", memory.ErrSuspended
}

// request adds a request, unless an earlier process has; the mutex is locked.
func (s *Suspension) request(key string, call tool.Request) {
	for _, r := range s.state.Requests {
		if r.Key == key {
			return
		}
	}
	s.state.Requests = append(s.state.Requests, &ApprovalRequest{Key: key, Step: call.Caller.Step, Tool: call.Tool.ID, Arguments: call.Args})
}

// Waiting returns the requests without an answer, by their numbers.
func (s *Suspension) Waiting() map[int]*ApprovalRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	open := map[int]*ApprovalRequest{}
	for i, r := range s.state.Requests {
		if !r.Answered {
			open[i+1] = r
		}
	}
	return open
}

// Recorded returns the result of a call of an earlier process, nil if there is none.
func (s *Suspension) Recorded(key string) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state.Calls[key]
}

// Record stores the result of a call.
func (s *Suspension) Record(_ context.Context, key string, result []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state.Calls[key] = result
	return s.write()
}

// Remove deletes the file: the run has ended.
func (s *Suspension) Remove() error {
	if err := os.Remove(s.path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// write replaces the file; the mutex is locked.
func (s *Suspension) write() error {
	raw, err := json.Marshal(&s.state)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(s.path), filepath.Base(s.path)+".*") // readable by its owner only
	if err != nil {
		return err
	}
	_, err = f.Write(raw)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), s.path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return fmt.Errorf("%s cannot be written: %w", s.path, err)
	}
	return nil
}
