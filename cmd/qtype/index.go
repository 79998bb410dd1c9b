package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/index"
	"github.com/qtype-dev/qtype/internal/indexview"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
)

// indexCommand is one call of a subcommand of qtype index.
type indexCommand struct {
	*streams
	index  string // the index's id; may be empty if the document has only one
	limit  int
	after  string
	mode   *enumFlag
	yes    bool
	format *enumFlag
}

func newIndex(s *streams) *cobra.Command {
	r := func() *indexCommand { return &indexCommand{streams: s} }
	return commandGroup("index", "Inspect and manage indexes of documents", r().newStats(), r().newList(), r().newSearch(), r().newClear())
}

// command makes a subcommand for the indexes of a document; further describes arguments
// after the document.
func (x *indexCommand) command(use, short string, run func(context.Context, *runtime.App, []string) error, further ...string) *cobra.Command {
	c := &cobra.Command{
		Use: use, Short: short,
		Args: arguments(append([]string{"a document: qtype index " + use}, further...)...), ValidArgsFunction: yamlFiles,
		RunE: func(c *cobra.Command, args []string) (err error) {
			// Without WithStrict: unset environment variables matter only to runs.
			p, list := qtype.Check(c.Context(), args[0])
			if err := list.Err(); err != nil {
				return err
			}
			app, err := qtype.New(p, qtype.WithWarnings(x.Logger("warning: ")))
			if err != nil {
				return err
			}
			defer closeApp(c.Context(), app, &err)
			return run(c.Context(), app, args[1:])
		},
	}
	c.Flags().StringVarP(&x.index, "index", "x", "", "`ID` of the index (default: the only one)")
	return c
}

func (x *indexCommand) newStats() *cobra.Command {
	c := x.command("stats APP", "Show what each index contains", func(ctx context.Context, app *runtime.App, _ []string) error {
		declared, err := x.declared(app)
		if err != nil {
			return err
		}
		var rows []indexview.Stats
		for _, d := range declared {
			opened, err := app.Index(d.EntityID())
			if err != nil {
				return err
			}
			stats, err := opened.Stats(ctx)
			if err != nil {
				return fmt.Errorf("index %s: %w", d.EntityID(), err)
			}
			rows = append(rows, indexview.Describe(d, stats))
		}
		return x.view().Stats(rows)
	})
	x.format = addLineFormat(c)
	return c
}

func (x *indexCommand) newList() *cobra.Command {
	c := x.command("list APP", "List the entries of an index in the order of their ids", func(ctx context.Context, app *runtime.App, _ []string) error {
		if x.limit < 0 {
			return usagef("--limit cannot be %d: expected a number of entries", x.limit)
		}
		_, opened, err := x.one(app)
		if err != nil {
			return err
		}
		return x.view().List(opened.Entries(ctx, index.Page{After: x.after, Limit: x.limit}))
	})
	c.Flags().IntVarP(&x.limit, "limit", "n", 0, "at most `N` entries (default: all)")
	c.Flags().StringVar(&x.after, "after", "", "only entries whose id is greater than `ID`")
	x.format = addLineFormat(c)
	return c
}

func (x *indexCommand) newSearch() *cobra.Command {
	c := x.command("search APP QUERY", "Search an index", x.search, "a query: qtype index search APP QUERY")
	c.Flags().IntVarP(&x.limit, "limit", "n", 10, "at most `N` results")
	x.mode = newEnumFlag("", "vector", "text", "hybrid")
	x.mode.addTo(c, "mode", "", "what is compared (default: vector for a VectorIndex, text for a DocumentIndex)")
	x.format = addLineFormat(c)
	return c
}

