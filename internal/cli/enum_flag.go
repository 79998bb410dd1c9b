package cli

import (
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// AddLineFormat adds --format for commands that list things.
func AddLineFormat(c *cobra.Command) *EnumFlag {
	format := NewEnumFlag("text", "json")
	c.Flags().Var(format, "format", "output format: text, or json with one object a line")
	return format
}

// EnumFlag is a flag with a fixed set of values.
type EnumFlag struct {
	Value  string
	values []string
}

// NewEnumFlag returns a flag whose default is the first value. An empty first value
// means that the default is decided elsewhere; it cannot be given.
func NewEnumFlag(values ...string) *EnumFlag { return &EnumFlag{Value: values[0], values: values} }

// String returns the value.
func (c *EnumFlag) String() string { return c.Value }

// Set sets the value.
func (c *EnumFlag) Set(v string) error {
	if !slices.Contains(c.known(), v) {
		return errors.New("unknown value")
	}
	c.Value = v
	return nil
}

// Type returns the values for the help text.
func (c *EnumFlag) Type() string { return strings.Join(c.known(), "|") }

// known returns the values that may be given.
func (c *EnumFlag) known() []string {
	if c.values[0] == "" {
		return c.values[1:]
	}
	return c.values
}

// AddTo adds the flag to a command, with shell completion.
func (c *EnumFlag) AddTo(cmd *cobra.Command, name, short, usage string) {
	cmd.Flags().VarP(c, name, short, usage)
	_ = cmd.RegisterFlagCompletionFunc(name, c.complete) // fails only for an unknown flag
}

// complete returns the values for shell completion.
func (c *EnumFlag) complete(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return c.known(), cobra.ShellCompDirectiveNoFileComp
}

// YAMLFiles completes the names of documents.
func YAMLFiles(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return []string{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt
}
