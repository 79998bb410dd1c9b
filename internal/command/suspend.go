package command

import (
	"context"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/qtype-dev/qtype/internal/cli"
	"github.com/qtype-dev/qtype/internal/clienttool"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/tool"
)

// errSuspended ends a run that waits for approvals; what it waits for was printed.
var errSuspended = fmt.Errorf("the run waits for approvals: %w", cli.ErrSilent)

// errDetached ends a run that waits for batches; how to continue it was printed.
var errDetached = fmt.Errorf("the run waits for batches: %w", cli.ErrSilent)

// suspendFlags let a run wait for approvals by other processes.
type suspendFlags struct {
	file    string
	answers []string // N=ANSWER
}

func (s *suspendFlags) addTo(f *pflag.FlagSet) {
	f.StringVar(&s.file, "suspend", "", "store a run that needs an approval in `FILE` and end with status 3; if FILE exists, continue its run")
	f.StringArrayVar(&s.answers, "answer", nil, "with --suspend, answer approval `N`: N=yes, N=no, or N=REASON to reject the call (repeatable)")
}

// check rejects flags that exclude each other.
func (s *suspendFlags) check(inputFile string, ephemeral bool) error {
	switch {
	case s.file == "" && len(s.answers) > 0:
		return terminal.Usagef("--answer requires --suspend")
	case s.file != "" && inputFile != "":
		return terminal.Usagef("--suspend and -I exclude each other: it is for the input of -i")
	case s.file != "" && ephemeral:
		return terminal.Usagef("--suspend and --ephemeral exclude each other: another process continues the run")
	}
	return nil
}

// openSuspension returns the context of a run that may be suspended, and a function that
// turns the error of the run into the error of the command. Without --suspend both change
// nothing.
func (r *runCommand) openSuspension(ctx context.Context, path string, app *spec.Application) (context.Context, func(error) error, error) {
	if r.suspend.file == "" {
		return ctx, func(err error) error { return err }, nil
	}
	in := clienttool.RunInput{Document: path, Flow: r.Flow, Input: r.Input, Session: r.Session, User: r.User}
	run, err := in.Describe(app)
	if err != nil {
		return ctx, nil, err
	}
	s, err := clienttool.OpenSuspension(r.suspend.file, run, r.approved)
	if err != nil {
		return ctx, nil, terminal.Usagef("--suspend: %s", err)
	}
	if err := s.AnswerAll(r.suspend.answers); err != nil {
		return ctx, nil, err
	}
	r.clients.Suspension, r.RunID = s, s.RunID()
	ctx, stop := s.Context(ctx)
	return ctx, func(err error) error {
		defer stop(nil)
		if err != nil && s.WriteWaiting(r.Err) {
			return errSuspended
		}
		if err != nil {
			return err
		}
		return s.Remove()
	}, nil
}

// approved approves the calls of --approve; a terminal is not prompted.
func (r *runCommand) approved(_ context.Context, call tool.Request) (yes bool, reason string, err error) {
	ids := r.clients.User.Approved
	return call.Tool.IsAmong(ids), "", nil
}
