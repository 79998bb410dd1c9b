package command

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/qtype-dev/qtype/internal/authoring"
	"github.com/qtype-dev/qtype/internal/cli"
	"github.com/qtype-dev/qtype/internal/convert"
	"github.com/qtype-dev/qtype/internal/documents/format"
	"github.com/qtype-dev/qtype/internal/durable"
	"github.com/qtype-dev/qtype/internal/parts"
	"github.com/qtype-dev/qtype/internal/records"
	"github.com/qtype-dev/qtype/internal/telemetry"
	"github.com/qtype-dev/qtype/internal/tool/factory"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec"
)

// Parts is the table of what a program is made of. A main function passes it to Main.
type Parts struct {
	runtime.Parts
	Telemetry  telemetry.Parts        // sends traces and serves metrics
	Engine     durable.Engine         // runs rows on workers; nil for none
	Converters convert.Converters     // convert files of other systems
	Schema     func() (string, error) // makes the JSON schema of documents with added parts; nil without any
}

// Core returns the parts of the core. The caller may add others.
func Core() Parts { return Parts{Parts: runtime.CoreParts(), Converters: convert.Core()} }

// set returns the names of the parts.
func (p Parts) set() *parts.Set {
	s := new(parts.Set)
	s.Add(parts.Provider, slices.Collect(maps.Keys(p.Models))...).Add(parts.Provider, "mock")
	s.Add(parts.Store, slices.Collect(maps.Keys(p.Stores))...)
	s.Add(parts.Index, slices.Collect(maps.Keys(p.Indexes))...)
	for dialect := range p.Databases {
		s.Add(parts.Database, string(dialect))
	}
	s.Add(parts.Files, "file", "http").Add(parts.Files, slices.Collect(maps.Keys(p.Buckets))...)
	s.Add(parts.Engine, durable.Local)
	if p.Engine != nil {
		s.Add(parts.Engine, durable.Temporal)
	}
	for kind := range p.Converters {
		s.Add(parts.Converter, string(kind))
	}
	for _, f := range format.Formats() {
		s.Add(parts.Format, f.Name)
	}
	for _, f := range slices.AppendSeq(records.Core(), maps.Keys(p.Formats)) {
		s.Add(parts.Records, string(f))
	}
	s.Add(parts.Identity, "azure", "vertex") // whose tokens are requested without a part
	if p.AWS != nil {
		s.Add(parts.Identity, "aws")
	}
	s.Add(parts.Telemetry, p.Telemetry.Names()...)
	s.Add(parts.Tool, factory.Types()...)
	for _, c := range p.Language.Cases() {
		kind := parts.Tool
		if _, isStep := c.New().(spec.Step); isStep {
			kind = parts.Step
		}
		s.Add(kind, c.Tag)
	}
	return s
}

// context returns a context of the program.
func (p Parts) context(ctx context.Context) context.Context {
	ctx = convert.With(runtime.WithParts(ctx, p.Parts), p.Converters)
	ctx = telemetry.WithParts(authoring.WithSchema(ctx, p.Schema), p.Telemetry)
	return parts.With(durable.With(ctx, p.Engine), p.set())
}

// newVersion returns qtype version.
func newVersion(s *cli.Streams) *cobra.Command {
	c := cli.NewVersion("qtype")(s)
	line := c.RunE
	list := c.Flags().Bool("parts", false, "list the parts of which this program is made, by kinds")
	c.RunE = func(c *cobra.Command, args []string) error {
		if !*list {
			return line(c, args)
		}
		var text strings.Builder
		set := parts.From(c.Context())
		for _, kind := range set.Kinds() {
			fmt.Fprintf(&text, "%-15s %s\n", kind, strings.Join(set.Names(kind), " "))
		}
		return s.WriteTo("", text.String())
	}
	return c
}
