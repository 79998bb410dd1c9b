// Package schemagen generates the JSON schema of documents from the structs of
// package spec: keys, defaults, ranges and enumerations from their tags,
// descriptions from their doc comments. Editors complete and check documents with
// it.
//
// The schema is draft-07: yaml-language-server supports 2020-12 only since release
// 1.20, plugins with an older one and other tools support only draft-07, and
// nothing here requires a later draft. The editor's tests pass with 1.19.2 and
// 1.25.0.
//
// An editor sees a document before includes and environment variables are resolved,
// so the schema accepts ${VAR} for a number and a path (an !include) for a section.
// It does not check ids, references and types: package validate does.
package schemagen

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/invopop/jsonschema"

	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/spec"
)

//go:generate go run ./generate -spec ../../spec -out ../../schema.json -copy ../authoring/schema.json.gz -tests ../apptest/schema.json -evaluations ../eval/schema.json

// draft is the dialect of the schema.
const draft = "http://json-schema.org/draft-07/schema#"

// The addresses of the latest schemas, of documents, of test files and of evaluation files.
const (
	ID            = "https://raw.githubusercontent.com/qtype-dev/qtype/main/schema.json"
	TestsID       = "https://raw.githubusercontent.com/qtype-dev/qtype/main/internal/apptest/schema.json"
	EvaluationsID = "https://raw.githubusercontent.com/qtype-dev/qtype/main/internal/eval/schema.json"
)

// Names of definitions that do not represent a struct of package spec.
const (
	defReference = "Reference"
	defDocument  = "Document"
	defStepItem  = "StepItem"
	defApproved  = "ApprovedTool"
)

// generator collects the definitions of one schema.
type generator struct {
	reflector   *jsonschema.Reflector
	definitions jsonschema.Definitions
	structs     map[string]reflect.Type // the structs of package spec in the schema, by name
	isMapping   bool                    // an Approval is described as a mapping
	docs        docs
	language    *spec.Language
	described   map[string]reflect.Type // structs, and those of arguments, by name
}

// Generate returns the schema of documents as indented JSON. dir is the folder with
// the source of package spec, which contains the descriptions. The result is
// deterministic.
func Generate(dir string) ([]byte, error) {
	comments, err := readDocs(dir)
	if err != nil {
		return nil, fmt.Errorf("read the descriptions in %s: %w", dir, err)
	}
	return newGenerator(comments, nil).documents()
}

// Extend returns the schema of the documents of a language. generated is the result of Generate, whose descriptions it has.
func Extend(generated string, l *spec.Language) (string, error) {
	first := newGenerator(docs{}, l)
	if _, err := first.documents(); err != nil {
		return "", err
	}
	comments, err := docsOf(generated, first.described)
	if err != nil {
		return "", err
	}
	text, err := newGenerator(comments, l).documents()
	return string(text), err
}

// documents returns the schema of documents.
func (g *generator) documents() ([]byte, error) {
	g.addStruct(reflect.TypeFor[spec.Application]())
	g.addStruct(reflect.TypeFor[spec.SecretReference]())
	for _, u := range g.language.Unions() {
		g.addUnion(u)
	}
	g.definitions[defReference] = reference()
	g.definitions[defStepItem] = stepItem()
	g.definitions[defApproved] = g.approved()
	g.definitions[defDocument] = g.document()
	return g.finish(jsonschema.Schema{ID: ID, Title: "qtype document", Ref: refTo(defDocument).Ref})
}

// GenerateTests returns the schema of test files, in the same way as Generate.
func GenerateTests(dir string) ([]byte, error) {
	return generateStruct(dir, reflect.TypeFor[spec.Suite](), jsonschema.Schema{ID: TestsID, Title: "qtype tests"})
}

// GenerateEvaluations returns the schema of evaluation files, in the same way as Generate.
func GenerateEvaluations(dir string) ([]byte, error) {
	return generateStruct(dir, reflect.TypeFor[spec.Evaluation](), jsonschema.Schema{ID: EvaluationsID, Title: "qtype evaluation"})
}

