package indexview

import (
	"context"
	"fmt"
	"strings"

	"github.com/qtype-dev/qtype/index"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
)

// App is the part of runtime.App that this package needs.
type App interface {
	Spec() *spec.Application
	Indexes() []spec.Index
	Index(id string) (index.Index, error)
	Embedder(id string) (model.Embedder, error)
}

// Index is an open index of a document.
type Index struct {
	index.Index
	Declared spec.Index
}

func (x *Index) id() string { return x.Declared.EntityID() }

// Declared returns the index with an id, or all if the id is empty.
func Declared(app App, id string) ([]spec.Index, error) {
	all := app.Indexes()
	for _, d := range all {
		if d.EntityID() == id {
			return []spec.Index{d}, nil
		}
	}
	switch ids := idsOf(all); {
	case id != "":
		return nil, terminal.Usagef("no index has the id %q; there are: %s%s", id, textfmt.List(ids), diag.DidYouMean(id, ids))
	case len(all) == 0:
		return nil, fmt.Errorf("application %s declares no index", app.Spec().ID)
	}
	return all, nil
}

func idsOf(all []spec.Index) []string {
	var ids []string
	for _, d := range all {
		ids = append(ids, d.EntityID())
	}
	return ids
}

// Open opens the index with an id, or the only one if the id is empty.
func Open(app App, id string) (*Index, error) {
	all, err := Declared(app, id)
	if err != nil {
		return nil, err
	}
	if len(all) > 1 {
		return nil, terminal.Usagef("which index? --index is one of %s", textfmt.List(idsOf(all)))
	}
	opened, err := app.Index(all[0].EntityID())
	return &Index{Index: opened, Declared: all[0]}, err
}

// StatsOf describes the index with an id, or all if the id is empty.
func StatsOf(ctx context.Context, app App, id string) ([]Stats, error) {
	declared, err := Declared(app, id)
	if err != nil {
		return nil, err
	}
	var rows []Stats
	for _, d := range declared {
		x, err := Open(app, d.EntityID())
		if err != nil {
			return nil, err
		}
		stats, err := x.Stats(ctx)
		if err != nil {
			return nil, fmt.Errorf("index %s: %w", x.id(), err)
		}
		rows = append(rows, Describe(d, stats))
	}
	return rows, nil
}

// Modes are what a search may compare: the values of --mode.
func Modes() []string { return []string{"vector", "text", "hybrid"} }

// Search returns the best matches for a text. The mode is one of Modes; empty for the default of
// the type of the index.
func (x *Index) Search(ctx context.Context, app App, mode, text string, limit int) ([]index.Match, error) {
	q := index.Query{Mode: index.ByText, Text: text, Limit: limit, Highlight: true}
	vectors, hasVectors := x.Declared.(*spec.VectorIndex)
	switch {
	case !hasVectors && mode != "" && mode != "text":
		return nil, terminal.Usagef("index %s is a DocumentIndex: it has no vectors, so --mode can only be text", x.id())
	case hasVectors && mode == "hybrid":
		q.Mode = index.Hybrid
	case hasVectors && mode != "text":
		q.Mode, q.Highlight = index.ByVector, false
	}
	if q.Mode != index.ByText {
		if strings.TrimSpace(text) == "" {
			return nil, terminal.Usagef("the query is empty: there is nothing to embed")
		}
		m, err := app.Embedder(vectors.EmbeddingModel.ID)
		if err != nil {
			return nil, err
		}
		q.Model = m.Info().Identity()
		if err := index.Check(ctx, x.Index, q); err != nil {
			return nil, fmt.Errorf("index %s: %w", x.id(), err)
		}
		embedded, _, err := m.Embed(model.ForQueries(ctx), []string{text})
		if err != nil {
			return nil, err
		}
		q.Vector = embedded[0]
	}
	matches, err := index.Find(ctx, x.Index, q)
	if err != nil {
		return nil, fmt.Errorf("index %s: %w", x.id(), err)
	}
	return matches, nil
}

// Clear removes the index with all its entries if confirm returns nil for what is removed, such as
// "2 entries of index docs".
func (v *View) Clear(ctx context.Context, x *Index, confirm func(what string) error) error {
	stats, err := x.Stats(ctx)
	if err != nil {
		return fmt.Errorf("index %s: %w", x.id(), err)
	}
	entries := textfmt.Thousands(stats.Entries) + " entries"
	if stats.Entries == 1 {
		entries = "1 entry"
	}
	if err := confirm(entries + " of index " + x.id()); err != nil {
		return err
	}
	if err := x.Clear(ctx); err != nil {
		return fmt.Errorf("index %s: %w", x.id(), err)
	}
	_, err = fmt.Fprintf(v.Out, "index %s: %s removed\n", x.id(), entries)
	return err
}
