package lsp

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/lint"
	"github.com/qtype-dev/qtype/internal/lsp/outline"
	"github.com/qtype-dev/qtype/spec"
)

// language describes the documents: the structs of package spec with the
// descriptions of the JSON schema.
type language struct {
	*spec.Language
	docs         map[string]definition
	kinds        []*lint.Kind
	unions       []spec.Union
	structs      map[reflect.Type]*structType
	specialTypes map[reflect.Type]specialType
}

// definition is a definition of the schema, as far as it is used.
type definition struct {
	Description string `json:"description"`
	Properties  map[string]struct {
		Description string `json:"description"`
	} `json:"properties"`
	Required []string `json:"required"`
}

// structType is a struct of package spec that is written as a mapping.
type structType struct {
	goType reflect.Type
	tag    string // the value of `type` that selects it; empty if none does
	doc    string
	fields []*field
	byName map[string]*field
	// selects is the key that names an implementation, whose arguments another key has;
	// nil for none.
	selects *field
}

// field is a key of a struct.
type field struct {
	name        string
	doc         string
	goType      reflect.Type
	required    bool
	defaultText string // the default as YAML text
	hasDefault  bool
	enum        []string          // the allowed values; empty for any
	enumDocs    map[string]string // what each of them means
	syntax      string            // the tag `syntax`: the syntax of a text
	names       []string          // the tag `names`: what a text, or the keys of a mapping, name in another file
	isOutput    bool              // the tag `binds`: bindings of outputs
	isArgument  bool              // the tag `arguments`, or the key inputs: variables that callers of a tool may give
	owner       *structType
}

// readLanguage reads the descriptions and the structs.
func readLanguage(of *spec.Language, schema string, kinds []*lint.Kind) (*language, error) {
	docs := map[string]definition{}
	for _, text := range append(schemasOf(kinds), schema) { // that of documents takes precedence
		var read struct {
			Definitions map[string]definition `json:"definitions"`
		}
		if err := json.Unmarshal([]byte(text), &read); err != nil {
			return nil, fmt.Errorf("parse the schema: %w", err)
		}
		maps.Copy(docs, read.Definitions)
	}
	l := &language{Language: of, docs: docs, kinds: kinds, unions: of.Unions(), structs: map[reflect.Type]*structType{}, specialTypes: specialTypes()}
	l.addStruct(reflect.TypeFor[spec.Application](), "")
	l.addStruct(reflect.TypeFor[spec.SecretReference](), "")
	for i := range l.unions {
		for _, c := range l.unions[i].Cases {
			l.addStruct(reflect.TypeOf(c.New()).Elem(), c.Tag)
		}
	}
	for _, k := range kinds {
		l.addStruct(reflect.TypeOf(k.Content).Elem(), "")
	}
	return l, nil
}

// mustReadLanguage is readLanguage for the schemas of the program. It panics if one is invalid.
func mustReadLanguage(of *spec.Language, schema string, kinds []*lint.Kind) *language {
	l, err := readLanguage(of, schema, kinds)
	if err != nil {
		panic(err)
	}
	return l
}

func schemasOf(kinds []*lint.Kind) []string {
	var all []string
	for _, k := range kinds {
		all = append(all, k.Schema)
	}
	return all
}

// addStruct adds a struct and the structs of its fields.
func (l *language) addStruct(t reflect.Type, tag string) {
	if l.structs[t] != nil {
		return
	}
	c := &structType{goType: t, tag: tag, byName: map[string]*field{}}
	l.structs[t] = c
	doc := l.docs[spec.DefinitionName(t)]
	c.doc = doc.Description
	if c.doc == "" && tag != "" {
		c.doc = doc.Properties["type"].Description
	}
	l.addFields(c, t, doc)
	l.addOptions(c)
}

