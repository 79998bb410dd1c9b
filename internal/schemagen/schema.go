// Package schema makes the JSON schema of a document out of the structs of
// package spec: keys, defaults, ranges and enumerations from their tags, the
// descriptions from their doc comments. Editors complete and check with it.
//
// The schema is marked draft-07: yaml-language-server reads 2020-12 only since its
// release 1.20, plugins with an older one and other tools read draft-07 alone, and
// nothing here needs a later draft. The editor's tests pass with 1.19.2 and 1.25.0.
//
// An editor sees a document as it is written, so the schema accepts ${VAR} where
// a number is wanted and a path (an !include) where a section is wanted. It says
// nothing about ids, references and types: that is package validate.
package schemagen

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/invopop/jsonschema"

	"github.com/qtype-dev/qtype/spec"
)

//go:generate go run ./generate -spec ../../spec -out ../../schema.json -tests ../apptest/schema.json

// draft is the dialect that the schema is marked with.
const draft = "http://json-schema.org/draft-07/schema#"

// Where the newest schemas can be fetched: of documents and of files of tests.
const (
	ID      = "https://raw.githubusercontent.com/qtype-dev/qtype/main/schema.json"
	TestsID = "https://raw.githubusercontent.com/qtype-dev/qtype/main/internal/apptest/schema.json"
)

// Names of definitions that stand for no struct of package spec.
const (
	defReference = "Reference"
	defDocument  = "Document"
	defStepItem  = "StepItem"
)

// generator collects the definitions of one schema.
type generator struct {
	reflector   *jsonschema.Reflector
	definitions jsonschema.Definitions
	structs     map[string]reflect.Type // every struct of package spec that was met, by name
	docs        docs
}

// Generate is the schema of documents as indented JSON. The folder dir holds the
// source of package spec, where the descriptions are read. The same source gives
// the same bytes.
func Generate(dir string) ([]byte, error) {
	g, err := newGenerator(dir)
	if err != nil {
		return nil, err
	}
	g.addStruct(reflect.TypeFor[spec.Application]())
	g.addStruct(reflect.TypeFor[spec.SecretReference]())
	for _, u := range spec.Unions() {
		g.addUnion(u)
	}
	g.definitions[defReference] = reference()
	g.definitions[defStepItem] = stepItem()
	g.definitions[defDocument] = document()
	return g.finish(jsonschema.Schema{ID: ID, Title: "qtype document", Ref: refTo(defDocument).Ref})
}

// GenerateTests is the schema of files of tests, made as Generate makes its own.
func GenerateTests(dir string) ([]byte, error) {
	g, err := newGenerator(dir)
	if err != nil {
		return nil, err
	}
	g.addStruct(reflect.TypeFor[spec.Suite]())
	return g.finish(jsonschema.Schema{ID: TestsID, Title: "qtype tests", Ref: refTo(reflect.TypeFor[spec.Suite]().Name()).Ref})
}

func newGenerator(dir string) (*generator, error) {
	comments, err := readDocs(dir)
	if err != nil {
		return nil, fmt.Errorf("read the descriptions in %s: %w", dir, err)
	}
	g := &generator{
		definitions: jsonschema.Definitions{},
		structs:     map[string]reflect.Type{},
		docs:        comments,
	}
	g.reflector = &jsonschema.Reflector{
		Anonymous:                  true,
		FieldNameTag:               "yaml",
		RequiredFromJSONSchemaTags: true,
		LookupComment:              comments.lookup,
		Mapper:                     g.special,
	}
	return g, nil
}

// finish writes the schema whose root is given, with what was defined.
func (g *generator) finish(root jsonschema.Schema) ([]byte, error) {
	if err := g.applyTags(); err != nil {
		return nil, err
	}
	g.openToIncludes()
	root.Version, root.Definitions = draft, g.definitions
	return encode(&root)
}

// addStruct defines a struct and everything that it is made of.
func (g *generator) addStruct(t reflect.Type) *jsonschema.Schema {
	for name, def := range g.reflector.ReflectFromType(t).Definitions {
		if g.definitions[name] == nil {
			g.definitions[name] = def
		}
	}
	def := g.definitions[t.Name()]
	adapt(def, t)
	return def
}

// adapt applies the tags of embedded structs: keys that may be left out in this
// struct, and keys that it does not have.
func adapt(def *jsonschema.Schema, t reflect.Type) {
	for i := range t.NumField() {
		f := t.Field(i)
		if !f.Anonymous {
			continue
		}
		for key := range strings.SplitSeq(f.Tag.Get("without"), ",") {
			def.Properties.Delete(key)
		}
		free := strings.Split(f.Tag.Get("optional")+","+f.Tag.Get("without"), ",")
		def.Required = slices.DeleteFunc(def.Required, func(key string) bool { return slices.Contains(free, key) })
	}
}

// encode writes the schema as draft-07 spells it.
func encode(root *jsonschema.Schema) ([]byte, error) {
	// In draft-07 a $ref hides its siblings, the title and the id included.
	root.AllOf, root.Ref = []*jsonschema.Schema{{Ref: root.Ref}}, ""
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(root); err != nil {
		return nil, fmt.Errorf("write the schema: %w", err)
	}
	text := bytes.ReplaceAll(out.Bytes(), []byte(`"#/$defs/`), []byte(`"#/definitions/`))
	return bytes.Replace(text, []byte(`"$defs": {`), []byte(`"definitions": {`), 1), nil
}

// refTo points to a definition.
func refTo(name string) *jsonschema.Schema {
	return &jsonschema.Schema{Ref: "#/$defs/" + name}
}
