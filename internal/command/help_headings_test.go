package command

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/qtype-dev/qtype/internal/cli"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/internal/testkit"
)

// maxUngrouped is the number of flags that a help text may list without headings.
const maxUngrouped = 14

// TestHelp_Headings: the flags of a command with many have headings, and each command has a usage of its own.
func TestHelp_Headings(t *testing.T) {
	var visit func(c *cobra.Command)
	visit = func(c *cobra.Command) {
		alone, _, err := newRoot(&cli.Streams{Streams: terminal.Streams{}}).Find(strings.Fields(c.CommandPath())[1:])
		testkit.Must(t, err)
		if usage := alone.UsageString(); !strings.Contains(usage, "Usage:\n  "+c.CommandPath()) || len(usage) > 10_000 {
			t.Errorf("the usage of %s has %d bytes:\n%.2000s", c.CommandPath(), len(usage), usage)
		}
		count, without := 0, ""
		c.LocalFlags().VisitAll(func(flag *pflag.Flag) {
			if flag.Name == "help" || flag.Hidden {
				return
			}
			if count++; cli.Heading(flag) == "" {
				without = flag.Name
			}
		})
		if count > maxUngrouped && without != "" {
			t.Errorf("%s has %d flags, and --%s has no heading", c.CommandPath(), count, without)
		}
		for _, sub := range c.Commands() {
			visit(sub)
		}
	}
	visit(newRoot(&cli.Streams{Streams: terminal.Streams{}}))
}
