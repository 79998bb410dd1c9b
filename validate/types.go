package validate

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/spec/source"
)

// linkTypes resolves the names in type expressions, first to a built-in type, then
// to a custom one. It reports unknown names: QT110 for a variable, QT114 for a
// property of a custom type.
func (p *checker) linkTypes() {
	known := map[string]bool{}
	for _, name := range builtIn() {
		known[name] = true
	}
	for _, v := range p.nodes {
		switch n := v.node.(type) {
		case *spec.Variable:
			if !p.linkType(&n.Type, known) {
				p.untyped[n] = true
				p.reportVariableType(n)
			}
		case *spec.CustomType:
			for i := range n.Properties {
				p.linkProperty(n, &n.Properties[i], known)
			}
		}
	}
}

func (p *checker) linkProperty(t *spec.CustomType, prop *spec.Property, builtIn map[string]bool) {
	if p.linkType(&prop.Type, builtIn) || p.maybeDeclared(reflect.TypeFor[*spec.CustomType]()) {
		return
	}
	properties := t.Position().Field("properties")
	if baseOf(prop.Type).Name != "" || hasEmptyType(properties, prop.Name) {
		span := typePlace(properties.Field(prop.Name))
		p.list.Add(p.unknownType("QT114", span, prop.Type, fmt.Sprintf("property %q", t.ID+"."+prop.Name)))
	}
}

// hasEmptyType reports whether a type is written as an empty text. A type that is
// missing or could not be read is empty too, but reported by the loader.
func hasEmptyType(owner *spec.Position, key string) bool {
	_, written := owner.Lookup(key)
	return written && owner.Complete(key)
}

// reportVariableType reports a variable of unknown type, unless its type could not
// be read. For the element type of the structured form it is only a warning: QType
// (Python) does not check that name.
func (p *checker) reportVariableType(v *spec.Variable) {
	name := baseOf(v.Type).Name
	if name == "" && !hasEmptyType(v.Position(), "type") ||
		p.maybeDeclared(reflect.TypeFor[*spec.CustomType]()) && !isTypeSynonym(name) {
		return
	}
	place := v.Position().Field("type")
	written := v.Type
	_, structured := place.Lookup("element_type")
	structured = structured && v.Type.Elem != nil
	if structured {
		written = *v.Type.Elem
	}
	diagnostic := p.unknownType("QT110", typePlace(place), written, variableName(v))
	if structured {
		diagnostic = diagnostic.WithSeverity(diag.Warning)
		v.Type = spec.Type{Elem: &spec.Type{Name: spec.Any}, Optional: v.Type.Optional}
	}
	p.list.Add(diagnostic)
}

// linkType sets Custom if the innermost type is a custom one, and reports whether the type is known.
func (p *checker) linkType(t *spec.Type, builtIn map[string]bool) bool {
	for t.Elem != nil {
		t = t.Elem
	}
	if builtIn[t.Name] {
		return true
	}
	t.Custom = p.types[t.Name]
	if t.Custom != nil {
		p.used[t.Custom] = true
	}
	return t.Custom != nil
}

// variableName returns a variable as messages name it; one with a further error may have no id.
func variableName(v *spec.Variable) string {
	if v.ID == "" {
		return "the variable"
	}
	return fmt.Sprintf("variable %q", v.ID)
}

// unknownType returns the diagnostic for an unknown type name.
func (p *checker) unknownType(code string, span source.Span, t spec.Type, what string) diag.Diagnostic {
	name := baseOf(t).Name
	diagnostic := newDiagnostic(code, span, "%s has an unknown type %q", what, name)
	if meant := p.typeForm(name); meant != "" {
		fixed := strings.Replace(t.String(), name, meant, 1)
		return diagnostic.WithHint("did you mean %q?", meant).WithSuggestion(fixed).WithReplacement(t.String(), fixed)
	}
	near, exact := typeSynonym(name)
	var candidates []string // unless the name is a synonym
	if near == "" {
		candidates = builtIn()
		for id := range p.types {
			candidates = append(candidates, id)
		}
		near = diag.Nearest(name, candidates)
	}
	if near == "" {
		return diagnostic.WithHint("use a built-in type (qtype explain QT110 lists them) or declare it under types:")
	}
	fixed := strings.Replace(t.String(), name, near, 1)
	diagnostic = diagnostic.WithHint("did you mean %q?", near).WithSuggestion(fixed)
	if exact || diag.IsUnambiguous(name, near, candidates) {
		diagnostic = diagnostic.WithReplacement(t.String(), fixed)
	}
	if custom := p.types[near]; custom != nil {
		diagnostic = diagnostic.WithRelated(idPlace(custom), "declared here")
	}
	return diagnostic
}

