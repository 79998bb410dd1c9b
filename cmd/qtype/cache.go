package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/mattn/go-runewidth"
	"github.com/spf13/cobra"

	"github.com/qtype-dev/qtype/internal/memoryview/show"
	"github.com/qtype-dev/qtype/internal/stepcache"
	"github.com/qtype-dev/qtype/spec"
)

// cacheCommand is one call of a subcommand of qtype cache.
type cacheCommand struct {
	*streams
	step   string // the step's id; empty for all steps
	format *enumFlag
}

func newCache(s *streams) *cobra.Command {
	c := &cobra.Command{
		Use:   "cache",
		Short: "Show and clear the results that steps with a cache_config have kept",
		Args:  noCommand,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	stats := &cacheCommand{streams: s}
	clear := &cacheCommand{streams: s}
	c.AddCommand(
		stats.command("stats", "Show what a cache holds, step by step", stats.stats),
		clear.command("clear", "Remove kept results", clear.clear))
	return c
}

// command makes a subcommand that takes a document or the folder of a cache.
func (k *cacheCommand) command(use, short string, run func(context.Context, []*cacheView) error) *cobra.Command {
	c := &cobra.Command{
		Use: use + " APP|DIRECTORY", Short: short,
		Args: arguments("a document or the folder of a cache: qtype cache " + use + " APP|DIRECTORY"), ValidArgsFunction: yamlFiles,
		RunE: func(c *cobra.Command, args []string) (err error) {
			all, err := k.caches(c.Context(), args[0])
			if err != nil {
				return err
			}
			defer func() {
				for _, kept := range all {
					err = cmp.Or(err, kept.store.Close())
				}
			}()
			return run(c.Context(), all)
		},
	}
	c.Flags().StringVar(&k.step, "step", "", "only the results of the step of this `ID`")
	k.format = newChoice("text", "json")
	c.Flags().Var(k.format, "format", "how it is written: for people, or one JSON object a line")
	return c
}

// cacheView is the cache of one folder, and which of its steps the call is about.
type cacheView struct {
	store *stepcache.Store
	about func(stepcache.Scope) bool
}

// caches are the caches of a document's steps, or the one of a folder.
func (k *cacheCommand) caches(ctx context.Context, path string) ([]*cacheView, error) {
	info, err := os.Stat(path)
	if err == nil && info.IsDir() {
		if _, err := os.Stat(filepath.Join(path, stepcache.FileName)); err != nil {
			return nil, fmt.Errorf("%s holds no cache: there is no %s in it", path, stepcache.FileName)
		}
		return []*cacheView{{store: stepcache.Open(path, k.printWarning("warning: ")), about: func(s stepcache.Scope) bool { return k.step == "" || s.Step == k.step }}}, nil
	}
	app, err := application(ctx, path, "has steps")
	if err != nil {
		return nil, err
	}
	return k.declared(app)
}

// declared are the caches that an application's steps name.
func (k *cacheCommand) declared(app *spec.Application) ([]*cacheView, error) {
	var folders, ids []string
	scopes := map[string][]stepcache.Scope{} // by folder; the version is left out: old ones are theirs, too
	for _, s := range cachedSteps(app) {
		cfg := s.CacheConfig
		folder := cmp.Or(cfg.Directory, spec.CacheDirectory)
		ids = append(ids, s.ID)
		if k.step != "" && s.ID != k.step {
			continue
		}
		if scopes[folder] == nil {
			folders = append(folders, folder)
		}
		scopes[folder] = append(scopes[folder], stepcache.Scope{Namespace: cfg.Namespace, Step: s.ID})
	}
	switch {
	case len(ids) == 0:
		return nil, fmt.Errorf("application %s has no step with a cache_config", app.ID)
	case len(folders) == 0:
		return nil, usagef("no step with a cache_config has the id %q; there are: %s%s", k.step, joinNames(ids), didYouMean(k.step, ids))
	}
	var all []*cacheView
	for _, folder := range folders {
		all = append(all, &cacheView{store: stepcache.Open(folder, k.printWarning("warning: ")), about: func(s stepcache.Scope) bool {
			s.Version = ""
			return slices.Contains(scopes[folder], s)
		}})
	}
	return all, nil
}

// cachedSteps are the steps of an application and of those that it references
// that ask for a cache, each once.
func cachedSteps(app *spec.Application) []*spec.StepBase {
	var all []*spec.StepBase
	for _, f := range app.Flows {
		for _, item := range f.Steps {
			if s := item.Step.Common(); s.CacheConfig != nil && !slices.Contains(all, s) {
				all = append(all, s)
			}
		}
	}
	for _, ref := range app.References {
		if ref.Application != nil {
			all = append(all, cachedSteps(ref.Application)...)
		}
	}
	return all
}

// cacheRow is a line of qtype cache stats.
type cacheRow struct {
	Directory string    `json:"directory"` // the folder of the cache
	Namespace string    `json:"namespace"` // as the document gives it
	Step      string    `json:"step"`      // the step's id
	Version   string    `json:"version"`   // as the document gave it
	Entries   int64     `json:"entries"`   // results that are kept
	Bytes     int64     `json:"bytes"`     // what they take, as stored
	Expired   int64     `json:"expired"`   // those of them that are no longer good
	Oldest    time.Time `json:"oldest"`    // when the oldest was made
	LastUsed  time.Time `json:"last_used"` // when one was last used
}

func (k *cacheCommand) stats(ctx context.Context, all []*cacheView) error {
	var lines []cacheRow
	for _, kept := range all {
		stats, err := kept.store.Stats(ctx)
		if err != nil {
			return err
		}
		for _, st := range stats {
			if kept.about(st.Scope) {
				lines = append(lines, cacheRow{filepath.Dir(kept.store.Path()), st.Namespace, st.Step, st.Version,
					st.Entries, st.Bytes, st.Expired, st.Oldest.UTC(), st.Used.UTC()})
			}
		}
	}
	if k.format.String() == "json" {
		enc := json.NewEncoder(k.out)
		for _, l := range lines {
			if err := enc.Encode(l); err != nil {
				return err
			}
		}
		return nil
	}
	if len(lines) == 0 {
		_, err := fmt.Fprintln(k.err, "no results are kept")
		return err
	}
	_, err := fmt.Fprint(k.out, keptTable(lines, time.Now()))
	return err
}

// keptTable draws the lines for people.
func keptTable(lines []cacheRow, now time.Time) string {
	name := func(l cacheRow) string {
		if l.Namespace != "" {
			return clean(l.Namespace + "/" + l.Step)
		}
		return clean(l.Step)
	}
	step, version := len("step"), len("version")
	for _, l := range lines {
		step, version = max(step, runewidth.StringWidth(name(l))), max(version, runewidth.StringWidth(clean(l.Version)))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s   %s  %8s  %8s  %8s   %-14s  %s\n", pad("step", step), pad("version", version), "results", "expired", "size", "last used", "in")
	for _, l := range lines {
		fmt.Fprintf(&b, "%s   %s  %8s  %8s  %8s   %-14s  %s\n", pad(name(l), step), pad(clean(l.Version), version),
			show.Thousands(int(l.Entries)), show.Thousands(int(l.Expired)), size(l.Bytes), ago(now.Sub(l.LastUsed)), clean(l.Directory))
	}
	return b.String()
}

// size is a number of bytes as a person reads it.
func size(bytes int64) string {
	switch {
	case bytes < 1<<10:
		return fmt.Sprintf("%d B", bytes)
	case bytes < 1<<20:
		return fmt.Sprintf("%.1f kB", float64(bytes)/(1<<10))
	}
	return fmt.Sprintf("%.1f MB", float64(bytes)/(1<<20))
}

func (k *cacheCommand) clear(ctx context.Context, all []*cacheView) error {
	for _, kept := range all {
		removed, err := kept.store.Clear(ctx, kept.about)
		if err != nil {
			return err
		}
		folder := filepath.Dir(kept.store.Path())
		if k.format.String() == "json" {
			err = json.NewEncoder(k.out).Encode(struct {
				Directory string `json:"directory"`
				Removed   int64  `json:"removed"`
			}{folder, removed})
		} else {
			_, err = fmt.Fprintf(k.out, "%s removed from %s\n", count(removed, "result"), clean(folder))
		}
		if err != nil {
			return err
		}
	}
	return nil
}
