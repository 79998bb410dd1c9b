package state

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/cli"
	"github.com/qtype-dev/qtype/internal/cli/appflags"
	"github.com/qtype-dev/qtype/internal/durable"
	"github.com/qtype-dev/qtype/internal/localruns"
	"github.com/qtype-dev/qtype/internal/runview"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/spec"
)

// runsCommand is a subcommand of qtype runs.
type runsCommand struct {
	*cli.Streams
	cmd      *cobra.Command
	temporal appflags.Temporal
	engine   *cli.EnumFlag
}

// NewRuns returns qtype runs; repeat runs the command line of a run that is retried.
func NewRuns(s *cli.Streams, repeat func(ctx context.Context, args []string) error) *cobra.Command {
	return cli.CommandGroup("runs", "List, show, answer, cancel and retry runs of both engines", newRunsList(s), newRunsShow(s), newRunsAnswer(s), newRunsCancel(s, repeat), newRunsRetry(s, repeat))
}

// newRunsCommand returns a subcommand with the flags of first, then the flags of all
// subcommands.
func newRunsCommand(s *cli.Streams, use, short string, args cobra.PositionalArgs, first ...func(*pflag.FlagSet)) *runsCommand {
	r := &runsCommand{Streams: s, cmd: &cobra.Command{Use: use, Short: short, Args: args}, engine: cli.NewEnumFlag("", durable.Local, durable.Temporal)}
	cli.AddFlags(r.cmd.Flags(), "Runs", func() {
		for _, add := range first {
			add(r.cmd.Flags())
		}
		r.engine.AddTo(r.cmd, "engine", "", "local or temporal (default: both, Temporal in a program that has it)")
	})
	cli.AddFlags(r.cmd.Flags(), "Temporal", func() { r.temporal.AddTo(r.cmd.Flags()) })
	cli.GroupHelp(r.cmd)
	return r
}

// source returns where the flags search runs.
func (r *runsCommand) source() *runview.Source {
	named := r.engine.Value == durable.Temporal || os.Getenv("TEMPORAL_ADDRESS") != "" || r.temporal.Given()
	return &runview.Source{Engine: r.engine.Value, Named: named, Config: r.temporal.Connection}
}

// onRun makes the command run with the run whose id is its first argument.
func (r *runsCommand) onRun(run func(context.Context, *durable.Run, durable.Config) error) *cobra.Command {
	r.cmd.RunE = func(c *cobra.Command, args []string) error {
		found, cfg, err := r.source().Find(c.Context(), args[0])
		if err != nil {
			return err
		}
		return run(c.Context(), found, cfg)
	}
	return r.cmd
}

func (r *runsCommand) view(format *cli.EnumFlag) *runview.View {
	return &runview.View{Out: r.Out, Err: r.Err, JSON: format.Value == "json"}
}

func newRunsList(s *cli.Streams) *cobra.Command {
	var filter durable.Filter
	var folders []string
	r := newRunsCommand(s, "list", "List runs, the newest first", cli.Arguments(), func(f *pflag.FlagSet) {
		f.SortFlags = false
		f.StringArrayVar(&folders, "in", nil, "search this `FOLDER` for local runs (repeatable; default: the working directory)")
		f.StringVar(&filter.Flow, "flow", "", "only runs of the flow with this `ID`")
		f.StringVar(&filter.Session, "session", "", "only runs with the session with this `ID`")
		f.StringVar(&filter.User, "user", "", "only runs with a session of this `USER`")
	})
	r.cmd.Long = `Lists the runs of both engines, the newest first: those of qtype run --engine temporal, as long as
Temporal has them, and local ones that run, were interrupted or wait for approvals, by their
files in the working directory and the folders in it. A local run that is complete leaves no such file.`
	r.cmd.Example = `  qtype runs list
  qtype runs list --engine temporal --flow triage --user ada`
	var format *cli.EnumFlag
	cli.AddFlags(r.cmd.Flags(), "Output", func() { format = cli.AddLineFormat(r.cmd) })
	r.cmd.RunE = func(c *cobra.Command, _ []string) error {
		if len(folders) == 0 {
			folders = []string{"."}
		}
		all, err := r.source().List(c.Context(), folders, filter, r.Logger(""))
		if err != nil && all == nil {
			return err
		}
		return errors.Join(r.view(format).List(all), err)
	}
	return r.cmd
}

func newRunsShow(s *cli.Streams) *cobra.Command {
	r := newRunsCommand(s, "show ID", "Show a run: how many rows are finished, and what it waits for", cli.Arguments("the id of a run: qtype runs show ID"))
	r.cmd.Flags().StringVar(&r.temporal.Blobs, "blobs", "",
		"`FOLDER` or address of a bucket of the run's workers, for large arguments that rows wait with")
	format := cli.AddLineFormat(r.cmd)
	return r.onRun(func(_ context.Context, run *durable.Run, _ durable.Config) error { return r.view(format).Show(run) })
}