func (x *indexCommand) search(ctx context.Context, app *runtime.App, args []string) error {
	if x.limit < 1 {
		return usagef("--limit cannot be %d: expected a positive number of results", x.limit)
	}
	declared, opened, err := x.one(app)
	if err != nil {
		return err
	}
	q := index.Query{Mode: index.ByText, Text: args[0], Limit: x.limit, Highlight: true}
	vectors, hasVectors := declared.(*spec.VectorIndex)
	switch {
	case !hasVectors && x.mode.value != "" && x.mode.value != "text":
		return usagef("index %s is a DocumentIndex: it has no vectors, so --mode can only be text", declared.EntityID())
	case hasVectors && x.mode.value == "hybrid":
		q.Mode = index.Hybrid
	case hasVectors && x.mode.value != "text":
		q.Mode, q.Highlight = index.ByVector, false
	}
	if q.Mode != index.ByText {
		if strings.TrimSpace(q.Text) == "" {
			return usagef("the query is empty: there is nothing to embed")
		}
		m, err := app.Embedder(vectors.EmbeddingModel.ID)
		if err != nil {
			return err
		}
		embedded, _, err := m.Embed(ctx, []string{q.Text})
		if err != nil {
			return err
		}
		q.Vector = embedded[0]
	}
	matches, err := opened.Search(ctx, q)
	if err != nil {
		return fmt.Errorf("index %s: %w", declared.EntityID(), err)
	}
	return x.view().Matches(matches)
}

func (x *indexCommand) newClear() *cobra.Command {
	c := x.command("clear APP", "Remove an index with all its entries", func(ctx context.Context, app *runtime.App, _ []string) error {
		declared, opened, err := x.one(app)
		if err != nil {
			return err
		}
		stats, err := opened.Stats(ctx)
		if err != nil {
			return fmt.Errorf("index %s: %w", declared.EntityID(), err)
		}
		if err := x.confirm(declared.EntityID(), stats.Entries); err != nil {
			return err
		}
		if err := opened.Clear(ctx); err != nil {
			return fmt.Errorf("index %s: %w", declared.EntityID(), err)
		}
		_, err = fmt.Fprintf(x.Out, "index %s: %s removed\n", declared.EntityID(), entries(stats.Entries))
		return err
	})
	c.Flags().BoolVarP(&x.yes, "yes", "y", false, "do not ask for confirmation")
	return c
}

func entries(n int64) string {
	if n == 1 {
		return "1 entry"
	}
	return textfmt.Thousands(n) + " entries"
}

// confirm prompts whether an index is to be removed.
func (x *indexCommand) confirm(id string, n int64) error {
	if x.yes {
		return nil
	}
	if !x.InTerminal {
		return usagef("clear removes %s of index %s: pass --yes to confirm", entries(n), id)
	}
	fmt.Fprintf(x.Err, "remove %s of index %s? [y/N] ", entries(n), id)
	var answer string
	if _, err := fmt.Fscanln(x.In, &answer); err != nil || !strings.HasPrefix(strings.ToLower(answer), "y") {
		return errors.New("nothing was removed")
	}
	return nil
}

// view returns a view as wide as the terminal.
func (x *indexCommand) view() *indexview.View {
	v := &indexview.View{Out: x.Out, Err: x.Err, JSON: x.format.value == "json"}
	if x.OutTerminal {
		v.Width = x.Width
	}
	return v
}

// declared returns the index of --index, or all.
func (x *indexCommand) declared(app *runtime.App) ([]spec.Index, error) {
	all := app.Indexes()
	var ids []string
	for _, d := range all {
		if d.EntityID() == x.index {
			return []spec.Index{d}, nil
		}
		ids = append(ids, d.EntityID())
	}
	switch {
	case x.index != "":
		return nil, usagef("no index has the id %q; there are: %s%s", x.index, textfmt.List(ids), diag.DidYouMean(x.index, ids))
	case len(all) == 0:
		return nil, fmt.Errorf("application %s declares no index", app.Spec().ID)
	}
	return all, nil
}

// one opens the index of --index, or the only one.
func (x *indexCommand) one(app *runtime.App) (spec.Index, index.Index, error) {
	all, err := x.declared(app)
	if err != nil {
		return nil, nil, err
	}
	if len(all) > 1 {
		var ids []string
		for _, d := range all {
			ids = append(ids, d.EntityID())
		}
		return nil, nil, usagef("which index? --index is one of %s", textfmt.List(ids))
	}
	opened, err := app.Index(all[0].EntityID())
	return all[0], opened, err
}
