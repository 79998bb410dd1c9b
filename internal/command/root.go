package command

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/qtype-dev/qtype/internal/cli"
	"github.com/qtype-dev/qtype/internal/cli/appflags"
	"github.com/qtype-dev/qtype/internal/cli/author"
	"github.com/qtype-dev/qtype/internal/cli/state"
)

// program returns the program qtype with its commands.
func program() *cli.Program {
	const running, stored = "Run:", "State:"
	return &cli.Program{
		Name: "qtype", Short: "Check and run LLM applications that are declared in YAML",
		Example: `  qtype validate app.qtype.yaml
  qtype run app.qtype.yaml -I messages.csv
  qtype chat app.qtype.yaml --session me
  qtype memory list app.qtype.yaml`,
		PreRun: new(ballast).tuneGC, Complete: appflags.CompleteFlags, Words: joinTrace,
		Commands: slices.Concat([]cli.Command{
			{Name: "run", Make: newRun, Group: running}, {Name: "chat", Make: newChat, Group: running}, {Name: "serve", Make: newServe, Group: running},
			{Name: "worker", Make: newWorker, Group: running}, {Name: "test", Make: newTest, Group: running}, {Name: "eval", Make: newEval, Group: running},
			{Name: "optimize", Make: newOptimize, Group: running},
			{Name: "cost", Make: newCost, Group: running},
		}, withModels(author.Commands()), []cli.Command{
			{Name: "mcp", Make: newMCP, Group: author.Group}, {Name: "convert", Make: newConvert, Group: author.Group},
			{Name: "memory", Make: state.NewMemory, Group: stored}, {Name: "index", Make: state.NewIndex, Group: stored}, {Name: "cache", Make: state.NewCache, Group: stored},
			{Name: "runs", Make: newRuns, Group: stored}, {Name: "login", Make: state.NewLogin, Group: stored}, {Name: "clean", Make: state.NewClean, Group: stored},
			{Name: "version", Make: newVersion},
		}),
	}
}

// withModels replaces the command models by one that also calls servers.
func withModels(commands []cli.Command) []cli.Command {
	for i := range commands {
		if commands[i].Name == "models" {
			commands[i].Make = newModels
		}
	}
	return commands
}

// newRootFor returns the part of the command tree that a command line needs.
func newRootFor(s *cli.Streams, args []string) *cobra.Command { return program().RootFor(s, args) }

// newRoot returns the command tree.
func newRoot(s *cli.Streams) *cobra.Command { return program().Root(s) }

// newRuns returns qtype runs, which retries a run by its command line.
func newRuns(s *cli.Streams) *cobra.Command {
	return state.NewRuns(s, func(ctx context.Context, args []string) error { return program().Nested(ctx, s, args) })
}
