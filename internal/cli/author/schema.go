package author

import (
	"github.com/spf13/cobra"

	"github.com/qtype-dev/qtype/internal/apptest"
	"github.com/qtype-dev/qtype/internal/authoring"
	"github.com/qtype-dev/qtype/internal/cli"
	"github.com/qtype-dev/qtype/internal/eval"
	"github.com/qtype-dev/qtype/internal/terminal"
)

// NewSchema returns qtype schema.
func NewSchema(s *cli.Streams) *cobra.Command {
	var output string
	var tests, evaluations bool
	c := &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON schema of documents, for editors",
		Example: `  qtype schema -o schema.json
  # then, as the first line of a document:
  # yaml-language-server: $schema=schema.json`,
		Args: cli.Arguments(),
		RunE: func(c *cobra.Command, _ []string) error {
			switch {
			case tests && evaluations:
				return terminal.Usagef("--tests and --evaluations exclude each other")
			case tests:
				return s.WriteTo(output, apptest.Schema())
			case evaluations:
				return s.WriteTo(output, eval.Schema())
			}
			schema, err := authoring.SchemaOf(c.Context())
			if err != nil {
				return err
			}
			return s.WriteTo(output, schema)
		},
	}
	c.Flags().BoolVar(&tests, "tests", false, "print the schema of test files")
	c.Flags().BoolVar(&evaluations, "evaluations", false, "print the schema of evaluation files")
	c.Flags().StringVarP(&output, "output", "o", "", "write the schema to `FILE`")
	return c
}
