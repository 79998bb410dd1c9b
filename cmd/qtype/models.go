package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/qtype-dev/qtype/internal/authoring"
	"github.com/qtype-dev/qtype/internal/cli"
	"github.com/qtype-dev/qtype/internal/cli/author"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/model/provider"
	"github.com/qtype-dev/qtype/spec"
)

// newModels returns qtype models, with the command that calls servers.
func newModels(s *cli.Streams) *cobra.Command {
	var sandbox bool
	check := &cobra.Command{
		Use:   "check APP",
		Short: "Compare the models of an application with those that its servers have",
		Long: `Requests the list of models from the server of each model, with the credentials of the document,
and reports models that it does not have, and dates of shutdown. The exit status is 1 if one is missing.`,
		Example: `  qtype models check app.qtype.yaml`,
		Args:    cli.Arguments("a document: qtype models check APP"), ValidArgsFunction: cli.YAMLFiles,
		RunE: func(c *cobra.Command, args []string) error { return checkModels(c.Context(), s, args[0], sandbox) },
	}
	check.Flags().BoolVar(&sandbox, "sandbox", false, "restrict a local document as one from an address")
	return author.NewModels(s, check)
}

// checkModels reports which models of a document their servers have.
func checkModels(ctx context.Context, s *cli.Streams, path string, sandbox bool) error {
	p, list := authoring.Check(ctx, path, authoring.Options{Sandbox: sandbox})
	if err := list.Err(); err != nil {
		return err
	}
	getenv := func(name string) string {
		value, _ := p.Lookup(name)
		return value
	}
	missing := 0
	for _, doc := range p.Document.Application.Documents() {
		for _, e := range doc.Models {
			m := e.Base()
			if row, _ := spec.LookupProvider(m.Provider); row.Client == spec.MockClient || row.Client == spec.LocalClient {
				continue
			}
			offered, err := provider.ListOffered(ctx, m, provider.Options{Getenv: getenv, Policy: p.Policy})
			if ctx.Err() != nil {
				return ctx.Err()
			}
			text, ok := describeOffer(m, offered, err)
			if !ok {
				missing++
			}
			fmt.Fprintf(s.Out, "%s: %s\n", terminal.Clean(m.ID), terminal.Clean(text))
		}
	}
	if missing > 0 {
		return cli.ErrSilent
	}
	return nil
}

// describeOffer describes whether a server has a model, and reports whether it does, as far
// as that is known.
func describeOffer(m *spec.Model, offered []provider.Offered, err error) (text string, ok bool) {
	if errors.Is(err, provider.ErrNoList) {
		return fmt.Sprintf("%s: %v", m.Provider, err), true
	}
	if err != nil {
		return err.Error(), false
	}
	at := slices.IndexFunc(offered, func(o provider.Offered) bool {
		return strings.EqualFold(o.ID, m.Name()) || strings.EqualFold(o.ID, m.Name()+":latest")
	})
	if at < 0 {
		text = fmt.Sprintf("%s does not have %s", m.Provider, m.Name())
		if known, isKnown := m.Known(); isKnown && known.Replacement != "" {
			text += "; its replacement is " + known.Replacement
		}
		return text, false
	}
	text = fmt.Sprintf("%s has %s", m.Provider, offered[at].ID)
	known, isKnown := m.Known()
	switch {
	case offered[at].Shutdown != "":
		text += ", shutdown " + offered[at].Shutdown
	case isKnown && known.Shutdown != "":
		text += ", shutdown " + known.Shutdown + " by the catalogue"
	}
	return text, true
}
