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

// Patterns of scalars that may also be written as text, mostly because a
// variable of the environment gives them (reference language.md 3.1 and 4).
const (
	textInt   = `^\s*[-+]?[0-9]+(\.0*)?\s*$|` + variable
	textFloat = `^\s*[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?\s*$|` + variable
	textBool  = `^(true|True|TRUE|false|False|FALSE|yes|Yes|YES|no|No|NO|on|On|ON|off|Off|OFF|[yntfYNTF01])$|` + variable
	include   = `[./]`
)

// applyTags adds what the tags `default` and `validate` say to the keys.
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
			if err := applyTag(key, f); err != nil {
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

// applyTag adds what one field's tags say.
func applyTag(key *jsonschema.Schema, f reflect.StructField) error {
	if text, ok := f.Tag.Lookup("default"); ok {
		key.Default = typed(key.Type, text)
	}
	for rule := range strings.SplitSeq(spec.ValidateTag(f), ",") {
		if err := applyRule(key, rule); err != nil {
			return err
		}
	}
	loosen(key, f.Type.Kind() == reflect.Pointer)
	if docs := spec.ValueDocs(f); docs != nil {
		enum := key.AnyOf[0]
		texts := make([]string, len(enum.Enum))
		for i, v := range enum.Enum {
			texts[i] = docs[fmt.Sprint(v)]
		}
		enum.Extras = map[string]any{"enumDescriptions": texts}
	}
	return nil
}

// typed is a default as JSON: numbers and booleans as themselves, all else as text.
func typed(kind, text string) any {
	switch kind {
	case "integer", "number", "boolean":
		return json.RawMessage(text)
	}
	return text
}

// applyRule adds one rule of a validate tag. A rule that the schema does not
// know is an error, so that none is forgotten.
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
		key.Extras = says("an address that starts with http:// or https:// is expected")
	case "gt", "gte", "min", "lt", "lte", "max":
		bound(key, name, number)
	default:
		return fmt.Errorf("the rule %q has no counterpart in the schema", rule)
	}
	return nil
}

// bound sets a numeric bound; on texts (durations) the pattern is all there is.
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

// loosen lets a scalar be written as a variable of the environment, and a key
// that is a pointer be null.
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
		alsoText(key, kinds, textInt, "a whole number is expected")
	case "number":
		alsoText(key, kinds, textFloat, "a number is expected")
	case "boolean":
		alsoText(key, kinds, textBool, "true or false is expected")
	}
}

// alsoText widens a schema to several types; texts must match re.
func alsoText(s *jsonschema.Schema, kinds []string, re, message string) {
	s.Type, s.Pattern = "", re
	s.Extras = says(message)
	s.Extras["type"] = kinds
}

// openToIncludes lets every list and mapping of a document be an !include: to an
// editor that is a text, the path of a file. A section may also be empty.
func (g *generator) openToIncludes() {
	for _, name := range slices.Sorted(maps.Keys(g.definitions)) {
		def := g.definitions[name]
		if def.Type == "object" {
			alsoText(def, []string{"object", "string"}, include, "a mapping is expected, or !include and a file that holds one")
			delete(def.Extras, "errorMessage") // it would hide which key is missing or unknown
		}
		if def.Properties == nil {
			continue
		}
		for p := def.Properties.Oldest(); p != nil; p = p.Next() {
			switch p.Value.Type {
			case "array":
				alsoText(p.Value, []string{"array", "string", "null"}, include, "a list is expected, or !include and a file that holds one")
			case "object":
				alsoText(p.Value, []string{"object", "string", "null"}, include, "a mapping is expected, or !include and a file that holds one")
			}
		}
	}
}
