// Package cleanup finds what an application has stored and no longer needs, and removes it:
// sessions of memories, cached results, journals of interrupted runs, incomplete files of runs
// that were killed, and traces.
package cleanup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/qtype-dev/qtype/internal/cacheview"
	"github.com/qtype-dev/qtype/internal/checkpoint"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/spec"
)

// Kind is a kind of what is stored.
type Kind string

// The kinds.
const (
	Memories  Kind = "memories"
	Caches    Kind = "caches"
	Journals  Kind = "journals"
	Temporary Kind = "temporary"
	Traces    Kind = "traces"
)

// Kinds returns all kinds.
func Kinds() []string {
	return []string{string(Memories), string(Caches), string(Journals), string(Temporary), string(Traces)}
}

// App is the part of runtime.App that this package needs.
type App interface {
	Spec() *spec.Application
	Memory(id string) *memory.Memory
	StoreLocation(id string) string
}

// Config describes what is removed.
type Config struct {
	App       App
	Kinds     []Kind           // empty: all but Traces
	OlderThan time.Duration    // 0: what has expired by the document, and temporary files of more than a day
	Caches    cacheview.Caches // of the application
	Folders   []string         // are searched, with the folders in them, for files
	Now       time.Time
}

// Item is something that is removed.
type Item struct {
	Kind   Kind      `json:"kind"`
	Where  string    `json:"where"`           // the file, or the store
	ID     string    `json:"id,omitempty"`    // memories: the memory and the session
	Count  int64     `json:"count,omitempty"` // messages or results
	Bytes  int64     `json:"bytes,omitempty"` // if known
	Used   time.Time `json:"used,omitzero"`   // the last use, if known
	InUse  bool      `json:"in_use"`          // a run uses it: it is kept
	memory string
}

// Plan is what Apply removes.
type Plan struct {
	Items  []Item
	config Config
	found  map[string]bool // files by their absolute paths: folders may contain one another
}

// Selects reports whether a kind is selected.
func (c *Config) Selects(k Kind) bool {
	if len(c.Kinds) == 0 {
		return k != Traces
	}
	return slices.Contains(c.Kinds, k)
}

// before returns the time before which things are removed; zero for those that expire only.
func (c *Config) before() time.Time {
	if c.OlderThan == 0 {
		return time.Time{}
	}
	return c.Now.Add(-c.OlderThan)
}

