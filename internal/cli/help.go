package cli

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// flagGroup is the annotation of a flag with the heading that it has in the help text.
const flagGroup = "qtype_group"

// AddFlags adds flags under a heading of the help text.
func AddFlags(f *pflag.FlagSet, heading string, add func()) {
	before := map[string]bool{}
	f.VisitAll(func(flag *pflag.Flag) { before[flag.Name] = true })
	add()
	f.VisitAll(func(flag *pflag.Flag) {
		if !before[flag.Name] {
			_ = f.SetAnnotation(flag.Name, flagGroup, []string{heading}) // fails only for an unknown flag
		}
	})
}

// Heading returns the heading of a flag in the help text; empty for none.
func Heading(flag *pflag.Flag) string { return strings.Join(flag.Annotations[flagGroup], "") }

// GroupHelp lets the help text of a command have its flags under their headings, those without one at the end.
func GroupHelp(c *cobra.Command) {
	c.SetUsageFunc(func(c *cobra.Command) error {
		c.SetUsageFunc(nil)
		c.SetUsageTemplate(groupedUsage(c))
		return c.Usage()
	})
}

// groupedUsage returns the template of GroupHelp.
func groupedUsage(c *cobra.Command) string {
	c.InitDefaultHelpFlag()
	var headings []string
	groups := map[string]*pflag.FlagSet{}
	c.Flags().VisitAll(func(flag *pflag.Flag) {
		heading := cmp.Or(Heading(flag), "Other")
		if groups[heading] == nil {
			groups[heading] = pflag.NewFlagSet(heading, pflag.ContinueOnError)
			groups[heading].SortFlags = false
			headings = append(headings, heading)
		}
		groups[heading].AddFlag(flag)
	})
	var text []string
	for _, heading := range headings {
		text = append(text, fmt.Sprintf("%s:\n%s", heading, strings.TrimRight(groups[heading].FlagUsages(), "\n")))
	}
	const ungrouped = "Flags:\n{{.LocalFlags.FlagUsages | trimTrailingWhitespaces}}"
	return strings.Replace(c.UsageTemplate(), ungrouped, strings.Join(text, "\n\n"), 1)
}

// NewHelp returns the command help. Unlike that of cobra, it fails for an unknown command.
func NewHelp(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Help about any command",
		ValidArgsFunction: func(_ *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
			c, _, err := root.Find(args)
			if err != nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return Matching(c.Commands(), typed, (*cobra.Command).Name), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			c, rest, err := root.Find(args)
			if err != nil {
				return err
			}
			if len(rest) > 0 {
				return noCommand(c, rest)
			}
			c.InitDefaultHelpFlag()
			return c.Help()
		},
	}
}
