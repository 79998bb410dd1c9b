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

// newRoot returns the command tree.
func newRoot(s *streams) *cobra.Command {
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
	root.Version = version()
	root.SetVersionTemplate(versionLine())
	root.Flags().Bool("version", false, "print the version") // without a short form
	root.SetIn(s.In)
	root.SetOut(s.Out)
	root.SetErr(s.Err)
	root.SetFlagErrorFunc(flagError)
	addGroup(root, "Run:", newRun(s), newChat(s), newServe(s), newWorker(s), newTest(s), newEval(s), newCost(s))
	addGroup(root, "Author:", newInit(s), newValidate(s), newFormat(s), newDiff(s), newExplain(s), newSchema(s), newLSP(s), newMCP(s), newGenerate(s), newVisualize(s), newConvert(s))
	addGroup(root, "State:", newMemory(s), newIndex(s), newCache(s), newRuns(s), newLogin(s), newClean(s))
	root.AddCommand(newVersion(s))
	addOriginalFlags(s, root)
	completeFlags(root)
	root.InitDefaultCompletionCmd()
	return root
}

// addGroup adds commands under a heading of the help text.
func addGroup(root *cobra.Command, title string, commands ...*cobra.Command) {
	root.AddGroup(&cobra.Group{ID: title, Title: title})
	for _, c := range commands {
		c.GroupID = title
		root.AddCommand(c)
	}
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
	return &terminal.UsageError{Command: c.CommandPath(), Reason: fmt.Sprintf("%s has no command %q%s", c.CommandPath(), args[0], diag.DidYouMean(args[0], names))}
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
	return fmt.Sprintf("%s has no flag %s%s", c.CommandPath(), name, diag.DidYouMean(name, names))
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
