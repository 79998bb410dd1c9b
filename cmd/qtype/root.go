package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/spec/diag"
)

// commandRow is a command of the root.
type commandRow struct {
	name  string
	make  func(*streams) *cobra.Command
	group string // its heading in the help text
}

// commandTable returns the commands of the root in the order of the help text.
func commandTable() []commandRow {
	const run, author, state = "Run:", "Author:", "State:"
	return []commandRow{
		{"run", newRun, run}, {"chat", newChat, run}, {"serve", newServe, run}, {"worker", newWorker, run},
		{"test", newTest, run}, {"eval", newEval, run}, {"cost", newCost, run},
		{"init", newInit, author}, {"validate", newValidate, author}, {"fmt", newFormat, author}, {"diff", newDiff, author},
		{"explain", newExplain, author}, {"schema", newSchema, author}, {"lsp", newLSP, author}, {"mcp", newMCP, author},
		{"generate", newGenerate, author}, {"visualize", newVisualize, author}, {"convert", newConvert, author},
		{"memory", newMemory, state}, {"index", newIndex, state}, {"cache", newCache, state}, {"runs", newRuns, state},
		{"login", newLogin, state}, {"clean", newClean, state},
		{"version", newVersion, ""},
	}
}

// newRootFor returns the part of the command tree that a command line needs: that of the command
// which is its first word, or all. Most commands have dozens of flags, which took a quarter of the time of a start.
func newRootFor(s *streams, args []string) *cobra.Command {
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
func newRoot(s *streams) *cobra.Command {
	root := bareRoot(s)
	root.Version = version()
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
	root.SetHelpCommand(newHelp(root))
	addOriginalFlags(s, root)
	completeFlags(root)
	root.InitDefaultCompletionCmd()
	return root
}

// bareRoot returns the root of the command tree without commands.
func bareRoot(s *streams) *cobra.Command {
	root := &cobra.Command{
		Use:   "qtype",
		Short: "Check and run LLM applications that are declared in YAML",
		Example: `  qtype validate app.qtype.yaml
  qtype run app.qtype.yaml -I messages.csv
  qtype chat app.qtype.yaml --session me
  qtype memory list app.qtype.yaml`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          noCommand,
		RunE:          showHelp,

		PersistentPreRun: s.tuneGC,
	}
	root.SetIn(s.In)
	root.SetOut(s.Out)
	root.SetErr(s.Err)
	root.SetFlagErrorFunc(flagError)
	return root
}

// commandGroup returns a command that only has subcommands.
func commandGroup(use, short string, commands ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short, Args: noCommand, RunE: showHelp}
	c.AddCommand(commands...)
	return c
}

func showHelp(c *cobra.Command, _ []string) error { return c.Help() }

// noCommand rejects an unknown subcommand and suggests the nearest one.
func noCommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, sub := range c.Commands() {
		names = append(names, sub.Name())
	}
	near := diag.DidYouMean(args[0], names)
	if meant := habitualCommand(c, args[0]); meant != "" {
		near = fmt.Sprintf("; did you mean %q?", meant)
	}
	return &terminal.UsageError{Command: c.CommandPath(), Reason: fmt.Sprintf("%s has no command %q%s", c.CommandPath(), args[0], near)}
}

// arguments requires one argument for each description.
func arguments(descriptions ...string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		switch {
		case len(args) < len(descriptions):
			return &terminal.UsageError{Command: c.CommandPath(), Reason: fmt.Sprintf("%s needs %s", c.CommandPath(), descriptions[len(args)])}
		case len(args) > len(descriptions):
			return &terminal.UsageError{Command: c.CommandPath(), Reason: fmt.Sprintf("%s: unexpected argument %q", c.CommandPath(), args[len(descriptions)])}
		}
		return nil
	}
}

// optionalArgument allows one argument at most.
func optionalArgument(name string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) > 1 {
			return &terminal.UsageError{Command: c.CommandPath(), Reason: fmt.Sprintf("%s takes one %s", c.CommandPath(), name)}
		}
		return nil
	}
}

// flagError describes a wrong flag in one line and suggests the nearest one.
func flagError(c *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var bare *pflag.ValueRequiredError
	var invalid *pflag.InvalidValueError
	reason := err.Error()
	switch {
	case errors.As(err, &unknown):
		reason = unknownFlag(c, unknown)
	case errors.As(err, &bare):
		reason = fmt.Sprintf("--%s needs a value", bare.GetFlag().Name)
	case errors.As(err, &invalid):
		reason = fmt.Sprintf("--%s cannot be %q: expected %s", invalid.GetFlag().Name, invalid.GetValue(), expected(invalid.GetFlag()))
	}
	return &terminal.UsageError{Command: c.CommandPath(), Reason: reason}
}

func unknownFlag(c *cobra.Command, e *pflag.NotExistError) string {
	if short := e.GetSpecifiedShortnames(); short != "" {
		return fmt.Sprintf("%s has no flag -%s", c.CommandPath(), e.GetSpecifiedName())
	}
	var names []string
	c.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, "--"+f.Name) })
	name := "--" + e.GetSpecifiedName()
	near := diag.DidYouMean(name, names)
	if hint := habitualFlag(c, e.GetSpecifiedName()); hint != "" {
		near = "; " + hint
	}
	return fmt.Sprintf("%s has no flag %s%s", c.CommandPath(), name, near)
}

func expected(f *pflag.Flag) string {
	if c, ok := f.Value.(*enumFlag); ok {
		return "one of " + textfmt.List(c.known())
	}
	switch kind := f.Value.Type(); {
	case strings.HasPrefix(kind, "int"), strings.HasPrefix(kind, "uint"):
		return "a whole number"
	case strings.HasPrefix(kind, "float"):
		return "a number"
	case kind == "duration":
		return "a duration such as 90s or 2h"
	default:
		return "a " + kind
	}
}

// addLineFormat adds --format for commands that list things.
func addLineFormat(c *cobra.Command) *enumFlag {
	format := newEnumFlag("text", "json")
	c.Flags().Var(format, "format", "output format: text, or json with one object a line")
	return format
}

// enumFlag is a flag with a fixed set of values.
type enumFlag struct {
	value  string
	values []string
}

// newEnumFlag returns a flag whose default is the first value. An empty first value
// means that the default is decided elsewhere; it cannot be given.
func newEnumFlag(values ...string) *enumFlag { return &enumFlag{value: values[0], values: values} }

// String returns the value.
func (c *enumFlag) String() string { return c.value }

// Set sets the value.
func (c *enumFlag) Set(v string) error {
	if !slices.Contains(c.known(), v) {
		return errors.New("unknown value")
	}
	c.value = v
	return nil
}

// Type returns the values for the help text.
func (c *enumFlag) Type() string { return strings.Join(c.known(), "|") }

// known returns the values that may be given.
func (c *enumFlag) known() []string {
	if c.values[0] == "" {
		return c.values[1:]
	}
	return c.values
}

// addTo adds the flag to a command, with shell completion.
func (c *enumFlag) addTo(cmd *cobra.Command, name, short, usage string) {
	cmd.Flags().VarP(c, name, short, usage)
	_ = cmd.RegisterFlagCompletionFunc(name, c.complete) // fails only for an unknown flag
}

// complete returns the values for shell completion.
func (c *enumFlag) complete(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return c.known(), cobra.ShellCompDirectiveNoFileComp
}

// yamlFiles completes the names of documents.
func yamlFiles(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return []string{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt
}