// synonyms are type names of other languages for a built-in type.
type synonyms struct {
	names   string // separated by spaces
	builtIn string
	exact   bool // the names cannot mean another built-in type
}

func typeSynonyms() []synonyms {
	return []synonyms{
		{"string str varchar", "text", true},
		{"integer int64", "int", true},
		{"long", "int", false},
		{"number double decimal real", "float", false}, // a number may be an int
		{"bool", "boolean", true},
		{"binary blob", "bytes", false},
		{"timestamp", "datetime", false},
		{"message", "ChatMessage", false},
	}
}

// typeSynonym returns the built-in type for a type name of other languages, or "". It
// also reports whether the name cannot mean another built-in type.
func typeSynonym(name string) (builtIn string, exact bool) {
	for _, s := range typeSynonyms() {
		if slices.Contains(strings.Fields(s.names), strings.ToLower(name)) {
			return s.builtIn, s.exact
		}
	}
	return "", false
}

func isTypeSynonym(name string) bool {
	builtIn, _ := typeSynonym(name)
	return builtIn != ""
}

// builtIn returns the names of the built-in types.
func builtIn() []string { return spec.BuiltInTypes() }

// baseOf returns the innermost element type of a list, or t if it is not a list.
func baseOf(t spec.Type) spec.Type {
	for t.Elem != nil {
		t = *t.Elem
	}
	return t
}

// typePlace returns the position of a type expression, also of the form {element_type: text}.
func typePlace(p *spec.Position) source.Span { return p.Field("element_type").Span() }

func typeRules() []rule {
	return []rule{unknownVariableType(), unknownPropertyType(), shadowedType()}
}

func unknownVariableType() rule {
	return rule{code: "QT110"}
}

func unknownPropertyType() rule {
	return rule{code: "QT114", check: on(recursiveTypes)}
}

// requiredProperty is a property whose value must contain a record of another type.
type requiredProperty struct {
	owner    *spec.CustomType
	property *spec.Property
}

func (r requiredProperty) String() string { return r.owner.ID + "." + r.property.Name }

// recursiveTypes reports records that must contain a record of the same type: no
// value of such a type is finite.
func recursiveTypes(p *ruleContext, _ *spec.Document) {
	if !p.here.root {
		return
	}
	var types []*spec.CustomType
	for _, v := range p.nodes {
		if t, ok := v.node.(*spec.CustomType); ok {
			types = append(types, t)
		}
	}
	findCycles(types, requiredTypes, func(cycle []edge[*spec.CustomType, requiredProperty]) {
		var names []string
		for _, e := range cycle[1:] {
			names = append(names, e.via.String())
		}
		last := cycle[len(cycle)-1]
		span := last.via.owner.Position().Field("properties").Field(last.via.property.Name).Span()
		p.list.Add(p.reportAt(span, "the type %q requires itself: %s", last.to.ID, strings.Join(append(names, last.to.ID), " → ")).
			WithHint("make the property optional: %q", last.via.property.Type.String()+"?"))
	})
}

// requiredTypes returns the custom types that every value of t contains.
func requiredTypes(t *spec.CustomType) []edge[*spec.CustomType, requiredProperty] {
	var all []edge[*spec.CustomType, requiredProperty]
	for i := range t.Properties {
		prop := &t.Properties[i]
		if next := prop.Type.Custom; next != nil && !prop.Type.Optional {
			all = append(all, edge[*spec.CustomType, requiredProperty]{next, requiredProperty{t, prop}})
		}
	}
	return all
}

func shadowedType() rule {
	return rule{code: "QT409", warning: true, check: on(func(p *ruleContext, t *spec.CustomType) {
		if slices.Contains(builtIn(), t.ID) {
			p.report(idPlace(t), "the type %q is built in; this custom type is never used", t.ID)
		}
	})}
}

