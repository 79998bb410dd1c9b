package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/remotefs"
	"github.com/qtype-dev/qtype/internal/semdiff"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
)

// diffCommand is one call of qtype diff.
type diffCommand struct {
	*streams
	format *enumFlag
}

func newDiff(s *streams) *cobra.Command {
	d := &diffCommand{streams: s, format: newChoice("text", "json")}
	c := &cobra.Command{
		Use:   "diff OLD NEW",
		Short: "Tell what changed in meaning between two documents",
		Long: `Compares two documents by what they mean, not by how they are written, and says
of every change whether it breaks callers or stored conversations, changes the
behaviour, or harms nobody. Exit status 1 where something breaks: a served input
or output, a memory setting, a tool.`,
		Example: `  qtype diff old.qtype.yaml new.qtype.yaml
  git show main:app.qtype.yaml >/tmp/old.qtype.yaml && qtype diff /tmp/old.qtype.yaml app.qtype.yaml
  qtype diff --format json old.qtype.yaml new.qtype.yaml`,
		Args:              arguments("the old document: qtype diff OLD NEW", "the new document: qtype diff OLD NEW"),
		ValidArgsFunction: yamlFiles,
		RunE:              func(c *cobra.Command, args []string) error { return d.run(c.Context(), args[0], args[1]) },
	}
	c.Flags().Var(d.format, "format", "how changes are written")
	_ = c.RegisterFlagCompletionFunc("format", d.format.complete) // fails only for a flag that is not there
	return c
}

func (d *diffCommand) run(ctx context.Context, old, now string) error {
	documents := make([]*spec.Document, 2)
	var faults diag.List
	for i, path := range []string{old, now} {
		p, found := qtype.Check(ctx, path)
		if found.Errors() > 0 {
			faults.Add(found...)
		}
		documents[i] = p.Document
	}
	if err := faults.Err(); err != nil {
		return err // two documents are compared only where both are sound
	}
	changes := semdiff.Documents(documents[0], documents[1])
	if err := d.tell(remotefs.Redacted(old), remotefs.Redacted(now), changes); err != nil {
		return err
	}
	if semdiff.Count(changes, semdiff.Breaking) > 0 {
		return errSilent
	}
	return nil
}

func (d *diffCommand) tell(old, now string, changes []semdiff.Change) error {
	if d.format.value == "json" {
		return semdiff.JSON(d.out, old, now, changes)
	}
	if err := semdiff.Text(d.out, changes, d.outTerminal && d.color); err != nil {
		return err
	}
	if len(changes) > 0 {
		fmt.Fprintln(d.out)
	}
	_, err := fmt.Fprintf(d.out, "%s → %s: %s\n", clean(old), clean(now), semdiff.Summary(changes))
	return err
}
