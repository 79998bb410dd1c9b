package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/cacheview"
	"github.com/qtype-dev/qtype/internal/cleanup"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec/diag"
)

// cleanCommand is one call of qtype clean.
type cleanCommand struct {
	*streams
	dryRun    bool
	olderThan string
	folders   []string
	format    *enumFlag
	store     storeFlag
}

func newClean(s *streams) *cobra.Command {
	k := &cleanCommand{streams: s}
	c := &cobra.Command{
		Use:   "clean APP [KIND…]",
		Short: "Remove what an application has stored and no longer needs",
		Long: `Removes what an application has stored, of the kinds that are named:

  memories   sessions whose ttl is over; with --older-than, also those without a message since then
  caches     results of steps and vectors that have expired, or were not used since then
  journals   progress of interrupted runs, which can then no longer be resumed; with --older-than only
  temporary  incomplete files of runs that were killed, after a day or --older-than
  traces     files of --trace; with --older-than only

Without a kind: all but traces. What a run uses is kept. Files are searched in the folder of
the document and those of --in, and in the folders in them.`,
		Example: `  qtype clean app.qtype.yaml --dry-run
  qtype clean app.qtype.yaml --older-than 30d
  qtype clean app.qtype.yaml journals traces --older-than 7d`,
		Args: k.arguments, ValidArgsFunction: yamlFiles,
		RunE: func(c *cobra.Command, args []string) error { return k.run(c.Context(), args[0], args[1:]) },
	}
	f := c.Flags()
	f.SortFlags = false
	f.BoolVarP(&k.dryRun, "dry-run", "n", false, "list what would be removed: what, where, its size and when it was used")
	f.StringVar(&k.olderThan, "older-than", "", "remove what was not used for a `DURATION`, such as 12h or 30d")
	f.StringArrayVar(&k.folders, "in", nil, "search this `FOLDER` for files, too (repeatable)")
	k.store.addTo(f)
	k.format = addLineFormat(c)
	return c
}

func (k *cleanCommand) arguments(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return arguments("a document: qtype clean APP")(c, args)
	}
	known := cleanup.Kinds()
	for _, kind := range args[1:] {
		if !slices.Contains(known, kind) {
			return &usageError{command: c.CommandPath(), reason: fmt.Sprintf("there is no kind %q; there are: %s%s", kind, textfmt.List(known), diag.DidYouMean(kind, known))}
		}
	}
	return nil
}

func (k *cleanCommand) run(ctx context.Context, path string, kinds []string) (err error) {
	age, err := parseAge(k.olderThan)
	if err != nil {
		return err
	}
	p, list := qtype.Check(ctx, path)
	if err := list.Err(); err != nil {
		return err
	}
	opts, err := k.store.options(false)
	if err != nil {
		return err
	}
	app, err := qtype.New(p, append(opts, qtype.WithWarnings(k.Logger("warning: ")))...)
	if err != nil {
		return err
	}
	defer closeApp(ctx, app, &err)
	cfg := cleanup.Config{App: app, OlderThan: age, Folders: k.searched(app), Now: time.Now()}
	for _, kind := range kinds {
		cfg.Kinds = append(cfg.Kinds, cleanup.Kind(kind))
	}
	cfg.Caches, err = cacheview.OpenDeclared(app.Spec(), "", k.Logger("warning: "))
	if none := (*cacheview.NoCacheError)(nil); err != nil && !errors.As(err, &none) {
		return err
	}
	defer func() { err = errors.Join(err, cfg.Caches.Close()) }()
	ctx = memory.WithActor(ctx, actor())
	plan, err := cleanup.Find(ctx, cfg)
	if err != nil {
		return err
	}
	if k.dryRun {
		return k.show(plan, cfg.Now)
	}
	removed, err := plan.Apply(ctx)
	return errors.Join(k.report(removed), err)
}

// searched returns the folders that are searched for files.
func (k *cleanCommand) searched(app *runtime.App) []string {
	if folder := app.Folder(); folder != "" {
		return append([]string{folder}, k.folders...)
	}
	return k.folders
}

// show writes what would be removed.
func (k *cleanCommand) show(p *cleanup.Plan, now time.Time) error {
	if k.format.value == "json" {
		return writeLines(k, p.Items)
	}
	var b strings.Builder
	var bytes int64
	removed := 0
	for _, item := range p.Items {
		note := ""
		if item.InUse {
			note = "  in use: kept"
		} else {
			removed++
			bytes += item.Bytes
		}
		what := cmp.Or(item.ID, filepath.ToSlash(item.Where))
		if item.ID != "" {
			what += " in " + filepath.ToSlash(item.Where)
		}
		fmt.Fprintf(&b, "%-9s  %12s  %-14s  %s%s\n", item.Kind, sizeOf(item), usedAgo(item, now), terminal.Clean(what), note)
	}
	fmt.Fprintf(&b, "%s would be removed", textfmt.Count(removed, "item"))
	if bytes > 0 {
		fmt.Fprintf(&b, ", %s", textfmt.Bytes(bytes))
	}
	b.WriteByte('\n')
	_, err := io.WriteString(k.Out, b.String())
	return err
}

// sizeOf returns the size of an item, or what it counts.
func sizeOf(item cleanup.Item) string {
	switch item.Kind {
	case cleanup.Memories:
		return textfmt.Count(item.Count, "message")
	case cleanup.Caches:
		return textfmt.Count(item.Count, "result")
	default:
		return textfmt.Bytes(item.Bytes)
	}
}

func usedAgo(item cleanup.Item, now time.Time) string {
	if item.Used.IsZero() {
		return ""
	}
	return textfmt.Ago(now.Sub(item.Used))
}

// report writes what was removed.
func (k *cleanCommand) report(removed []cleanup.Removed) error {
	if k.format.value == "json" {
		return writeLines(k, removed)
	}
	if len(removed) == 0 {
		_, err := fmt.Fprintln(k.Out, "there is nothing to remove")
		return err
	}
	nouns := map[cleanup.Kind]string{cleanup.Memories: "session", cleanup.Caches: "result", cleanup.Journals: "journal", cleanup.Temporary: "temporary file", cleanup.Traces: "trace"}
	for _, r := range removed {
		if _, err := fmt.Fprintf(k.Out, "%s removed\n", textfmt.Count(r.Items, nouns[r.Kind])); err != nil {
			return err
		}
	}
	return nil
}

// writeLines writes one JSON object a line.
func writeLines[T any](k *cleanCommand, items []T) error {
	enc := json.NewEncoder(k.Out)
	enc.SetEscapeHTML(false)
	for i := range items {
		if err := enc.Encode(items[i]); err != nil {
			return err
		}
	}
	return nil
}

// parseAge reads a duration, also in days: 30d.
func parseAge(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	given := text
	if days, ok := strings.CutSuffix(text, "d"); ok {
		given = days + "h"
	}
	age, err := time.ParseDuration(given)
	if err == nil && given != text {
		age *= 24
	}
	if err != nil || age <= 0 {
		return 0, usagef("--older-than cannot be %q: expected a duration such as 12h or 30d", text)
	}
	return age, nil
}
