package author

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/qtype-dev/qtype/internal/authoring"
	"github.com/qtype-dev/qtype/internal/cli"
	"github.com/qtype-dev/qtype/internal/diagram"
	"github.com/qtype-dev/qtype/internal/remotefs"
	"github.com/qtype-dev/qtype/internal/terminal"
)

// visualizeCommand is one call of qtype visualize.
type visualizeCommand struct {
	*cli.Streams
	format *cli.EnumFlag
	output string
}

// NewVisualize returns qtype visualize.
func NewVisualize(s *cli.Streams) *cobra.Command {
	d := &visualizeCommand{Streams: s, format: cli.NewEnumFlag("", "mermaid", "svg", "html")}
	c := &cobra.Command{
		Use:   "visualize APP",
		Short: "Draw an application's flows and what they use",
		Long: `Draws the flows of an application: their steps, the data between them, and the
models, memories and tools that they use. The output is Mermaid text, a picture
(SVG) or an HTML page. No other program is needed; secrets are not drawn.`,
		Example: `  qtype visualize app.qtype.yaml
  qtype visualize app.qtype.yaml -o app.svg
  qtype visualize app.qtype.yaml -o app.html`,
		Args:              cli.Arguments("a document: qtype visualize APP"),
		ValidArgsFunction: cli.YAMLFiles,
		RunE:              func(c *cobra.Command, args []string) error { return d.run(c.Context(), args[0]) },
	}
	d.format.AddTo(c, "format", "", "output format (default: from the extension of -o, otherwise mermaid)")
	c.Flags().StringVarP(&d.output, "output", "o", "", "write the drawing to `FILE`: .mmd, .svg or .html")
	return c
}

func (d *visualizeCommand) run(ctx context.Context, path string) error {
	format, err := d.drawFormat()
	if err != nil {
		return err
	}
	if remotefs.IsSame(d.output, path) {
		return terminal.Usagef("-o %s is the document: use another name", d.output)
	}
	var text strings.Builder
	if err := authoring.Draw(ctx, &text, path, format, authoring.Options{}); err != nil {
		return err
	}
	return d.WriteTo(d.output, text.String())
}

// drawFormat returns the format of --format, or of the extension of -o.
func (d *visualizeCommand) drawFormat() (diagram.Format, error) {
	if d.format.Value != "" {
		return diagram.Format(d.format.Value), nil
	}
	switch strings.ToLower(filepath.Ext(d.output)) {
	case ".svg":
		return diagram.SVG, nil
	case ".html", ".htm":
		return diagram.HTML, nil
	case ".mmd", ".mermaid":
		return diagram.Mermaid, nil
	}
	if d.output == "" {
		return diagram.Mermaid, nil
	}
	return "", terminal.Usagef("unknown output format for %s: use .mmd, .svg or .html, or set --format", d.output)
}
