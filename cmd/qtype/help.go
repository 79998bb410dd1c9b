package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// flagGroup is the annotation of a flag with the heading that it has in the help text.
const flagGroup = "qtype_group"

// addFlags adds flags under a heading of the help text.
func addFlags(f *pflag.FlagSet, heading string, add func()) {
	before := map[string]bool{}
	f.VisitAll(func(flag *pflag.Flag) { before[flag.Name] = true })
	add()
	f.VisitAll(func(flag *pflag.Flag) {
		if !before[flag.Name] {
			_ = f.SetAnnotation(flag.Name, flagGroup, []string{heading}) // fails only for an unknown flag
		}
	})
}

// groupHelp lets the help text of a command have its flags under their headings, those without one at the end.
func groupHelp(c *cobra.Command) {
	c.SetUsageFunc(func(c *cobra.Command) error {
		c.SetUsageFunc(nil)
		c.SetUsageTemplate(groupedUsage(c))
		return c.Usage()
	})
}

// groupedUsage returns the template of groupHelp.
func groupedUsage(c *cobra.Command) string {
	c.InitDefaultHelpFlag()
	var headings []string
	groups := map[string]*pflag.FlagSet{}
	c.Flags().VisitAll(func(flag *pflag.Flag) {
		heading := "Other"
		if given := flag.Annotations[flagGroup]; len(given) > 0 {
			heading = given[0]
		}
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
