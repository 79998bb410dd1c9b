package state

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/cacheview"
	"github.com/qtype-dev/qtype/internal/cli"
	"github.com/qtype-dev/qtype/internal/cli/appflags"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/runtime"
)

// cacheCommand is one call of a subcommand of qtype cache.
type cacheCommand struct {
	*cli.Streams
	step   string // the step's id; empty for all steps
	store  appflags.Store
	format *cli.EnumFlag
}

// NewCache returns qtype cache.
func NewCache(s *cli.Streams) *cobra.Command {
	stats := &cacheCommand{Streams: s}
	clear := &cacheCommand{Streams: s}
	return cli.CommandGroup("cache", "Show or clear cached step results",
		stats.command("stats", "Show what a cache contains, by step", stats.stats),
		clear.command("clear", "Remove cached results", clear.clear))
}

// command makes a subcommand that takes a document or the directory of a cache.
func (k *cacheCommand) command(use, short string, run func(context.Context, cacheview.Caches) error) *cobra.Command {
	c := &cobra.Command{
		Use: use + " APP|DIRECTORY", Short: short,
		Args: cli.Arguments("a document or the directory of a cache: qtype cache " + use + " APP|DIRECTORY"), ValidArgsFunction: cli.YAMLFiles,
		RunE: func(c *cobra.Command, args []string) (err error) {
			return k.open(c.Context(), args[0], run)
		},
	}
	c.Flags().StringVar(&k.step, "step", "", "only the results of the step with this `ID`")
	k.store.AddTo(c.Flags())
	k.format = cli.AddLineFormat(c)
	return c
}

// open calls run with the caches of a document's steps, or the one in a directory.
func (k *cacheCommand) open(ctx context.Context, path string, run func(context.Context, cacheview.Caches) error) error {
	with := func(caches cacheview.Caches, err error) error {
		if err != nil {
			return err
		}
		return errors.Join(run(ctx, caches), caches.Close())
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return with(cacheview.OpenDirectory(path, k.step, k.Logger("warning: ")))
	}
	p, err := loadApplication(ctx, path, "has steps")
	if err != nil {
		return err
	}
	return withProgram(ctx, k.Streams, p, &k.store, func(ctx context.Context, app *runtime.App) error {
		caches, err := openCaches(k.Streams, app, k.step)
		if _, refused := errors.AsType[*qtype.RefusedError](err); refused {
			return fmt.Errorf("%w; pass the folder in place of the document", err)
		}
		return with(caches, err)
	})
}

func (k *cacheCommand) stats(ctx context.Context, caches cacheview.Caches) error {
	rows, err := caches.Stats(ctx)
	if err != nil {
		return err
	}
	switch {
	case k.format.Value == "json":
		return terminal.WriteJSON(k.Out, rows...)
	case len(rows) == 0:
		_, err := fmt.Fprintln(k.Err, "the cache is empty")
		return err
	}
	return cacheview.WriteTable(k.Out, rows, time.Now())
}

func (k *cacheCommand) clear(ctx context.Context, caches cacheview.Caches) error {
	return caches.Clear(ctx, k.Out, k.format.Value == "json")
}
