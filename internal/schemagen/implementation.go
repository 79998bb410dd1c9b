package schemagen

import (
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/invopop/jsonschema"

	"github.com/qtype-dev/qtype/spec"
)

// addImplementations describes, for each struct that selects an implementation by name,
// the names and the arguments of each implementation, so that editors complete them. The
// values of arguments are not checked: the validator does that, and knows which arguments
// come from variables.
func (g *generator) addImplementations() {
	for _, name := range slices.Sorted(maps.Keys(g.structs)) {
		all, ok := spec.SelectionOf(g.structs[name], "")
		if def := g.definitions[name]; ok && def != nil {
			key, _ := def.Properties.Get(all.Key)
			for _, o := range all.Options {
				key.Examples = append(key.Examples, o.Name)
				g.addOption(def, g.structs[name], all.Key, o)
			}
		}
	}
}

// addOption adds the arguments of one implementation to the definition of a struct.
func (g *generator) addOption(def *jsonschema.Schema, t reflect.Type, key string, o spec.Implementation) {
	selected, _ := spec.SelectionOf(t, o.Name)
	then := &jsonschema.Schema{Properties: jsonschema.NewProperties()}
	for _, m := range selected.Mappings {
		if m.Into != nil {
			then.Properties.Set(m.Key, refTo(g.addArguments(reflect.TypeOf(m.Into).Elem())))
		}
	}
	if then.Properties.Len() == 0 {
		return
	}
	given, _ := def.Properties.Get(key)
	when := &jsonschema.Schema{Properties: jsonschema.NewProperties()}
	when.Properties.Set(key, named(o))
	if given.Default != o.Name {
		when.Required = []string{key}
	}
	def.AllOf = append(def.AllOf, &jsonschema.Schema{If: when, Then: then})
}

// named matches the names of an implementation.
func named(o spec.Implementation) *jsonschema.Schema {
	if scheme, _, isURL := strings.Cut(o.Name, "://"); isURL {
		return &jsonschema.Schema{Pattern: "^" + regexp.QuoteMeta(scheme) + "://"}
	}
	s := &jsonschema.Schema{Enum: []any{o.Name}}
	for _, name := range o.Aliases {
		s.Enum = append(s.Enum, name)
	}
	return s
}

// addArguments adds the definition of a struct of arguments and returns its name.
func (g *generator) addArguments(t reflect.Type) string {
	def := &jsonschema.Schema{Properties: jsonschema.NewProperties(), Description: g.docs.lookup(t, "")}
	for _, f := range Fields(t) {
		key := &jsonschema.Schema{Description: g.docs.lookup(f.Owner, f.Name)}
		if text, ok := f.Tag.Lookup("default"); ok {
			key.Default = typed(jsonType(f.Type), text)
		}
		def.Properties.Set(f.Key, key)
	}
	g.definitions[t.Name()], g.described[t.Name()] = def, t
	return t.Name()
}

// jsonType returns the type of a scalar in JSON, "" for others.
func jsonType(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "boolean"
	case reflect.Int, reflect.Int64:
		return "integer"
	case reflect.Float64:
		return "number"
	}
	return ""
}
