package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// newRoot is the command tree.
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
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },

		PersistentPreRun: s.tuneGC,
	}
	root.SetIn(s.in)
	root.SetOut(s.out)
	root.SetErr(s.err)
	root.SetFlagErrorFunc(flagError)
	root.AddCommand(newRun(s), newChat(s), newValidate(s), newTest(s), newMemory(s), newCache(s), newExplain(s), newSchema(s), newDiff(s), newConvert(s), newVisualize(s), newInit(s), newLSP(s), newVersion(s))
	root.InitDefaultCompletionCmd()
	return root
}

// noCommand answers a word that is no subcommand with the nearest that is one.
func noCommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, sub := range c.Commands() {
		names = append(names, sub.Name())
	}
	return &usageError{command: c.CommandPath(), reason: fmt.Sprintf("%s has no command %q%s", c.CommandPath(), args[0], didYouMean(args[0], names))}
}

// arguments demands so many arguments, named as a user reads them.
func arguments(names ...string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		switch {
		case len(args) < len(names):
			return &usageError{command: c.CommandPath(), reason: fmt.Sprintf("%s needs %s", c.CommandPath(), names[len(args)])}
		case len(args) > len(names):
			return &usageError{command: c.CommandPath(), reason: fmt.Sprintf("%s does not know what to do with %q", c.CommandPath(), args[len(names)])}
		}
		return nil
	}
}

// flagError puts what is wrong with a flag in one line, with the nearest flag
// that exists.
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
		reason = fmt.Sprintf("--%s cannot be %q: %s", invalid.GetFlag().Name, invalid.GetValue(), expected(invalid.GetFlag()))
	}
	return &usageError{command: c.CommandPath(), reason: reason}
}

func unknownFlag(c *cobra.Command, e *pflag.NotExistError) string {
	if short := e.GetSpecifiedShortnames(); short != "" {
		return fmt.Sprintf("%s has no flag -%s", c.CommandPath(), e.GetSpecifiedName())
	}
	var names []string
	c.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, "--"+f.Name) })
	name := "--" + e.GetSpecifiedName()
	return fmt.Sprintf("%s has no flag %s%s", c.CommandPath(), name, didYouMean(name, names))
}

func expected(f *pflag.Flag) string {
	if c, ok := f.Value.(*enumFlag); ok {
		return "it is one of " + joinNames(c.known())
	}
	if kind := f.Value.Type(); !strings.HasPrefix(kind, "int") && !strings.HasPrefix(kind, "uint") {
		return "a " + kind + " is expected"
	}
	return "a whole number is expected"
}

// enumFlag is a flag that takes one of a few words.
type enumFlag struct {
	value  string
	values []string
}

// newChoice is a flag value whose first word is the usual one; an empty first
// word means that something else decides.
func newChoice(values ...string) *enumFlag { return &enumFlag{value: values[0], values: values} }

// String is the word that was given.
func (c *enumFlag) String() string { return c.value }

// Set takes a word.
func (c *enumFlag) Set(v string) error {
	if !slices.Contains(c.known(), v) {
		return errors.New("not a word that is known")
	}
	c.value = v
	return nil
}

// Type shows the words in the help text.
func (c *enumFlag) Type() string { return strings.Join(c.known(), "|") }

// known are the words that may be given.
func (c *enumFlag) known() []string {
	if c.values[0] == "" {
		return c.values[1:]
	}
	return c.values
}

// complete offers the words to a shell.
func (c *enumFlag) complete(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return c.known(), cobra.ShellCompDirectiveNoFileComp
}

// yamlFiles lets a shell complete documents.
func yamlFiles(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return []string{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt
}
