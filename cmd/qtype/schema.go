package main

import (
	"github.com/spf13/cobra"

	"github.com/qtype-dev/qtype"
)

func newSchema(s *streams) *cobra.Command {
	var output string
	c := &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON schema of documents, for editors",
		Example: `  qtype schema -o schema.json
  # then, as the first line of a document:
  # yaml-language-server: $schema=schema.json`,
		Args: arguments(),
		RunE: func(*cobra.Command, []string) error { return s.write(output, qtype.Schema()) },
	}
	c.Flags().StringVarP(&output, "output", "o", "", "write it to this `FILE`")
	return c
}
