package clienttool

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
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
	state suspensionState
}

// suspensionState is the content of the file.
type suspensionState struct {
	Format int `json:"format"`
	SuspendedRun
	Calls    map[string]json.RawMessage `json:"calls"`
	Requests []*ApprovalRequest         `json:"requests"`
}

// SuspendedRun describes a run that may wait for approvals.
type SuspendedRun struct {
	Run     string    `json:"run"` // a digest of what is run
	ID      string    `json:"id"`  // of the run
	App     string    `json:"app,omitempty"`
	Flow    string    `json:"flow,omitempty"`
	Session string    `json:"session,omitempty"`
	User    string    `json:"user,omitempty"`
	Started time.Time `json:"started,omitzero"`
}

// suspensionFormat is the format of the file, and suspensionStart how the file begins.
const (
	suspensionFormat = 1
	suspensionStart  = `{"format":1,"run":"`
)

// ApprovalRequest is a call of a tool that requires approval.
type ApprovalRequest struct {
	Key       string          `json:"key"` // of the call in the run
	Step      string          `json:"step"`
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
	Answered  bool            `json:"answered"`
	Approved  bool            `json:"approved"`
	Reason    string          `json:"reason,omitempty"` // of a rejection
}

// OpenSuspension reads the file of a run, or begins one if it does not exist: then run describes it.
// next approves calls without a request; it may be nil.
func OpenSuspension(path string, run SuspendedRun, next tool.Approver) (*Suspension, error) {
	s := &Suspension{path: path, next: next,
		state: suspensionState{Format: suspensionFormat, SuspendedRun: run, Calls: map[string]json.RawMessage{}}}
	raw, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return s, nil
	case err != nil:
		return nil, err
	}
	if s.state, err = decodeSuspension(path, raw); err != nil {
		return nil, err
	}
	if s.state.Run != run.Run {
		return nil, fmt.Errorf("%s is of another run: use the same document, flow, input and session, or another file", path)
	}
	return s, nil
}

func decodeSuspension(path string, raw []byte) (s suspensionState, err error) {
	if err := json.Unmarshal(raw, &s); err != nil || s.Format != suspensionFormat || s.Calls == nil {
		return s, fmt.Errorf("%s is not the file of a run that waits for approvals", path)
	}
	return s, nil
}

// IsSuspension reports whether a file begins like the file of a run that waits for approvals.
func IsSuspension(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }() // only read
	start := make([]byte, len(suspensionStart))
	_, err = io.ReadFull(f, start)
	return err == nil && string(start) == suspensionStart
}

// ReadSuspension reads the file of a run, and changes nothing.
func ReadSuspension(path string) (*Suspension, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	state, err := decodeSuspension(path, raw)
	return &Suspension{path: path, state: state}, err
}

// Run describes the run.
func (s *Suspension) Run() SuspendedRun { return s.state.SuspendedRun }

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
	for _, r := range s.state.Requests {
		if r.Key == call.Caller.Key && r.Answered {
			return r.Approved, r.Reason, nil
		}
	}
	s.request(call)
	if err := s.write(); err != nil {
		return false, "", err
	}
	s.stop(memory.ErrSuspended)
	return false, "", memory.ErrSuspended
}

// request adds a request, unless an earlier process has; the mutex is locked.
func (s *Suspension) request(call tool.Request) {
	for _, r := range s.state.Requests {
		if r.Key == call.Caller.Key {
			return
		}
	}
	s.state.Requests = append(s.state.Requests, &ApprovalRequest{Key: call.Caller.Key, Step: call.Caller.Step, Tool: call.Tool.ID, Arguments: call.Args})
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

// RunInput is what a run is started with. A process that continues the run has the same.
type RunInput struct{ Document, Flow, Input, Session, User string }

// Describe returns a new run of an application, which may be nil.
func (in *RunInput) Describe(app *spec.Application) (SuspendedRun, error) {
	full, err := filepath.Abs(in.Document)
	if err != nil {
		return SuspendedRun{}, err
	}
	h := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %q", full, in.Flow, in.Input, memory.UserSession(in.User, in.Session)))
	run := SuspendedRun{Run: hex.EncodeToString(h[:]), ID: chat.NewID(), Flow: in.Flow, Session: in.Session, User: in.User, Started: time.Now().UTC().Truncate(time.Second)}
	if app != nil && len(app.Flows) > 0 {
		run.App, run.Flow = app.ID, cmp.Or(in.Flow, app.Flows[0].ID)
	}
	return run, nil
}

// AnswerAll answers requests: N=yes, N=no, or N=REASON to reject a call.
func (s *Suspension) AnswerAll(given []string) error {
	for _, text := range given {
		number, answer, ok := strings.Cut(text, "=")
		n, err := strconv.Atoi(number)
		if !ok || err != nil {
			return terminal.Usagef("--answer cannot be %q: expected N=yes, N=no or N=REASON", text)
		}
		if err := s.Answer(n, answer); err != nil {
			return terminal.Usagef("--answer %s: %s", text, err)
		}
	}
	return nil
}

// WriteWaiting writes what the run waits for and how to continue it. It reports whether it waits.
func (s *Suspension) WriteWaiting(w io.Writer) bool {
	open := s.Waiting()
	if len(open) == 0 {
		return false
	}
	numbers := slices.Sorted(maps.Keys(open))
	for _, n := range numbers {
		req := open[n]
		fmt.Fprintf(w, "approval %d: step %s wants to call %s %s\n", n, req.Step, req.Tool, terminal.Clean(string(req.Arguments)))
	}
	fmt.Fprintf(w, "to continue, repeat the command with --answer %d=yes, or =no, or =REASON\n", numbers[0])
	return true
}