// addOptions adds what a key of a struct may name, and the structs of the arguments of
// each implementation.
func (l *language) addOptions(c *structType) {
	all, ok := spec.SelectionOf(c.goType, "")
	if !ok {
		return
	}
	c.selects = c.byName[all.Key]
	c.selects.enumDocs = map[string]string{}
	for _, o := range all.Options {
		c.selects.enum = append(c.selects.enum, o.Name)
		c.selects.enumDocs[o.Name] = o.Doc
		selected, _ := spec.SelectionOf(c.goType, o.Name)
		for _, m := range selected.Mappings {
			if m.Into != nil {
				l.addStruct(reflect.TypeOf(m.Into).Elem(), "")
			}
		}
	}
}

// argumentType returns the type of a free mapping with the arguments of the
// implementation that a mapping node selects; nil for other keys and unknown names.
func (c *structType) argumentType(n *outline.Node, key string) reflect.Type {
	if c.selects == nil {
		return nil
	}
	selected, _ := spec.SelectionOf(c.goType, cmp.Or(n.GetText(c.selects.name), c.selects.defaultText))
	for _, m := range selected.Mappings {
		if m.Key == key && m.Into != nil && selected.Known {
			return reflect.TypeOf(m.Into).Elem()
		}
	}
	return nil
}

// addFields adds the fields of a struct; those of embedded structs at their
// position.
func (l *language) addFields(c *structType, t reflect.Type, doc definition) {
	for i := range t.NumField() {
		f := t.Field(i)
		key, tagged := f.Tag.Lookup("yaml")
		name, _, _ := strings.Cut(key, ",")
		switch {
		case f.Anonymous && !tagged && f.Type.Kind() == reflect.Struct:
			l.addFields(c, f.Type, doc)
		case tagged && len(doc.Properties) > 1 && doc.Properties[name].Description == "":
			continue // The tag `without` of an embedded struct removed the key: the schema describes all others.
		case tagged && name != "-" && f.IsExported():
			made := &field{name: name, goType: f.Type, doc: doc.Properties[name].Description, owner: c, syntax: f.Tag.Get("syntax"), enumDocs: l.ValueDocs(f),
				isOutput: f.Tag.Get("binds") == "outputs", isArgument: name == "inputs" || f.Tag.Get("arguments") == "true",
				required: slices.Contains(strings.Split(f.Tag.Get("jsonschema"), ","), "required") &&
					(len(doc.Properties) < 2 || slices.Contains(doc.Required, name))}
			made.defaultText, made.hasDefault = f.Tag.Lookup("default")
			for rule := range strings.SplitSeq(l.ValidateTag(f), ",") {
				if words, ok := strings.CutPrefix(rule, "oneof="); ok {
					made.enum = strings.Fields(words)
				}
			}
			if f.Type == reflect.TypeFor[spec.Tokenizer]() {
				made.enum = spec.Encodings()
			}
			made.addNames(f.Tag.Get("names"))
			c.fields = append(c.fields, made)
			c.byName[name] = made
			if inner := l.elementStruct(f.Type); inner != nil {
				l.addStruct(inner, "")
			}
		}
	}
}

// addNames adds the value of the tag `names`.
func (f *field) addNames(tag string) {
	if tag == "" {
		return
	}
	f.names = strings.Split(tag, ",")
	rows := map[string]string{}
	switch tag {
	case namesMetrics:
		for _, row := range spec.Metrics() {
			rows[row.Name] = row.Doc
			f.enum = append(f.enum, row.Name)
		}
	case namesAttacks:
		for _, row := range spec.AttackCategories() {
			rows[row.Name] = row.Doc
			f.enum = append(f.enum, row.Name)
		}
	default:
		return
	}
	f.enumDocs = rows
}

// elementStruct returns the struct within lists, maps and pointers; nil for other
// types.
func (l *language) elementStruct(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		if l.isSpecial(t) {
			return nil
		}
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || l.isSpecial(t) {
		return nil
	}
	return t
}

// isSpecial reports whether a type has its own notation instead of that of its
// struct.
func (l *language) isSpecial(t reflect.Type) bool {
	_, special := l.specialTypes[t]
	return special || isRef(t)
}

