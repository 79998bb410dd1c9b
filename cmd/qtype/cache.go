package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/cacheview"
	"github.com/qtype-dev/qtype/internal/terminal"
)

// cacheCommand is one call of a subcommand of qtype cache.
type cacheCommand struct {
	*streams
	step   string // the step's id; empty for all steps
	format *enumFlag
}

func newCache(s *streams) *cobra.Command {
	stats := &cacheCommand{streams: s}
	clear := &cacheCommand{streams: s}
	return commandGroup("cache", "Show or clear cached step results",
		stats.command("stats", "Show what a cache contains, by step", stats.stats),
		clear.command("clear", "Remove cached results", clear.clear))
}

// command makes a subcommand that takes a document or the directory of a cache.
func (k *cacheCommand) command(use, short string, run func(context.Context, cacheview.Caches) error) *cobra.Command {
	c := &cobra.Command{
		Use: use + " APP|DIRECTORY", Short: short,
		Args: arguments("a document or the directory of a cache: qtype cache " + use + " APP|DIRECTORY"), ValidArgsFunction: yamlFiles,
		RunE: func(c *cobra.Command, args []string) (err error) {
			caches, err := k.open(c.Context(), args[0])
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, caches.Close()) }()
			return run(c.Context(), caches)
		},
	}
	c.Flags().StringVar(&k.step, "step", "", "only the results of the step with this `ID`")
	k.format = addLineFormat(c)
	return c
}

// open opens the caches of a document's steps, or the one in a directory.
func (k *cacheCommand) open(ctx context.Context, path string) (cacheview.Caches, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return cacheview.OpenDirectory(path, k.step, k.Logger("warning: "))
	}
	p, err := loadApplication(ctx, path, "has steps")
	if err != nil {
		return nil, err
	}
	caches, err := cacheview.OpenDeclared(p.Document.Application, k.step, p.Policy(), k.Logger("warning: "))
	if _, refused := errors.AsType[*qtype.RefusedError](err); refused {
		return nil, fmt.Errorf("%w; or pass the folder in place of the document", err)
	}
	return caches, err
}

func (k *cacheCommand) stats(ctx context.Context, caches cacheview.Caches) error {
	rows, err := caches.Stats(ctx)
	if err != nil {
		return err
	}
	switch {
	case k.format.value == "json":
		return terminal.WriteJSON(k.Out, rows...)
	case len(rows) == 0:
		_, err := fmt.Fprintln(k.Err, "the cache is empty")
		return err
	}
	return cacheview.WriteTable(k.Out, rows, time.Now())
}

func (k *cacheCommand) clear(ctx context.Context, caches cacheview.Caches) error {
	return caches.Clear(ctx, k.Out, k.format.value == "json")
}
