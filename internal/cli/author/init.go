package author

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/qtype-dev/qtype/internal/apptest"
	"github.com/qtype-dev/qtype/internal/authoring"
	"github.com/qtype-dev/qtype/internal/cli"
	"github.com/qtype-dev/qtype/internal/scaffold"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/internal/textfmt"
)

// NewInit returns qtype init.
func NewInit(s *cli.Streams) *cobra.Command {
	template := cli.NewEnumFlag(scaffold.Names()...)
	c := &cobra.Command{
		Use:   "init [DIR]",
		Short: "Create a new project",
		Long: `Creates a project in a directory, by default the current one: an application that
runs offline, its tests, a README, a workflow that checks it, and the schemas for
editors. Existing files are not overwritten.`,
		Example: `  qtype init hello
  qtype init reviews --template batch
  qtype init docs --template rag
  qtype init desk --template agent`,
		Args: cli.OptionalArgument("directory"),
		RunE: func(_ *cobra.Command, args []string) error {
			return writeProject(s, strings.Join(args, ""), template.Value)
		},
	}
	template.AddTo(c, "template", "t", "project template: "+strings.Join(scaffold.Names(), ", "))
	return c
}

// writeProject creates a project and prints the first commands to try.
func writeProject(s *cli.Streams, folder, template string) error {
	written, err := scaffold.Write(folder, template, scaffold.Schemas{Document: authoring.Schema(), Tests: apptest.Schema()})
	var file *fs.PathError
	switch {
	case errors.As(err, &file):
		return fmt.Errorf("%s: cannot be written: %w", file.Path, terminal.Cause(err))
	case err != nil:
		return err
	}
	for _, path := range written {
		fmt.Fprintln(s.Out, "wrote", terminal.Clean(path))
	}
	app := asArgument(filepath.Join(folder, "app.qtype.yaml"))
	try := fmt.Sprintf(`qtype run %s -i '"Hello"'`, app)
	switch template {
	case "batch":
		try = fmt.Sprintf("qtype run %s -I %s", app, asArgument(filepath.Join(folder, "reviews.csv")))
	case "rag":
		input, _ := json.Marshal(map[string]string{"input_dir": filepath.ToSlash(filepath.Join(folder, "notes"))}) // texts have JSON
		try = fmt.Sprintf("qtype run %s -f ingest -i %s\n  qtype chat %s -f ask", app, textfmt.ShellQuote(string(input)), app)
	default: // the other applications are conversations
		try += "\n  qtype chat " + app
	}
	_, err = fmt.Fprintf(s.Out, "\nnow try:\n  qtype validate %s\n  qtype test %s\n  %s\n", app, asArgument(filepath.Join(".", folder)), try)
	return err
}

// asArgument returns a path as a word of a command that can be pasted into a shell: quoted,
// and never taken for a flag.
func asArgument(path string) string {
	if strings.HasPrefix(path, "-") {
		path = "." + string(filepath.Separator) + path
	}
	return textfmt.ShellQuote(path)
}
