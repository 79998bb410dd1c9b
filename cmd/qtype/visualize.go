package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/diagram"
	"github.com/qtype-dev/qtype/internal/remotefs"
)

// visualizeCommand is one call of qtype visualize.
type visualizeCommand struct {
	*streams
	format *enumFlag
	output string
}

func newVisualize(s *streams) *cobra.Command {
	d := &visualizeCommand{streams: s, format: newChoice("", "mermaid", "svg", "html")}
	c := &cobra.Command{
		Use:   "visualize APP",
		Short: "Draw an application's flows and what they use",
		Long: `Draws the flows of an application with their steps, the data that goes from step
to step, and the models, memories and tools that they use: as Mermaid text, as a
picture (SVG), or as a page. No other tool is needed; secrets are not drawn.`,
		Example: `  qtype visualize app.qtype.yaml
  qtype visualize app.qtype.yaml -o app.svg
  qtype visualize app.qtype.yaml -o app.html`,
		Args:              arguments("a document: qtype visualize APP"),
		ValidArgsFunction: yamlFiles,
		RunE:              func(c *cobra.Command, args []string) error { return d.run(c.Context(), args[0]) },
	}
	c.Flags().Var(d.format, "format", "what is written; the output's ending tells, else mermaid")
	c.Flags().StringVarP(&d.output, "output", "o", "", "write it to this `FILE`: .mmd, .svg or .html")
	_ = c.RegisterFlagCompletionFunc("format", d.format.complete) // fails only for a flag that is not there
	return c
}

func (d *visualizeCommand) run(ctx context.Context, path string) error {
	format, err := d.form()
	if err != nil {
		return err
	}
	p, faults := qtype.Check(ctx, path)
	if err := faults.Err(); err != nil {
		return err
	}
	var text strings.Builder
	if err := diagram.Write(&text, p.Document, format); err != nil {
		return fmt.Errorf("%s: %w", remotefs.Redacted(path), err)
	}
	return d.write(d.output, text.String())
}

// form is the format that was asked for, by its name or by the output's ending.
func (d *visualizeCommand) form() (diagram.Format, error) {
	if d.format.value != "" {
		return diagram.Format(d.format.value), nil
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
	return "", usagef("%s: its name tells no format; use .mmd, .svg or .html, or say --format", d.output)
}