// generateStruct returns the schema of files that contain one struct.
func generateStruct(dir string, t reflect.Type, root jsonschema.Schema) ([]byte, error) {
	comments, err := readDocs(dir)
	if err != nil {
		return nil, fmt.Errorf("read the descriptions in %s: %w", dir, err)
	}
	g := newGenerator(comments, nil)
	g.addStruct(t)
	root.Ref = refTo(t.Name()).Ref
	return g.finish(root)
}

func newGenerator(comments docs, l *spec.Language) *generator {
	g := &generator{
		language:    l,
		definitions: jsonschema.Definitions{},
		structs:     map[string]reflect.Type{},
		described:   map[string]reflect.Type{},
		docs:        comments,
	}
	g.reflector = &jsonschema.Reflector{
		Anonymous:                  true,
		FieldNameTag:               "yaml",
		RequiredFromJSONSchemaTags: true,
		LookupComment:              comments.lookup,
		Mapper:                     g.special,
		Namer:                      spec.DefinitionName,
	}
	return g
}

// finish encodes the schema with a root and the collected definitions.
func (g *generator) finish(root jsonschema.Schema) ([]byte, error) {
	if err := g.applyTags(); err != nil {
		return nil, err
	}
	g.addImplementations()
	g.openToIncludes()
	g.allowNull()
	root.Version, root.Definitions = draft, g.definitions
	return encode(&root)
}

// addStruct adds the definition of a struct and of the structs in its fields.
func (g *generator) addStruct(t reflect.Type) *jsonschema.Schema {
	for name, def := range g.reflector.ReflectFromType(t).Definitions {
		if g.definitions[name] == nil {
			g.definitions[name] = def
		}
	}
	def := g.definitions[spec.DefinitionName(t)]
	adapt(def, t)
	return def
}

// adapt applies the tags of embedded structs: keys that are optional in this
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

// encode encodes the schema in the syntax of draft-07.
func encode(root *jsonschema.Schema) ([]byte, error) {
	// In draft-07 a $ref overrides its siblings, including title and id.
	root.AllOf, root.Ref = []*jsonschema.Schema{{Ref: root.Ref}}, ""
	var out bytes.Buffer
	if err := textfmt.WriteJSON(&out, root); err != nil {
		return nil, fmt.Errorf("write the schema: %w", err)
	}
	text := bytes.ReplaceAll(out.Bytes(), []byte(`"#/$defs/`), []byte(`"#/definitions/`))
	return bytes.Replace(text, []byte(`"$defs": {`), []byte(`"definitions": {`), 1), nil
}

// refTo returns a reference to a definition.
func refTo(name string) *jsonschema.Schema {
	return &jsonschema.Schema{Ref: "#/$defs/" + name}
}

// docs are the doc comments of package spec by "Type" or "Type.Field".
type docs map[string]string

// readDocs reads the doc comments of the package in dir.
func readDocs(dir string) (docs, error) {
	var r jsonschema.Reflector
	if err := r.AddGoComments("", dir, jsonschema.WithFullComment()); err != nil {
		return nil, err
	}
	prefix := filepath.ToSlash(filepath.Clean(dir)) + "."
	found := docs{}
	for name, text := range r.CommentMap {
		if short, ok := strings.CutPrefix(name, prefix); ok {
			found[short] = text
		}
	}
	t, policies := reflect.TypeFor[spec.Memory](), spec.PolicyDocs()
	for i := range t.NumField() {
		key, _, _ := strings.Cut(t.Field(i).Tag.Get("yaml"), ",")
		if text := policies[key]; text != "" {
			found[t.Name()+"."+t.Field(i).Name] = text
		}
	}
	return found, nil
}

