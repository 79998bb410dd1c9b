package state

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/qtype-dev/qtype/index"
	"github.com/qtype-dev/qtype/internal/cli"
	"github.com/qtype-dev/qtype/internal/cli/appflags"
	"github.com/qtype-dev/qtype/internal/indexview"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/runtime"
)

// indexCommand is a subcommand of qtype index.
type indexCommand struct {
	*cli.Streams
	cmd   *cobra.Command
	index string // the index's id; may be empty if the document has only one
}

// NewIndex returns qtype index.
func NewIndex(s *cli.Streams) *cobra.Command {
	return cli.CommandGroup("index", "Inspect and manage indexes of documents", newIndexStats(s), newIndexList(s), newIndexSearch(s), newIndexClear(s))
}

// newIndexCommand returns a subcommand for the indexes of a document; further describes arguments
// after the document.
func newIndexCommand(s *cli.Streams, use, short string, further ...string) *indexCommand {
	x := &indexCommand{Streams: s, cmd: &cobra.Command{Use: use, Short: short, Args: cli.Arguments(append([]string{"a document: qtype index " + use}, further...)...), ValidArgsFunction: cli.YAMLFiles}}
	x.cmd.Flags().StringVarP(&x.index, "index", "x", "", "`ID` of the index (default: the only one)")
	return x
}

// do makes the command run with the application of a document.
func (x *indexCommand) do(run func(context.Context, *runtime.App) error) *cobra.Command {
	x.cmd.RunE = func(c *cobra.Command, args []string) error {
		return withStored(c.Context(), x.Streams, args[0], &appflags.Store{}, run)
	}
	return x.cmd
}

// view returns a view as wide as the terminal; format may be nil.
func (x *indexCommand) view(format *cli.EnumFlag) *indexview.View {
	v := &indexview.View{Out: x.Out, Err: x.Err, JSON: format != nil && format.Value == "json"}
	if x.OutTerminal {
		v.Width = x.Width
	}
	return v
}

func newIndexStats(s *cli.Streams) *cobra.Command {
	x := newIndexCommand(s, "stats APP", "Show what each index contains")
	format := cli.AddLineFormat(x.cmd)
	return x.do(func(ctx context.Context, app *runtime.App) error {
		rows, err := indexview.StatsOf(ctx, app, x.index)
		if err != nil {
			return err
		}
		return x.view(format).Stats(rows)
	})
}

func newIndexList(s *cli.Streams) *cobra.Command {
	x := newIndexCommand(s, "list APP", "List the entries of an index in the order of their ids")
	var page index.Page
	x.cmd.Flags().IntVarP(&page.Limit, "limit", "n", 0, "at most `N` entries (default: all)")
	x.cmd.Flags().StringVar(&page.After, "after", "", "only entries whose id is greater than `ID`")
	format := cli.AddLineFormat(x.cmd)
	return x.do(func(ctx context.Context, app *runtime.App) error {
		if page.Limit < 0 {
			return terminal.Usagef("--limit cannot be %d: expected a number of entries", page.Limit)
		}
		opened, err := indexview.Open(app, x.index)
		if err != nil {
			return err
		}
		return x.view(format).List(opened.Entries(ctx, page))
	})
}

func newIndexSearch(s *cli.Streams) *cobra.Command {
	x := newIndexCommand(s, "search APP QUERY", "Search an index", "a query: qtype index search APP QUERY")
	limit := x.cmd.Flags().IntP("limit", "n", 10, "at most `N` results")
	mode := cli.NewEnumFlag(append([]string{""}, indexview.Modes()...)...)
	mode.AddTo(x.cmd, "mode", "", "what is compared (default: vector for a VectorIndex, text for a DocumentIndex)")
	format := cli.AddLineFormat(x.cmd)
	return x.do(func(ctx context.Context, app *runtime.App) error {
		if *limit < 1 {
			return terminal.Usagef("--limit cannot be %d: expected a positive number of results", *limit)
		}
		opened, err := indexview.Open(app, x.index)
		if err != nil {
			return err
		}
		matches, err := opened.Search(ctx, app, mode.Value, x.cmd.Flags().Arg(1), *limit)
		if err != nil {
			return err
		}
		return x.view(format).Matches(matches)
	})
}

func newIndexClear(s *cli.Streams) *cobra.Command {
	x := newIndexCommand(s, "clear APP", "Remove an index with all its entries")
	c := confirmation{Streams: s}
	c.addTo(x.cmd.Flags())
	return x.do(func(ctx context.Context, app *runtime.App) error {
		opened, err := indexview.Open(app, x.index)
		if err != nil {
			return err
		}
		return x.view(nil).Clear(ctx, opened, func(what string) error { return c.ask("clear", what) })
	})
}
