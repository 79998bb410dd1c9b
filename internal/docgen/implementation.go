package docgen

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/schemagen"
	"github.com/qtype-dev/qtype/spec"
)

// option is one or more implementations with the same arguments.
type option struct {
	names    []string
	aliases  []string
	doc      string
	mappings []spec.Argument
}

// optionsOf returns what the key of a struct may name, in order.
func optionsOf(t reflect.Type) (key string, all []*option) {
	s, ok := spec.SelectionOf(t, "")
	if !ok {
		return "", nil
	}
	for _, i := range s.Options {
		selected, _ := spec.SelectionOf(t, i.Name)
		if n := len(all); n > 0 && all[n-1].doc == i.Doc && slices.Equal(all[n-1].aliases, i.Aliases) {
			all[n-1].names = append(all[n-1].names, i.Name)
			continue
		}
		all = append(all, &option{names: []string{i.Name}, aliases: i.Aliases, doc: i.Doc, mappings: selected.Mappings})
	}
	return s.Key, all
}

// writeOptions describes the implementations that a struct may select, with their
// arguments.
func (g *generator) writeOptions(b *strings.Builder, t reflect.Type) error {
	key, all := optionsOf(t)
	if len(all) == 0 {
		return nil
	}
	fmt.Fprintf(b, "\nThe values of `%s`:\n", key)
	for _, o := range all {
		fmt.Fprintf(b, "\n### `%s`\n\n%s.", strings.Join(o.names, "`, `"), escaped(strings.ToUpper(o.doc[:1])+o.doc[1:]))
		if len(o.aliases) > 0 {
			fmt.Fprintf(b, " Other names: `%s`.", strings.Join(o.aliases, "`, `"))
		}
		b.WriteString("\n")
		for _, m := range o.mappings {
			if err := g.writeArguments(b, m); err != nil {
				return fmt.Errorf("%s: %w", o.names[0], err)
			}
		}
	}
	return nil
}

// writeArguments writes the table of the keys of a mapping.
func (g *generator) writeArguments(b *strings.Builder, m spec.Argument) error {
	if m.Into == nil {
		return nil
	}
	fmt.Fprintf(b, "\n| Key of `%s` | Value | Default | Description |\n| --- | --- | --- | --- |\n", m.Key)
	t := reflect.TypeOf(m.Into).Elem()
	for _, f := range schemagen.Fields(t) {
		if err := g.writeField(b, t, f); err != nil {
			return fmt.Errorf("key %s: %w", f.Key, err)
		}
	}
	return nil
}
