package state

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/qtype-dev/qtype/internal/cacheview"
	"github.com/qtype-dev/qtype/internal/cleanup"
	"github.com/qtype-dev/qtype/internal/cli"
	"github.com/qtype-dev/qtype/internal/cli/appflags"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec/diag"
)

// cleanCommand is one call of qtype clean.
type cleanCommand struct {
	dryRun    bool
	olderThan string
	folders   []string
	format    *cli.EnumFlag
	store     appflags.Store
	confirmation
}

// NewClean returns qtype clean.
func NewClean(s *cli.Streams) *cobra.Command {
	k := &cleanCommand{confirmation: confirmation{Streams: s}}
	c := &cobra.Command{
		Use:   "clean APP [KIND…]",
		Short: "Remove what an application has stored and no longer needs",
		Long: `Removes what an application has stored, of the kinds that are named:

  memories   sessions whose ttl is over; with --older-than, also those without a message since then,
             after a confirmation
  caches     results of steps and vectors that have expired, or were not used since then
  journals   progress of interrupted runs, which can then no longer be resumed; with --older-than only
  temporary  incomplete files of runs that were killed, after a day or --older-than
  traces     files of --trace; with --older-than only

Without a kind: all but traces. What a run uses is kept. Files are searched in the folder of
the document and those of --in, and in the folders in them.`,
		Example: `  qtype clean app.qtype.yaml --dry-run
  qtype clean app.qtype.yaml --older-than 30d --yes
  qtype clean app.qtype.yaml journals traces --older-than 7d`,
		Args: k.arguments, ValidArgsFunction: cli.YAMLFiles,
		RunE: func(c *cobra.Command, args []string) error { return k.run(c.Context(), args[0], args[1:]) },
	}
	f := c.Flags()
	f.SortFlags = false
	f.BoolVarP(&k.dryRun, "dry-run", "n", false, "list what would be removed: what, where, its size and when it was used")
	f.StringVar(&k.olderThan, "older-than", "", "remove what was not used for a `DURATION`, such as 12h or 30d")
	f.StringArrayVar(&k.folders, "in", nil, "search this `FOLDER` for files, too (repeatable)")
	k.addTo(f)
	k.store.AddTo(f)
	k.format = cli.AddLineFormat(c)
	return c
}

func (k *cleanCommand) arguments(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cli.Arguments("a document: qtype clean APP")(c, args)
	}
	known := cleanup.Kinds()
	for _, kind := range args[1:] {
		if !slices.Contains(known, kind) {
			return &terminal.UsageError{Command: c.CommandPath(), Reason: fmt.Sprintf("there is no kind %q; there are: %s%s", kind, textfmt.List(known), diag.DidYouMean(kind, known))}
		}
	}
	return nil
}

func (k *cleanCommand) run(ctx context.Context, path string, kinds []string) error {
	age, err := cleanup.ParseAge(k.olderThan)
	if err != nil {
		return terminal.Usagef("--older-than cannot be %q: %s", k.olderThan, err)
	}
	return withStored(ctx, k.Streams, path, &k.store, func(ctx context.Context, app *runtime.App) error {
		return withCaches(k.Streams, app, false, func(caches cacheview.Caches) error {
			cfg := cleanup.Config{App: app, OlderThan: age, Folders: withFolderOf(app, k.folders), Caches: caches, Now: time.Now()}
			for _, kind := range kinds {
				cfg.Kinds = append(cfg.Kinds, cleanup.Kind(kind))
			}
			return k.clean(ctx, cfg)
		})
	})
}

// clean removes what is no longer needed, or lists it, and writes what it did.
func (k *cleanCommand) clean(ctx context.Context, cfg cleanup.Config) error {
	asJSON := k.format.Value == "json"
	plan, err := cleanup.Find(ctx, cfg)
	switch {
	case err != nil:
		return err
	case k.dryRun && asJSON:
		return terminal.WriteJSON(k.Out, plan.Items...)
	case k.dryRun:
		return plan.Write(k.Out)
	}
	if err := k.confirm(cfg, plan); err != nil {
		return err
	}
	removed, err := plan.Apply(ctx)
	if asJSON {
		return errors.Join(terminal.WriteJSON(k.Out, removed...), err)
	}
	return errors.Join(cleanup.WriteRemoved(k.Out, removed), err)
}

// confirm asks for sessions that are removed by their age. Without a terminal it needs --yes also if there
// are none, so that a job does not fail only once there are some.
func (k *cleanCommand) confirm(cfg cleanup.Config, plan *cleanup.Plan) error {
	n := plan.Count(cleanup.Memories)
	if cfg.OlderThan == 0 || len(cfg.App.Spec().Memories) == 0 || !cfg.Selects(cleanup.Memories) || n == 0 && k.InTerminal {
		return nil
	}
	what := "sessions"
	if n > 0 {
		what = textfmt.Count(n, "session")
	}
	return k.ask("clean", what+" that expired or had no message for "+k.olderThan)
}
