// Package command is the program qtype, for main functions that add parts of their own.
package command

import (
	"fmt"
	"os"

	"github.com/qtype-dev/qtype/internal/authoring"
	"github.com/qtype-dev/qtype/internal/command"
	"github.com/qtype-dev/qtype/internal/schemagen"
	"github.com/qtype-dev/qtype/part"
)

// Main runs the command line of this process with the parts of the core and these, and returns its exit status. It must be the
// first call of main: tools run this executable again.
func Main(parts ...part.Part) int {
	table := command.Core()
	if err := part.Add(&table.Parts, parts...); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	table.Schema = func() (string, error) { return schemagen.Extend(authoring.Schema(), table.Language) }
	return command.Main(table)
}
