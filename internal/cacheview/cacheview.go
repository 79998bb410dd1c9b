// Package cacheview shows and clears the results that steps have cached.
package cacheview

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/mattn/go-runewidth"

	"github.com/qtype-dev/qtype/internal/stepcache"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/internal/trust"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
)

// Caches are caches on disk or in a store of memories, restricted to some of their steps.
type Caches []cache

type cache struct {
	store   stepcache.Entries
	matches func(stepcache.Scope) bool
}

// OpenDirectory opens the cache in a directory, for the step of an id; for all steps
// if the id is empty. warn receives what makes a cache unusable.
func OpenDirectory(path, step string, warn func(string)) (Caches, error) {
	if _, err := os.Stat(filepath.Join(path, stepcache.FileName)); err != nil {
		return nil, fmt.Errorf("%s is not a cache: it has no %s", path, stepcache.FileName)
	}
	return Caches{{store: stepcache.Open(path, warn), matches: func(s stepcache.Scope) bool { return step == "" || s.Step == step }}}, nil
}

// NoCacheError reports that an application declares no cache.
type NoCacheError struct {
	Application string // its id
}

// Error names the application.
func (e *NoCacheError) Error() string {
	return fmt.Sprintf("application %s has no step with a cache_config", e.Application)
}

// OpenDeclared opens the caches of an application's steps and embedding models; of the
// step or model of an id unless it is empty. A document may name only folders that it may
// write: a cache is also cleared. shared has the results of steps without a directory in the application's store, nil if
// there are none; without an id all of them.
func OpenDeclared(app *spec.Application, step string, policy *trust.Policy, shared *stepcache.Shared, warn func(string)) (Caches, error) {
	var folders, ids []string
	scopes := map[string][]stepcache.Scope{} // by folder; for any version of the step
	add := func(folder, namespace, id string) {
		ids = append(ids, id)
		if step != "" && id != step {
			return
		}
		if folder = cmp.Or(folder, spec.CacheDirectory); scopes[folder] == nil {
			folders = append(folders, folder)
		}
		scopes[folder] = append(scopes[folder], stepcache.Scope{Namespace: namespace, Step: id})
	}
	for _, s := range cachedSteps(app) {
		add(s.CacheConfig.Directory, s.CacheConfig.Namespace, s.ID)
	}
	for _, m := range cachedModels(app) {
		folder := ""
		if m.VectorCache != nil {
			folder = m.VectorCache.Directory
		}
		add(folder, stepcache.VectorNamespace, m.ID)
	}
	switch {
	case len(ids) == 0 && shared != nil && step == "":
	case len(ids) == 0:
		return nil, &NoCacheError{Application: app.ID}
	case len(folders) == 0:
		return nil, terminal.Usagef("no step with a cache_config has the id %q; there are: %s%s", step, textfmt.List(ids), diag.DidYouMean(step, ids))
	}
	var all Caches
	matches := func(folder string) func(stepcache.Scope) bool {
		return func(s stepcache.Scope) bool {
			s.Version = ""
			return slices.Contains(scopes[folder], s)
		}
	}
	switch {
	case shared != nil && step == "": // also those of steps that the document had earlier, which nothing else reaches
		all = append(all, cache{store: shared, matches: func(stepcache.Scope) bool { return true }})
	case shared != nil && scopes[spec.CacheDirectory] != nil:
		all = append(all, cache{store: shared, matches: matches(spec.CacheDirectory)})
	}
	for _, folder := range folders {
		if err := policy.Write(folder); err != nil {
			return nil, err
		}
		all = append(all, cache{store: stepcache.Open(folder, warn), matches: matches(folder)})
	}
	return all, nil
}

// cachedModels returns the embedding models whose vectors are cached.
func cachedModels(app *spec.Application) []*spec.EmbeddingModel {
	var all []*spec.EmbeddingModel
	for _, doc := range app.Documents() {
		for _, m := range doc.Models {
			e, ok := m.(*spec.EmbeddingModel)
			if ok && !e.IsMock() && (e.VectorCache == nil || e.VectorCache.Enabled) {
				all = append(all, e)
			}
		}
	}
	return all
}

