package schemagen

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/invopop/jsonschema"

	"github.com/qtype-dev/qtype/spec"
)

// Patterns of scalars that may be written as text, usually because an environment
// variable sets them.
const (
	textInt   = `^\s*[-+]?[0-9]+(\.0*)?\s*$|` + variable
	textFloat = `^\s*[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?\s*$|` + variable
	textBool  = `^(true|True|TRUE|false|False|FALSE|yes|Yes|YES|no|No|NO|on|On|ON|off|Off|OFF|[yntfYNTF01])$|` + variable
	include   = `[./]`
)

// applyTags adds the defaults and rules in the tags of fields to their keys.
func (g *generator) applyTags() error {
	for name, t := range g.structs {
		def := g.definitions[name]
		if def == nil {
			continue
		}
		for _, f := range fieldsOf(t) {
			key, ok := def.Properties.Get(f.Tag.Get("yaml"))
			if !ok {
				return fmt.Errorf("the schema of %s has no key %s", name, f.Tag.Get("yaml"))
			}
			if err := g.applyTag(key, f); err != nil {
				return fmt.Errorf("%s.%s: %w", name, f.Name, err)
			}
			if alias := f.Tag.Get("alias"); alias != "" {
				def.Properties.Set(alias, deprecated(key, f.Tag.Get("yaml")))
			}
		}
	}
	return nil
}

// deprecated is the schema of the earlier name of a key.
func deprecated(key *jsonschema.Schema, name string) *jsonschema.Schema {
	old := *key
	old.Deprecated, old.Default = true, nil
	old.Description = "The earlier name of " + name + "."
	return &old
}

// applyTag adds the default and rules of one field.
func (g *generator) applyTag(key *jsonschema.Schema, f reflect.StructField) error {
	if text, ok := f.Tag.Lookup("default"); ok {
		key.Default = typed(key.Type, text)
	}
	for rule := range strings.SplitSeq(g.language.ValidateTag(f), ",") {
		if err := applyRule(key, rule); err != nil {
			return err
		}
	}
	loosen(key, f.Type.Kind() == reflect.Pointer)
	if docs := g.language.ValueDocs(f); docs != nil {
		enum := key.AnyOf[0]
		texts := make([]string, len(enum.Enum))
		for i, v := range enum.Enum {
			texts[i] = docs[fmt.Sprint(v)]
		}
		enum.Extras = map[string]any{"enumDescriptions": texts}
	}
	return nil
}

// typed returns a default as JSON: numbers and booleans as such, everything else as
// text.
func typed(kind, text string) any {
	switch kind {
	case "integer", "number", "boolean":
		return json.RawMessage(text)
	}
	return text
}

// applyRule adds one rule of a validate tag. An unknown rule is an error, so that
// none is omitted.
func applyRule(key *jsonschema.Schema, rule string) error {
	name, value, _ := strings.Cut(rule, "=")
	number := json.Number(value)
	switch name {
	case "", "omitempty":
	case "oneof":
		for _, v := range strings.Fields(value) {
			key.Enum = append(key.Enum, v)
		}
	case "http_url":
		key.Pattern = `^https?://|` + variable
		key.Extras = withMessage("expected a URL that starts with http:// or https://")
	case "gt", "gte", "min", "lt", "lte", "max":
		bound(key, name, number)
	default:
		return fmt.Errorf("unsupported rule %q", rule)
	}
	return nil
}

// bound sets a numeric bound. Texts such as durations have only their pattern.
func bound(key *jsonschema.Schema, name string, n json.Number) {
	if key.Type != "integer" && key.Type != "number" {
		return
	}
	switch name {
	case "gt":
		key.ExclusiveMinimum = n
	case "gte", "min":
		key.Minimum = n
	case "lt":
		key.ExclusiveMaximum = n
	case "lte", "max":
		key.Maximum = n
	}
}

// loosen allows environment variables in a scalar, and null for a pointer.
func loosen(key *jsonschema.Schema, nullable bool) {
	if len(key.Enum) > 0 {
		enum := &jsonschema.Schema{Type: key.Type, Enum: key.Enum}
		key.Enum = nil
		key.AnyOf = []*jsonschema.Schema{enum, {Type: key.Type, Pattern: variable}}
		return
	}
	kinds := []string{key.Type, "string"}
	if nullable {
		kinds = append(kinds, "null")
	}
	switch key.Type {
	case "integer":
		alsoText(key, kinds, textInt, "expected an integer")
	case "number":
		alsoText(key, kinds, textFloat, "expected a number")
	case "boolean":
		alsoText(key, kinds, textBool, "expected true or false")
	}
}

// alsoText allows several types; texts must match re.
func alsoText(s *jsonschema.Schema, kinds []string, re, message string) {
	s.Type, s.Pattern = "", re
	s.Extras = withMessage(message)
	s.Extras["type"] = kinds
}

// allowNull allows null for the keys where the loader takes it for no key, and no others.
func (g *generator) allowNull() {
	for name, t := range g.structs {
		for _, f := range fieldsOf(t) {
			for _, written := range []string{f.Tag.Get("yaml"), f.Tag.Get("alias")} {
				if key, ok := g.definitions[name].Properties.Get(written); ok {
					setNullable(key, spec.TakesNull(f))
				}
			}
		}
	}
}

// setNullable adds null to the types of a key or removes it.
func setNullable(key *jsonschema.Schema, nullable bool) {
	const null = "null"
	if key.Extras = maps.Clone(key.Extras); key.Extras == nil {
		key.Extras = map[string]any{}
	}
	if kinds, several := key.Extras["type"].([]string); several {
		kinds = slices.DeleteFunc(slices.Clone(kinds), func(kind string) bool { return kind == null })
		if nullable {
			kinds = append(kinds, null)
		}
		key.Extras["type"] = kinds
	}
	if !nullable {
		return
	}
	if key.Type != "" {
		key.Extras["type"], key.Type = []string{key.Type, null}, ""
	}
	if key.Ref != "" {
		key.AnyOf, key.Ref = []*jsonschema.Schema{{Ref: key.Ref}}, ""
	}
	for _, cases := range []*[]*jsonschema.Schema{&key.AnyOf, &key.OneOf} {
		if len(*cases) > 0 {
			*cases = append(slices.Clone(*cases), &jsonschema.Schema{Type: null})
		}
	}
}

// openToIncludes allows an !include for every list and mapping: editors see it as a
// text with the path of a file. A section may also be empty.
func (g *generator) openToIncludes() {
	for _, name := range slices.Sorted(maps.Keys(g.definitions)) {
		def := g.definitions[name]
		if def.Type == "object" {
			alsoText(def, []string{"object", "string"}, include, "expected a mapping, or !include with a file that contains one")
			delete(def.Extras, "errorMessage") // it would hide which key is missing or unknown
		}
		if def.Properties == nil {
			continue
		}
		for p := def.Properties.Oldest(); p != nil; p = p.Next() {
			switch p.Value.Type {
			case "array":
				alsoText(p.Value, []string{"array", "string", "null"}, include, "expected a list, or !include with a file that contains one")
			case "object":
				alsoText(p.Value, []string{"object", "string", "null"}, include, "expected a mapping, or !include with a file that contains one")
			}
		}
	}
}
