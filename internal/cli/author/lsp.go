package author

import (
	"github.com/spf13/cobra"

	"github.com/qtype-dev/qtype/internal/authoring"
	"github.com/qtype-dev/qtype/internal/cli"
	"github.com/qtype-dev/qtype/internal/lsp"
)

// NewLSP returns qtype lsp.
func NewLSP(s *cli.Streams) *cobra.Command {
	var remote bool
	c := &cobra.Command{
		Use:   "lsp",
		Short: "Run the language server on standard input and output",
		Long: `Runs the language server (LSP 3.17) on standard input and output: diagnostics,
completion, hover, definitions, references, rename, symbols, quick fixes, semantic
highlighting and formatting. Editors start it themselves; docs/editors.md describes
how to set them up.`,
		Args: cli.Arguments(),
		RunE: func(c *cobra.Command, _ []string) error {
			var commands []string
			for _, other := range c.Root().Commands() {
				commands = append(commands, other.Name())
			}
			schema, err := authoring.SchemaOf(c.Context())
			if err != nil {
				return err
			}
			return lsp.Serve(c.Context(), s.In, s.Out, lsp.Options{Version: cli.Version(), Schema: schema,
				Kinds: authoring.FileKinds(authoring.Options{}), Commands: commands, Remote: remote, Today: today})
		},
	}
	c.Flags().BoolVar(&remote, "remote", false, "read remote includes, in the background")
	// Client libraries of editors pass the transport; there is only one.
	c.Flags().Bool("stdio", true, "use standard input and output; the only transport")
	return c
}