// typeForms are forms of lists and optional types in other languages: text[], List[str],
// Array<text>, Optional[text], text | None, and a list without its bracket.
var typeForms = sync.OnceValue(func() []typeForm {
	form := func(pattern, before, after string) typeForm {
		return typeForm{regexp.MustCompile(`(?i)^` + pattern + `$`), before, after}
	}
	const list = `(?:list|array|sequence|vector|set)`
	return []typeForm{
		form(`(\w+) *\[ *\]`, "list[", "]"),
		form(`\[ *(\w+) *\]`, "list[", "]"),
		form(list+` *\[ *(\w+) *\]?`, "list[", "]"),
		form(list+` *[<(] *(\w+) *[>)]?`, "list[", "]"),
		form(list+` +of +(\w+?)s?`, "list[", "]"),
		form(`optional *[\[<(] *(\w+) *[\])>]?`, "", "?"),
		form(`(\w+) *\| *(?:none|null|undefined)`, "", "?"),
	}
})

// typeForm is a form of a type, and what is before and after its element here.
type typeForm struct {
	pattern       *regexp.Regexp
	before, after string
}

// typeForm returns the type expression that is meant by one in the form of another
// language; empty if the element is no known type.
func (p *checker) typeForm(written string) string {
	for _, f := range typeForms() {
		m := f.pattern.FindStringSubmatch(strings.TrimSpace(written))
		if m == nil {
			continue
		}
		if element := p.knownType(m[1]); element != "" {
			return f.before + element + f.after
		}
	}
	return ""
}

// knownType returns the name of a built-in or custom type, also for a name that other languages
// have for it; empty if there is none.
func (p *checker) knownType(name string) string {
	for _, known := range builtIn() {
		if known == name {
			return name
		}
	}
	if p.types[name] != nil {
		return name
	}
	meant, _ := typeSynonym(name)
	return meant
}

// typeNoun is the noun for a Go type in messages, without an article.
type typeNoun struct {
	goType reflect.Type
	noun   string
}

// typeNouns lists the Go types that references can refer to.
func typeNouns() []typeNoun {
	return []typeNoun{
		{reflect.TypeFor[spec.Auth](), "auth"},
		{reflect.TypeFor[*spec.AWSAuth](), "auth of type aws"},
		{reflect.TypeFor[*spec.DocumentIndex](), "document index"},
		{reflect.TypeFor[*spec.EmbeddingModel](), "embedding model"},
		{reflect.TypeFor[*spec.Flow](), "flow"},
		{reflect.TypeFor[spec.Index](), "index"},
		{reflect.TypeFor[*spec.Memory](), "memory"},
		{reflect.TypeFor[*spec.Model](), "chat model"},
		{reflect.TypeFor[spec.ModelEntity](), "model"},
		{reflect.TypeFor[spec.Step](), "step"},
		{reflect.TypeFor[*spec.Store](), "store"},
		{reflect.TypeFor[spec.Tool](), "tool"},
		{reflect.TypeFor[*spec.Variable](), "variable"},
		{reflect.TypeFor[*spec.VectorIndex](), "vector index"},
	}
}

// lookupNoun returns the noun for a Go type, or otherwise if the table does not have it.
func lookupNoun(t reflect.Type, otherwise string) string {
	nouns := typeNouns()
	if i := slices.IndexFunc(nouns, func(n typeNoun) bool { return n.goType == t }); i >= 0 {
		return nouns[i].noun
	}
	return otherwise
}

// targetNoun returns the noun for the entities that a reference can refer to.
func targetNoun(target reflect.Type) string { return lookupNoun(target, "component") }

// kindNoun returns the noun for an entity, as specific as the types of references.
func kindNoun(e spec.Entity) string {
	if auth, ok := e.(spec.Auth); ok {
		return "auth of type " + spec.TypeName(auth)
	}
	return lookupNoun(reflect.TypeOf(e), string(e.Kind()))
}

// an adds the indefinite article to a noun.
func an(noun string) string {
	vowels := "aeio"
	if len(noun) > 1 && unicode.IsUpper(rune(noun[0])) && unicode.IsUpper(rune(noun[1])) {
		vowels = "AEFHILMNORSX" // an abbreviation is pronounced letter by letter: an MCPTool
	}
	if noun != "" && strings.ContainsRune(vowels, rune(noun[0])) {
		return "an " + noun
	}
	return "a " + noun
}

// joinNames quotes and joins names. It replaces all but the first few by their number.
func joinNames(names []string) string {
	const maxNames = 5
	quoted := make([]string, 0, maxNames+1)
	for i, name := range names {
		if i == maxNames {
			quoted = append(quoted, fmt.Sprintf("and %d more", len(names)-maxNames))
			break
		}
		quoted = append(quoted, fmt.Sprintf("%q", name))
	}
	return strings.Join(quoted, ", ")
}
