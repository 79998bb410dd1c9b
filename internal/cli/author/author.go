// Package author has the commands of qtype for those who write documents: they create, check, format,
// compare, draw and convert documents, and serve editors and coding assistants. Only qtype mcp --app runs flows.
package author

import (
	"fmt"

	"github.com/qtype-dev/qtype/internal/cli"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/validate/lint"
)

// writeDiff writes a change of qtype validate or qtype fmt as a diff.
func writeDiff(s *cli.Streams, c lint.Change) error {
	text, masked := c.Diff()
	if masked {
		fmt.Fprintf(s.Err, "%s: secrets are shown as ***, so this diff cannot be applied\n", terminal.Clean(c.Path))
	}
	_, err := s.Out.Write(text)
	return err
}
