package command

import (
	"slices"
	"testing"

	"github.com/spf13/cobra"

	"github.com/qtype-dev/qtype/internal/cli"
	"github.com/qtype-dev/qtype/internal/terminal"
)

// TestRoot_OneCommand: the tree for the command line of a command has the same command as the whole tree.
func TestRoot_OneCommand(t *testing.T) {
	s := &cli.Streams{Streams: terminal.Streams{}}
	whole := newRoot(s)
	for _, row := range program().Commands {
		part, _, err := newRootFor(s, []string{row.Name, "-x"}).Find([]string{row.Name})
		if err != nil || part.Name() != row.Name {
			t.Errorf("%s: found %v, %v", row.Name, part.Name(), err)
			continue
		}
		all, _, err := whole.Find([]string{row.Name})
		if err != nil || all.UsageString() != part.UsageString() {
			t.Errorf("%s has another usage: %v\n%s\n%s", row.Name, err, all.UsageString(), part.UsageString())
		}
	}
}

// TestRoot_AllCommands: all other command lines have the whole tree, with the errors and the help of all commands.
func TestRoot_AllCommands(t *testing.T) {
	s := &cli.Streams{Streams: terminal.Streams{}}
	for _, args := range [][]string{nil, {"--version"}, {"help", "run"}, {"rnu"}, {"completion"}, {cobra.ShellCompRequestCmd, "run", ""}} {
		root := newRootFor(s, args)
		for _, row := range program().Commands {
			if !slices.ContainsFunc(root.Commands(), func(c *cobra.Command) bool { return c.Name() == row.Name }) {
				t.Errorf("%q: no command %s", args, row.Name)
			}
		}
	}
}
