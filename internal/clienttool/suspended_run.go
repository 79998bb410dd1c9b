package clienttool

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
)

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
