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

// addUnion adds the definitions of a union and its cases. `type` selects the case
// by if and then, so that an editor completes the types, then only the keys of that
// type, and reports errors of the selected case instead of a list of alternatives.
func (g *generator) addUnion(u spec.Union) {
	tag := &jsonschema.Schema{Type: "string", Description: "Which " + u.Name + " this is."}
	var texts []string
	union := &jsonschema.Schema{Type: "object", Properties: jsonschema.NewProperties()}
	for _, c := range u.Cases {
		t := structOf(c)
		g.addCase(t, c.Tag)
		tag.Enum = append(tag.Enum, c.Tag)
		texts = append(texts, g.docs.lookup(t, ""))
		when := hasTag(c.Tag)
		if u.TagOptional {
			when = &jsonschema.Schema{AnyOf: []*jsonschema.Schema{when, untaggedCase(u, c)}}
		}
		union.AllOf = append(union.AllOf, &jsonschema.Schema{If: when, Then: refTo(spec.DefinitionName(t))})
	}
	tag.Extras = map[string]any{"enumDescriptions": texts}
	union.Properties.Set("type", tag)
	union.Description = g.docs.lookup(u.Type, "")
	if !u.TagOptional {
		union.Required = []string{"type"}
	}
	g.definitions[unionName(u)] = union
}

// addCase adds the definition of a case, with its tag as the first key.
func (g *generator) addCase(t reflect.Type, tag string) {
	def := g.addStruct(t)
	if def.Properties.GetPair("type") != nil {
		return
	}
	props := jsonschema.NewProperties()
	props.Set("type", &jsonschema.Schema{Type: "string", Const: tag, Description: g.docs.lookup(t, "")})
	for p := def.Properties.Oldest(); p != nil; p = p.Next() {
		props.Set(p.Key, p.Value)
	}
	def.Properties = props
}

// structOf returns the struct of a case.
func structOf(c spec.Case) reflect.Type { return reflect.TypeOf(c.New()).Elem() }

// hasTag matches mappings whose `type` is the tag.
func hasTag(tag string) *jsonschema.Schema {
	s := &jsonschema.Schema{Type: "object", Required: []string{"type"}, Properties: jsonschema.NewProperties()}
	s.Properties.Set("type", &jsonschema.Schema{Const: tag})
	return s
}

// tagged matches mappings with one of the union's tags.
func (g *generator) tagged(union string) *jsonschema.Schema {
	s := &jsonschema.Schema{Type: "object", Required: []string{"type"}, Properties: jsonschema.NewProperties()}
	var tags []any
	for _, c := range g.unionOf(union).Cases {
		tags = append(tags, c.Tag)
	}
	s.Properties.Set("type", &jsonschema.Schema{Enum: tags})
	return s
}

// untagged matches mappings without `type` that have a key of a case of the union,
// except the id that all entities have.
func (g *generator) untagged(union string) *jsonschema.Schema {
	s := noTag()
	keys := map[string]bool{}
	for _, c := range g.unionOf(union).Cases {
		for _, k := range keysOf(structOf(c)) {
			keys[k] = k != "id"
		}
	}
	maps.DeleteFunc(keys, func(_ string, wanted bool) bool { return !wanted })
	s.AnyOf = requireOne(slices.Sorted(maps.Keys(keys)))
	return s
}

// untaggedCase matches mappings without `type` whose keys select the case c. A
// mapping whose keys are common to several cases is the first of them: aws before
// vertex.
func untaggedCase(u spec.Union, c spec.Case) *jsonschema.Schema {
	s := noTag()
	s.AnyOf = requireOne(ownKeys(u, c))
	if c.Tag != "aws" {
		return s
	}
	others := &jsonschema.Schema{}
	for _, o := range u.Cases {
		if o.Tag != c.Tag {
			others.AnyOf = append(others.AnyOf, requireOne(ownKeys(u, o))...)
		}
	}
	s.AnyOf = append(s.AnyOf, &jsonschema.Schema{Not: others})
	return s
}

func noTag() *jsonschema.Schema {
	return &jsonschema.Schema{Type: "object", Not: &jsonschema.Schema{Required: []string{"type"}}}
}

// requireOne returns one condition for each key: that it is present.
func requireOne(keys []string) []*jsonschema.Schema {
	var all []*jsonschema.Schema
	for _, k := range keys {
		all = append(all, &jsonschema.Schema{Required: []string{k}})
	}
	return all
}

// ownKeys returns the keys of a case that no other case of its union has.
func ownKeys(u spec.Union, c spec.Case) []string {
	keys := keysOf(structOf(c))
	for _, o := range u.Cases {
		if o.Tag == c.Tag {
			continue
		}
		others := keysOf(structOf(o))
		keys = slices.DeleteFunc(keys, func(k string) bool { return slices.Contains(others, k) })
	}
	return keys
}

// keysOf returns the keys of a struct in order.
func keysOf(t reflect.Type) []string {
	var keys []string
	for _, f := range fieldsOf(t) {
		keys = append(keys, f.Tag.Get("yaml"))
	}
	return keys
}

// fieldsOf returns the fields of a struct that are keys in documents; those of
// embedded structs at their position.
func fieldsOf(t reflect.Type) []reflect.StructField {
	var fields []reflect.StructField
	for i := range t.NumField() {
		f := t.Field(i)
		switch name := f.Tag.Get("yaml"); {
		case f.Anonymous:
			without := strings.Split(f.Tag.Get("without"), ",")
			fields = append(fields, slices.DeleteFunc(fieldsOf(f.Type), func(inner reflect.StructField) bool {
				return slices.Contains(without, inner.Tag.Get("yaml"))
			})...)
		case name != "" && name != "-":
			fields = append(fields, f)
		}
	}
	return fields
}

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
