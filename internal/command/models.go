package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/qtype-dev/qtype/internal/authoring"
	"github.com/qtype-dev/qtype/internal/cli"
	"github.com/qtype-dev/qtype/internal/cli/author"
	"github.com/qtype-dev/qtype/internal/model/provider"
	"github.com/qtype-dev/qtype/internal/terminal"
	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec"
)

// newModels returns qtype models, with the command that calls servers.
func newModels(s *cli.Streams) *cobra.Command {
	var sandbox bool
	var format *cli.EnumFlag
	check := &cobra.Command{
		Use:   "check APP",
		Short: "Compare the models of an application with those that its servers have",
		Long: `Requests the list of models from the server of each model, with the credentials of the document,
and reports models that it does not have, and dates of shutdown. The exit status is 1 if one is missing or shut down.`,
		Example: `  qtype models check app.qtype.yaml`,
		Args:    cli.Arguments("a document: qtype models check APP"), ValidArgsFunction: cli.YAMLFiles,
		RunE: func(c *cobra.Command, args []string) error {
			return checkModels(c.Context(), s, args[0], format.Value, sandbox)
		},
	}
	format = cli.AddLineFormat(check)
	check.Flags().BoolVar(&sandbox, "sandbox", false, "restrict a local document as one from an address")
	return author.NewModels(s, check)
}

// checkModels reports which models of a document their servers have.
func checkModels(ctx context.Context, s *cli.Streams, path, format string, sandbox bool) error {
	p, list := authoring.Check(ctx, path, authoring.Options{Sandbox: sandbox})
	if err := list.Err(); err != nil {
		return err
	}
	getenv := func(name string) string {
		value, _ := p.Lookup(name)
		return value
	}
	failed, asked := false, false
	for _, doc := range p.Document.Documents() {
		for _, e := range doc.Models {
			m := e.Base()
			if row, _ := m.ProviderRow(); row.Client == spec.MockClient || row.Client == spec.LocalClient {
				continue
			}
			offered, err := provider.ListOffered(ctx, m, provider.Options{Getenv: getenv, Policy: p.Policy, Clients: runtime.PartsOf(ctx).Models})
			if ctx.Err() != nil {
				return ctx.Err()
			}
			asked = true
			found := describeOffer(m, offered, err)
			failed = failed || !found.OK
			if err := found.write(s.Out, format); err != nil {
				return err
			}
		}
	}
	switch {
	case failed:
		return cli.ErrSilent
	case !asked:
		_, err := fmt.Fprintln(s.Err, "the document has no models of servers")
		return err
	}
	return nil
}

// offer is whether a server has a model of a document.
type offer struct {
	Model    string `json:"model"` // the id in the document
	Provider string `json:"provider"`
	Name     string `json:"name"`
	OK       bool   `json:"ok"` // false if the server does not have it, it is shut down, or there is no list
	Text     string `json:"text"`
	Shutdown string `json:"shutdown_date,omitempty"`
	Skipped  int    `json:"entries_skipped,omitempty"` // entries of the list that cannot be read
}

// write writes the offer as a line.
func (o offer) write(w io.Writer, format string) error {
	if format == "json" {
		return terminal.WriteJSON(w, o)
	}
	if o.Skipped > 0 {
		o.Text += fmt.Sprintf(" (%s of its list cannot be read)", textfmt.Count(o.Skipped, "item"))
	}
	_, err := fmt.Fprintf(w, "%s: %s\n", terminal.Clean(o.Model), terminal.Clean(o.Text))
	return err
}

// describeOffer describes whether a server has a model, as far as that is known.
func describeOffer(m *spec.Model, offered []provider.Offered, err error) offer {
	found := offer{Model: m.ID, Provider: m.Provider, Name: m.Name()}
	if errors.Is(err, provider.ErrNoList) {
		found.OK, found.Text = true, fmt.Sprintf("%s: %v", m.Provider, err)
		return found
	}
	if err != nil {
		found.Text = err.Error()
		return found
	}
	at := -1
	for i, o := range offered {
		switch {
		case o.ID == "":
			found.Skipped++
		case at < 0 && (strings.EqualFold(o.ID, m.Name()) || strings.EqualFold(o.ID, m.Name()+":latest")):
			at = i
		}
	}
	known, isKnown := m.Known()
	if at < 0 {
		found.Text = fmt.Sprintf("%s does not have %s", m.Provider, m.Name())
		if isKnown && known.Replacement != "" {
			found.Text += "; its replacement is " + known.Replacement
		}
		return found
	}
	by := ""
	if found.Shutdown = offered[at].Shutdown; found.Shutdown == "" && isKnown && !known.Redirected {
		found.Shutdown, by = known.Shutdown, " by the catalogue"
	}
	found.OK = found.Shutdown == "" || found.Shutdown > time.Now().UTC().Format(time.DateOnly)
	found.Text = fmt.Sprintf("%s has %s", m.Provider, offered[at].ID)
	switch {
	case found.Shutdown != "" && !found.OK:
		found.Text += ", but it was shut down on " + found.Shutdown + by
	case found.Shutdown != "":
		found.Text += ", shutdown " + found.Shutdown + by
	}
	return found
}