// docsOf returns the descriptions that a schema has of structs.
func docsOf(schema string, structs map[string]reflect.Type) (docs, error) {
	type described struct{ Description string }
	var read struct {
		Definitions map[string]struct {
			described
			Properties map[string]described
		}
	}
	if err := json.Unmarshal([]byte(schema), &read); err != nil {
		return nil, fmt.Errorf("parse the schema: %w", err)
	}
	found := docs{}
	for name, def := range read.Definitions {
		found[name] = def.Description
	}
	for name, t := range structs {
		def, known := read.Definitions[name]
		if found[name] == "" {
			found[name] = def.Properties["type"].Description
		}
		for _, f := range Fields(t) {
			if text := def.Properties[f.Key].Description; known && text != "" {
				found[f.Owner.Name()+"."+f.Name] = text
			}
		}
	}
	return found, nil
}

// lookup returns the description of a type or field for readers of YAML: without
// the Go name that the doc comment starts with. A struct of a part has it in the tag `doc`.
func (d docs) lookup(t reflect.Type, field string) string {
	if f, tagged := fieldOf(t, field); tagged {
		return f.Tag.Get("doc")
	}
	name, subject := t.Name(), t.Name()
	if field != "" {
		name, subject = name+"."+field, field
	}
	text := textfmt.OneLine(d[name])
	rest, ok := strings.CutPrefix(text, subject+" ")
	if !ok {
		return text
	}
	for _, verb := range []string{"is ", "are "} {
		rest = strings.TrimPrefix(rest, verb)
	}
	first, size := utf8.DecodeRuneInString(rest)
	return string(unicode.ToUpper(first)) + rest[size:]
}

// fieldOf returns the field of a struct with the tag `doc` of a key, and for no key that of the struct: an embedded one has it.
func fieldOf(t reflect.Type, name string) (reflect.StructField, bool) {
	if t.Kind() != reflect.Struct {
		return reflect.StructField{}, false
	}
	for i := range t.NumField() {
		if f := t.Field(i); f.Tag.Get("doc") != "" && (f.Name == name || name == "" && f.Anonymous) {
			return f, true
		}
	}
	return reflect.StructField{}, false
}

// Declarations are the doc comments of package spec, for other generators.
type Declarations struct{ docs docs }

// ReadDeclarations reads the doc comments of the package in dir.
func ReadDeclarations(dir string) (Declarations, error) {
	d, err := readDocs(dir)
	return Declarations{d}, err
}

// Doc returns the description of a struct or, if field is not empty, of one of its
// fields, without the Go name that the comment starts with.
func (d Declarations) Doc(t reflect.Type, field string) string { return d.docs.lookup(t, field) }

// Field is a field of a struct that is a key in a document.
type Field struct {
	reflect.StructField
	Owner    reflect.Type // the struct that declares it: an embedded one, or the struct itself
	Key      string       // its key in a document
	Required bool         // it must be present
	Rules    string       // rules of package validator on its value
}

// Fields returns the keys of a struct in the order of its fields, with those of
// embedded structs in their place.
func Fields(t reflect.Type) []Field {
	var fields []Field
	for _, f := range fieldsOf(t) {
		key := f.Tag.Get("yaml")
		fields = append(fields, Field{
			StructField: f, Owner: ownerOf(t, key), Key: key, Rules: new(spec.Language).ValidateTag(f),
			Required: f.Tag.Get("jsonschema") == "required" && !isOptional(t, key),
		})
	}
	return fields
}

// ownerOf returns the struct that declares a key: t or one that it embeds.
func ownerOf(t reflect.Type, key string) reflect.Type {
	for i := range t.NumField() {
		f := t.Field(i)
		if !f.Anonymous && f.Tag.Get("yaml") == key {
			return t
		}
		if f.Anonymous && f.Type.Kind() == reflect.Struct {
			if owner := ownerOf(f.Type, key); owner != nil {
				return owner
			}
		}
	}
	return nil
}

// isOptional reports whether t makes a key of an embedded struct optional.
func isOptional(t reflect.Type, key string) bool {
	for i := range t.NumField() {
		if f := t.Field(i); f.Anonymous && contains(f.Tag.Get("optional"), key) {
			return true
		}
	}
	return false
}

// contains reports whether a comma-separated list has an item.
func contains(list, item string) bool {
	return slices.Contains(strings.Split(list, ","), item)
}