// cachedSteps returns the steps with a cache of an application and of the applications
// that it references, each once.
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

// Close closes the caches.
func (c Caches) Close() error {
	var errs []error
	for _, one := range c {
		errs = append(errs, one.store.Close())
	}
	return errors.Join(errs...)
}

// Stats describes the cached results of a step.
type Stats struct {
	Directory string    `json:"directory"` // of the cache, or stepcache.SharedPlace
	Namespace string    `json:"namespace"` // as declared
	Step      string    `json:"step"`      // the step's id
	Version   string    `json:"version"`   // as declared
	Entries   int64     `json:"entries"`   // the number of results
	Bytes     int64     `json:"bytes"`     // their size on disk
	Expired   int64     `json:"expired"`   // how many of them have expired
	Oldest    time.Time `json:"oldest"`    // when the oldest was computed
	LastUsed  time.Time `json:"last_used"` // when one was last used
}

// Stats returns the statistics of each step with cached results.
func (c Caches) Stats(ctx context.Context) ([]Stats, error) {
	var all []Stats
	for _, one := range c {
		stats, err := one.store.Stats(ctx)
		if err != nil {
			return nil, err
		}
		for _, st := range stats {
			if one.matches(st.Scope) {
				all = append(all, Stats{one.store.Place(), st.Namespace, st.Step, st.Version,
					st.Entries, st.Bytes, st.Expired, st.Oldest.UTC(), st.Used.UTC()})
			}
		}
	}
	return all, nil
}

// WriteTable writes statistics as a table.
func WriteTable(out io.Writer, rows []Stats, now time.Time) error {
	name := func(r Stats) string {
		if r.Namespace != "" {
			return terminal.Clean(r.Namespace + "/" + r.Step)
		}
		return terminal.Clean(r.Step)
	}
	step, version := len("step"), len("version")
	for _, r := range rows {
		step, version = max(step, runewidth.StringWidth(name(r))), max(version, runewidth.StringWidth(terminal.Clean(r.Version)))
	}
	var b strings.Builder
	line := func(name, ver, entries, expired, size, used, folder string) {
		fmt.Fprintf(&b, "%s   %s  %8s  %8s  %8s   %-14s  %s\n", terminal.Pad(name, step), terminal.Pad(ver, version), entries, expired, size, used, folder)
	}
	line("step", "version", "results", "expired", "size", "last used", "in")
	for _, r := range rows {
		line(name(r), terminal.Clean(r.Version), textfmt.Thousands(r.Entries), textfmt.Thousands(r.Expired),
			textfmt.Bytes(r.Bytes), textfmt.Ago(now.Sub(r.LastUsed)), terminal.Clean(r.Directory))
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// Clear removes the cached results of the steps and writes how many they were, as
// text or as JSON lines.
func (c Caches) Clear(ctx context.Context, out io.Writer, asJSON bool) error {
	for _, one := range c {
		removed, err := one.store.Clear(ctx, one.matches)
		if err != nil {
			return err
		}
		folder := one.store.Place()
		if asJSON {
			err = json.NewEncoder(out).Encode(struct {
				Directory string `json:"directory"`
				Removed   int64  `json:"removed"`
			}{folder, removed})
		} else {
			_, err = fmt.Fprintf(out, "%s removed from %s\n", textfmt.Count(removed, "result"), terminal.Clean(folder))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Unused describes the results of a cache that are expired, or were last used before a time.
type Unused struct {
	Directory string
	Entries   int64
	Bytes     int64
}

// Unused returns what Prune would remove from each cache.
func (c Caches) Unused(ctx context.Context, before time.Time) ([]Unused, error) {
	var all []Unused
	for _, one := range c {
		entries, bytes, err := one.store.Unused(ctx, one.matches, before)
		if err != nil {
			return nil, err
		}
		if entries > 0 {
			all = append(all, Unused{one.store.Place(), entries, bytes})
		}
	}
	return all, nil
}

// Prune removes the results of Unused.
func (c Caches) Prune(ctx context.Context, before time.Time) error {
	for _, one := range c {
		if _, err := one.store.Prune(ctx, one.matches, before); err != nil {
			return err
		}
	}
	return nil
}
