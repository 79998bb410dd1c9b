package main

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/apptest"
	"github.com/qtype-dev/qtype/internal/scaffold"
)

func newInit(s *streams) *cobra.Command {
	template := newChoice(scaffold.Names()...)
	c := &cobra.Command{
		Use:   "init [DIR]",
		Short: "Write a new project that validates, tests and runs at once",
		Long: `Writes a new project into a folder, the current one where none is named: an
application that runs offline at once, its tests, a README, a workflow that
checks it, and the schemas for editors. Nothing that exists is overwritten.`,
		Example: `  qtype init hello
  qtype init reviews --template batch
  qtype init desk --template agent`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 1 {
				return &usageError{command: c.CommandPath(), reason: "qtype init takes one folder"}
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			return writeProject(s, strings.Join(args, ""), template.value)
		},
	}
	c.Flags().VarP(template, "template", "t", "what the project does: talk, work through a file, or use a tool")
	_ = c.RegisterFlagCompletionFunc("template", template.complete) // fails only for a flag that is not there
	return c
}

// writeProject writes a project and tells what to do with it.
func writeProject(s *streams, folder, template string) error {
	written, err := scaffold.Write(folder, template, scaffold.Schemas{Document: qtype.Schema(), Tests: apptest.Schema()})
	var file *fs.PathError
	switch {
	case errors.As(err, &file):
		return fmt.Errorf("%s: cannot be written: %w", file.Path, plainCause(err))
	case err != nil:
		return err
	}
	for _, path := range written {
		fmt.Fprintln(s.out, "wrote", clean(path))
	}
	app := clean(filepath.Join(folder, "app.qtype.yaml"))
	try := fmt.Sprintf(`qtype run %s -i '"Hello"'`, app)
	if template == "batch" {
		try = fmt.Sprintf("qtype run %s -I %s", app, clean(filepath.Join(folder, "reviews.csv")))
	}
	_, err = fmt.Fprintf(s.out, "\nnow try:\n  qtype validate %s\n  qtype test %s\n  %s\n", app, clean(filepath.Join(".", folder)), try)
	return err
}
