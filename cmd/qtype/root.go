package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/qtype-dev/qtype/internal/cli"
	"github.com/qtype-dev/qtype/internal/cli/author"
	"github.com/qtype-dev/qtype/internal/cli/state"
)

// commandRow is a command of the root.
type commandRow struct {
	name  string
	make  func(*cli.Streams) *cobra.Command
	group string // its heading in the help text
}

// commandTable returns the commands of the root in the order of the help text.
func commandTable() []commandRow {
	const running, authoring, stored = "Run:", "Author:", "State:"
	return []commandRow{
		{"run", newRun, running}, {"chat", newChat, running}, {"serve", newServe, running}, {"worker", newWorker, running},
		{"test", newTest, running}, {"eval", newEval, running}, {"cost", newCost, running},
		{"init", author.NewInit, authoring}, {"validate", author.NewValidate, authoring}, {"fmt", author.NewFormat, authoring}, {"diff", author.NewDiff, authoring},
		{"explain", author.NewExplain, authoring}, {"schema", author.NewSchema, authoring}, {"lsp", author.NewLSP, authoring}, {"mcp", author.NewMCP, authoring},
		{"generate", author.NewGenerate, authoring}, {"visualize", author.NewVisualize, authoring}, {"convert", author.NewConvert, authoring},
		{"memory", state.NewMemory, stored}, {"index", state.NewIndex, stored}, {"cache", state.NewCache, stored}, {"runs", newRuns, stored},
		{"login", state.NewLogin, stored}, {"clean", state.NewClean, stored},
		{"version", newVersion, ""},
	}
}

// newRootFor returns the part of the command tree that a command line needs: that of the command
// which is its first word, or all. Most commands have dozens of flags, which took a quarter of the time of a start.
func newRootFor(s *cli.Streams, args []string) *cobra.Command {
	if len(args) > 0 {
		for _, row := range commandTable() {
			if row.name == args[0] {
				root := bareRoot(s)
				root.CompletionOptions.DisableDefaultCmd = true
				root.AddCommand(row.make(s))
				addOriginalFlags(s, root)
				return root
			}
		}
	}
	return newRoot(s)
}

// newRoot returns the command tree.
func newRoot(s *cli.Streams) *cobra.Command {
	root := bareRoot(s)
	root.Version = cli.Version()
	root.SetVersionTemplate(versionLine())
	root.Flags().Bool("version", false, "print the version") // without a short form
	for _, row := range commandTable() {
		if row.group != "" && !root.ContainsGroup(row.group) {
			root.AddGroup(&cobra.Group{ID: row.group, Title: row.group})
		}
		c := row.make(s)
		c.GroupID = row.group
		root.AddCommand(c)
	}
	root.SetHelpCommand(cli.NewHelp(root))
	addOriginalFlags(s, root)
	cli.CompleteFlags(root)
	root.InitDefaultCompletionCmd()
	return root
}

// bareRoot returns the root of the command tree without commands.
func bareRoot(s *cli.Streams) *cobra.Command {
	root := cli.CommandGroup("qtype", "Check and run LLM applications that are declared in YAML")
	root.Example = `  qtype validate app.qtype.yaml
  qtype run app.qtype.yaml -I messages.csv
  qtype chat app.qtype.yaml --session me
  qtype memory list app.qtype.yaml`
	root.SilenceErrors, root.SilenceUsage = true, true
	root.PersistentPreRun = new(ballast).tuneGC
	root.SetIn(s.In)
	root.SetOut(s.Out)
	root.SetErr(s.Err)
	root.SetFlagErrorFunc(cli.FlagError)
	return root
}

// newRuns returns qtype runs, which retries a run by its command line.
func newRuns(s *cli.Streams) *cobra.Command {
	return state.NewRuns(s, func(ctx context.Context, args []string) error {
		s.CommandLine = args
		root := newRoot(s)
		root.SetArgs(joinTrace(joinShorts(args)))
		return root.ExecuteContext(ctx)
	})
}