// Find returns what can be removed. It changes nothing.
func Find(ctx context.Context, cfg Config) (*Plan, error) {
	p := &Plan{config: cfg, found: map[string]bool{}}
	if cfg.Selects(Memories) {
		if err := p.findSessions(ctx); err != nil {
			return nil, err
		}
	}
	if cfg.Selects(Caches) {
		unused, err := cfg.Caches.Unused(ctx, cfg.before())
		if err != nil {
			return nil, err
		}
		for _, u := range unused {
			p.Items = append(p.Items, Item{Kind: Caches, Where: u.Directory, Count: u.Entries, Bytes: u.Bytes})
		}
	}
	for _, folder := range cfg.Folders {
		if err := p.findFiles(ctx, folder); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// findSessions adds the sessions of all memories that are unused.
func (p *Plan) findSessions(ctx context.Context) error {
	for _, m := range p.config.App.Spec().Memories {
		for l, err := range p.config.App.Memory(m.ID).Unused(ctx, p.config.before()) {
			if err != nil {
				return fmt.Errorf("memory %s: %w", m.ID, err)
			}
			p.Items = append(p.Items, Item{Kind: Memories, Where: p.config.App.StoreLocation(m.ID), ID: m.ID + " " + l.Session,
				Count: l.Head.State.Last, Used: l.Head.State.LastSaid, memory: m.ID})
		}
	}
	return nil
}

// Removed is how much was removed of a kind.
type Removed struct {
	Kind  Kind  `json:"kind"`
	Items int64 `json:"items"` // sessions, cached results or files
}

// Count returns the number of items of a kind.
func (p *Plan) Count(k Kind) int {
	n := 0
	for _, item := range p.Items {
		if item.Kind == k {
			n++
		}
	}
	return n
}

// Apply removes what is in the plan and is still unused. Sessions and results that were used since
// Find are kept, as is what a run uses.
func (p *Plan) Apply(ctx context.Context) ([]Removed, error) {
	counts := map[Kind]int64{}
	var errs []error
	errs = append(errs, p.removeSessions(ctx, counts), p.removeResults(ctx, counts))
	for _, item := range p.Items {
		if item.InUse || item.Kind == Memories || item.Kind == Caches {
			continue
		}
		switch err := p.removeFile(item); {
		case err == nil:
			counts[item.Kind]++
		case !errors.Is(err, checkpoint.ErrBusy) && !errors.Is(err, fs.ErrNotExist):
			errs = append(errs, err)
		}
	}
	var all []Removed
	for _, k := range Kinds() {
		if n := counts[Kind(k)]; n > 0 {
			all = append(all, Removed{Kind(k), n})
		}
	}
	return all, errors.Join(errs...)
}

func (p *Plan) removeSessions(ctx context.Context, counts map[Kind]int64) error {
	done := map[string]bool{}
	for _, item := range p.Items {
		if item.Kind != Memories || done[item.memory] {
			continue
		}
		done[item.memory] = true
		n, err := p.config.App.Memory(item.memory).PruneUnused(ctx, p.config.before())
		if counts[Memories] += int64(n); err != nil {
			return fmt.Errorf("memory %s: %w", item.memory, err)
		}
	}
	return nil
}

func (p *Plan) removeResults(ctx context.Context, counts map[Kind]int64) error {
	for _, item := range p.Items {
		if item.Kind == Caches {
			counts[Caches] += item.Count
		}
	}
	if counts[Caches] == 0 {
		return nil
	}
	return p.config.Caches.Prune(ctx, p.config.before())
}

// ParseAge reads a positive duration, also in days: 30d. The empty text is 0.
func ParseAge(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	given := text
	if days, ok := strings.CutSuffix(text, "d"); ok && strings.Trim(days, "0123456789.") == "" {
		given = days + "h"
	}
	age, err := time.ParseDuration(given)
	if err == nil && given != text {
		if age > math.MaxInt64/24 { // would be a short time
			return 0, errors.New("expected at most 292 years, which are 106751d")
		}
		age *= 24
	}
	if err != nil || age <= 0 {
		return 0, errors.New("expected a duration such as 12h or 30d")
	}
	return age, nil
}

// Write writes what would be removed: a line for each item, and a summary.
func (p *Plan) Write(w io.Writer) error {
	var b strings.Builder
	var bytes int64
	removed := 0
	for _, item := range p.Items {
		note := "  in use: kept"
		if !item.InUse {
			note = ""
			removed++
			bytes += item.Bytes
		}
		what := cmp.Or(item.ID, filepath.ToSlash(item.Where))
		if item.ID != "" {
			what += " in " + filepath.ToSlash(item.Where)
		}
		used := ""
		if !item.Used.IsZero() {
			used = textfmt.Ago(p.config.Now.Sub(item.Used))
		}
		fmt.Fprintf(&b, "%-9s  %12s  %-14s  %s%s\n", item.Kind, item.size(), used, terminal.Clean(what), note)
	}
	fmt.Fprintf(&b, "%s would be removed", textfmt.Count(removed, "item"))
	if bytes > 0 {
		fmt.Fprintf(&b, ", %s", textfmt.Bytes(bytes))
	}
	b.WriteByte('\n')
	_, err := io.WriteString(w, b.String())
	return err
}

// size returns the size of an item, or what it counts.
func (i *Item) size() string {
	switch i.Kind {
	case Memories:
		return textfmt.Count(i.Count, "message")
	case Caches:
		return textfmt.Count(i.Count, "result")
	default:
		return textfmt.Bytes(i.Bytes)
	}
}

// WriteRemoved writes what was removed, a line for each kind.
func WriteRemoved(w io.Writer, removed []Removed) error {
	if len(removed) == 0 {
		_, err := fmt.Fprintln(w, "there is nothing to remove")
		return err
	}
	nouns := map[Kind]string{Memories: "session", Caches: "result", Journals: "journal", Temporary: "temporary file", Traces: "trace"}
	for _, r := range removed {
		if _, err := fmt.Fprintf(w, "%s removed\n", textfmt.Count(r.Items, nouns[r.Kind])); err != nil {
			return err
		}
	}
	return nil
}
