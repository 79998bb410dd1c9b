package main

import (
	"github.com/spf13/cobra"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/lsp"
)

func newLSP(s *streams) *cobra.Command {
	var remote bool
	c := &cobra.Command{
		Use:   "lsp",
		Short: "Serve an editor: the language server, on standard input and output",
		Long: `Serves an editor as a language server (LSP 3.17) on standard input and output:
diagnostics while typing, completion, hover texts, definitions, references,
rename, symbols, quick fixes, semantic colours and formatting. Editors start it
themselves; docs/editors.md tells how to set them up.`,
		Args: arguments(),
		RunE: func(c *cobra.Command, _ []string) error {
			return lsp.Serve(c.Context(), s.in, s.out, lsp.Options{Version: version(), Schema: qtype.Schema(), Remote: remote})
		},
	}
	c.Flags().BoolVar(&remote, "remote", false, "read includes of other machines, in the background")
	// Editors' client libraries say how they talk to a server; there is one way here.
	c.Flags().Bool("stdio", true, "talk on standard input and output, which is the only way")
	return c
}