// isRef reports whether a type is a reference to an entity.
func isRef(t reflect.Type) bool {
	return reflect.PointerTo(t).Implements(reflect.TypeFor[spec.Reference]())
}

// targetType returns the type that a reference accepts.
func targetType(t reflect.Type) reflect.Type {
	if r, ok := reflect.New(t).Interface().(spec.Reference); ok {
		return spec.TargetType(r)
	}
	return nil
}

// alternatives returns the structs of a union.
func (l *language) alternatives(u *spec.Union) []*structType {
	all := make([]*structType, len(u.Cases))
	for i, c := range u.Cases {
		all[i] = l.structs[reflect.TypeOf(c.New()).Elem()]
	}
	return all
}

// chooseAlternative returns the alternative of a union that a mapping is written
// as; nil if its `type` is missing or unknown and its keys do not decide.
func (l *language) chooseAlternative(u *spec.Union, n *outline.Node) *structType {
	if tag := n.GetText("type"); tag != "" {
		for _, c := range l.alternatives(u) {
			if c.tag == tag {
				return c
			}
		}
		return nil
	}
	if !u.TagOptional {
		return nil
	}
	var best *structType
	limit := 0
	for _, c := range l.alternatives(u) {
		score := 0
		for _, p := range n.Pairs {
			if f := c.byName[p.Key]; f != nil && f.name != "id" {
				score++
				if f.required {
					score++
				}
			}
		}
		if score > limit {
			best, limit = c, score
		}
	}
	return best
}

// isEntity reports whether references may name values of the struct.
func (c *structType) isEntity() bool {
	return c != nil && reflect.PointerTo(c.goType).Implements(reflect.TypeFor[spec.Entity]())
}

// kind returns the kind of entity, "" for a struct that is not an entity.
func (c *structType) kind() spec.Kind {
	if e, ok := reflect.New(c.goType).Interface().(spec.Entity); ok {
		return e.Kind()
	}
	return ""
}

// isAssignableTo reports whether a reference of a target type may name values of
// the struct.
func (c *structType) isAssignableTo(wants reflect.Type) bool {
	return c != nil && wants != nil && reflect.PointerTo(c.goType).AssignableTo(wants)
}

// kindName returns the name of the kind of entity that a reference accepts.
func (l *language) kindName(wants reflect.Type) string {
	if u := spec.FindUnion(l.unions, wants); u != nil {
		return u.Name
	}
	switch {
	case wants == reflect.TypeFor[*spec.Model]():
		return string(spec.RoleChatModel)
	case wants == reflect.TypeFor[*spec.EmbeddingModel]():
		return string(spec.RoleEmbedding)
	case wants != nil && wants.Kind() == reflect.Pointer:
		if e, ok := reflect.New(wants.Elem()).Interface().(spec.Entity); ok {
			return string(e.Kind())
		}
	}
	return "component"
}

// describeType returns what is written in a key, in terms of documents.
func (l *language) describeType(t reflect.Type) string {
	if known, ok := l.specialTypes[t]; ok {
		return known.description
	}
	if isRef(t) {
		return "id of " + withArticle(l.kindName(targetType(t)))
	}
	switch t.Kind() {
	case reflect.Pointer:
		return l.describeType(t.Elem())
	case reflect.Slice:
		return "a list: " + strings.TrimPrefix(l.describeType(t.Elem()), "a ")
	case reflect.Interface:
		if u := spec.FindUnion(l.unions, t); u != nil {
			return withArticle(u.Name)
		}
	case reflect.Int, reflect.Int64:
		return "an integer"
	case reflect.Float64:
		return "a number"
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "a text"
	}
	return "a mapping"
}

func withArticle(noun string) string {
	if noun != "" && strings.ContainsRune("aeio", rune(noun[0])) {
		return "an " + noun
	}
	return "a " + noun
}
