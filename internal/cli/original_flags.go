package cli

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"
)

// originalFlag is a flag of QType (Python) that is accepted so that its command lines work.
type originalFlag struct {
	command, name, short string
	note                 string // why it has no effect; empty if that is what the command does anyway
}

// originalFlags is the table of these flags.
var originalFlags = []originalFlag{
	{"run", "progress", "", ""},
	{"run", "show-output", "", "--show-output has no effect: results are shown unless -o names a file"},
	{"validate", "print", "p", "--print has no effect: qtype visualize and qtype schema show documents"},
	{"visualize", "no-display", "", ""},
}

// addOriginalFlags adds the flags to the commands, without help.
func addOriginalFlags(s *Streams, root *cobra.Command) {
	for _, o := range originalFlags {
		c, _, err := root.Find([]string{o.command})
		if err != nil || c == root { // it has no such command
			continue
		}
		c.Flags().BoolP(o.name, o.short, false, "flag of QType (Python), without effect")
		_ = c.Flags().MarkHidden(o.name) // fails only for an unknown flag
		run := c.RunE
		c.RunE = func(c *cobra.Command, args []string) error {
			if o.note != "" && c.Flags().Changed(o.name) {
				fmt.Fprintln(s.Err, o.note)
			}
			return run(c, args)
		}
	}
}

// joinShorts replaces -nd in a command line of QType (Python), which would be two flags here.
func joinShorts(args []string) []string {
	i := slices.Index(args, "-nd")
	if i < 0 || !slices.Contains(args[:i], "visualize") {
		return args
	}
	joined := slices.Clone(args)
	joined[i] = "--no-display"
	return joined
}