func newRunsAnswer(s *cli.Streams) *cobra.Command {
	r := newRunsCommand(s, "answer ID N=ANSWER…", "Answer approvals and client tools that rows of a run wait for", func(_ *cobra.Command, args []string) error {
		if len(args) < 2 {
			return terminal.Usagef("expected the id of a run and answers: qtype runs answer ID N=ANSWER…")
		}
		return nil
	})
	r.cmd.Example = `  qtype runs show qtype-shop-triage-5d41402abc4b2a76b971
  qtype runs answer qtype-shop-triage-5d41402abc4b2a76b971 1=yes 2='the amount is too high'
  qtype runs answer qtype-shop-triage-5d41402abc4b2a76b971 3='{"city": "Graz"}'`
	return r.onRun(func(ctx context.Context, run *durable.Run, cfg durable.Config) error {
		return (&runview.View{Err: r.Err}).Answer(ctx, cfg, run, r.cmd.Flags().Args()[1:])
	})
}

func newRunsCancel(s *cli.Streams, repeat func(context.Context, []string) error) *cobra.Command {
	r := newRunsCommand(s, "cancel ID", "Cancel a run; qtype runs retry and qtype run --resume continue it", cli.Arguments("the id of a run: qtype runs cancel ID"))
	return r.onRun(func(ctx context.Context, run *durable.Run, cfg durable.Config) error {
		if run.Engine == durable.Local {
			return r.cancelLocal(ctx, run, repeat)
		}
		engine, err := durable.From(ctx)
		if err != nil {
			return err
		}
		if err := engine.Cancel(ctx, cfg, run.ID); err != nil || run.Batches == nil || len(run.Batches.Open) == 0 {
			return err
		}
		note := "batches at the provider go on: repeat the command to cancel them"
		if !run.Closed.IsZero() {
			note = "workers cancel the batches at the provider"
		}
		_, err = fmt.Fprintln(r.Err, note)
		return err
	})
}

func newRunsRetry(s *cli.Streams, repeat func(context.Context, []string) error) *cobra.Command {
	var document string
	r := newRunsCommand(s, "retry ID", "Continue a run that was interrupted, canceled or has failed", cli.Arguments("the id of a run: qtype runs retry ID"), func(f *pflag.FlagSet) {
		f.StringVar(&document, "with", "", "move a run on Temporal to the workers of `APP`, another version of its document, also if it has not ended")
	})
	r.cmd.Long = `Continues a run that was interrupted, canceled or has failed. Finished rows are kept.

A local run is continued by this command, as by the command of the run with --resume. A run on Temporal is
continued by the workers; the command of the run with --resume writes its output. Another version of the
document must have the same meaning for the flow of the run: descriptions, fallbacks, limits and prices may differ.`
	r.cmd.Example = `  qtype runs retry replies.jsonl
  qtype runs retry qtype-shop-triage-5d41402abc4b2a76b971
  qtype runs retry qtype-shop-triage-5d41402abc4b2a76b971 --with app.qtype.yaml`
	return r.onRun(func(ctx context.Context, run *durable.Run, cfg durable.Config) error {
		if run.Engine == durable.Local {
			if document != "" {
				return terminal.Usagef("--with is for runs on Temporal: qtype run --resume continues a local run with its document")
			}
			return r.retryLocal(ctx, run, repeat)
		}
		var app *spec.Application
		if document != "" {
			p, err := loadApplication(ctx, document, "has runs", qtype.WithStrict())
			if err != nil {
				return err
			}
			app = p.Document.Application
		}
		engine, err := durable.From(ctx)
		if err != nil {
			return err
		}
		if err := engine.Retry(ctx, cfg, run.ID, app); err != nil {
			return err
		}
		_, err = fmt.Fprintf(r.Err, "%s continues; the command of the run with --resume writes its output\n", terminal.Clean(run.ID))
		return err
	})
}

// retryLocal runs the command of a local run again, in its folder.
func (r *runsCommand) retryLocal(ctx context.Context, run *durable.Run, repeat func(context.Context, []string) error) error {
	args, folder, err := localruns.RetryCommand(run)
	if err != nil {
		return err
	}
	return r.again(ctx, args, folder, repeat)
}

// cancelLocal interrupts the process of a run. If that has ended, it cancels the batches of the run.
func (r *runsCommand) cancelLocal(ctx context.Context, run *durable.Run, repeat func(context.Context, []string) error) error {
	args, folder, err := localruns.CancelCommand(run)
	switch {
	case err != nil:
		return err
	case len(args) > 0:
		return r.again(ctx, args, folder, repeat)
	}
	if err := localruns.Cancel(run); err != nil || run.Batches == nil || len(run.Batches.Open) == 0 {
		return err
	}
	_, err = fmt.Fprintln(r.Err, "batches at the provider go on: repeat the command to cancel them")
	return err
}

// again runs a command line in a folder.
func (r *runsCommand) again(ctx context.Context, args []string, folder string, repeat func(context.Context, []string) error) error {
	if err := os.Chdir(folder); err != nil {
		return fmt.Errorf("the folder of the run cannot be used: %w", err)
	}
	line := "qtype"
	for _, a := range args {
		line += " " + textfmt.ShellQuote(a)
	}
	fmt.Fprintln(r.Err, terminal.Clean(line))
	return repeat(ctx, args)
}
