package docgen

import (
	"context"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/qtype-dev/qtype/internal/schemagen"
	"github.com/qtype-dev/qtype/spec"
)

// special describes the types of package spec that a document writes in another
// form than a mapping of their fields.
var special = map[reflect.Type]string{
	reflect.TypeFor[spec.Type]():        "[type](types.md#type-expressions)",
	reflect.TypeFor[spec.Secret]():      "text, or a [secret](auth.md#secretreference)",
	reflect.TypeFor[spec.Duration]():    "duration, such as `30s`",
	reflect.TypeFor[spec.Thinking]():    "`off`, `low`, `medium`, `high`, `max`, or a number of tokens",
	reflect.TypeFor[spec.Expression]():  "[expression](https://expr-lang.org/docs/language-definition)",
	reflect.TypeFor[spec.Assignments](): "mapping of variables to expressions",
	reflect.TypeFor[spec.StoreRef]():    "id of a [store](stores.md), or a URL",
	reflect.TypeFor[spec.Bindings]():    "mapping of names to ids of variables",
	reflect.TypeFor[spec.Properties]():  "mapping of names to [types](types.md#type-expressions)",
	reflect.TypeFor[spec.PathRef]():     "id of a [variable](types.md#variable), or `{uri: PATH}`",
	reflect.TypeFor[spec.Tokenizer]():   "name of an encoding, or path of a file",
	reflect.TypeFor[spec.StepItem]():    "[step](steps.md), or `{$ref: ID}`",
	reflect.TypeFor[spec.Document]():    "document, mostly by `!include`",
}

// short describes the shorter form of structs that have one.
var short = map[reflect.Type]string{reflect.TypeFor[spec.Approval](): "id of a [tool](tools.md), or "}

// plain describes Go's own types.
var plain = map[reflect.Kind]string{
	reflect.String: "text", reflect.Int: "integer", reflect.Int64: "integer", reflect.Float64: "number",
	reflect.Bool: "boolean", reflect.Interface: "any value",
}

// valueOf describes the values of a Go type, in Markdown.
func (g *generator) valueOf(t reflect.Type) (string, error) {
	if text, ok := special[t]; ok {
		return text, nil
	}
	if target, ok := targetOf(t); ok {
		return g.reference(target), nil
	}
	switch t.Kind() {
	case reflect.Pointer:
		return g.valueOf(t.Elem())
	case reflect.Slice:
		item, err := g.valueOf(t.Elem())
		return "list: " + item, err
	case reflect.Map:
		item, err := g.valueOf(t.Elem())
		return "mapping: " + item, err
	case reflect.Struct:
		return short[t] + fmt.Sprintf("[%s](%s#%s)", heading(t), g.page[t], anchor(heading(t))), nil
	}
	for _, u := range spec.Unions() {
		if u.Type == t {
			return fmt.Sprintf("[%s](%s)", u.Name, g.pageOfUnion(u)), nil
		}
	}
	if text, ok := plain[t.Kind()]; ok {
		return text, nil
	}
	return "", fmt.Errorf("no description of the values of %v", t)
}

// reference describes a reference to an entity.
func (g *generator) reference(target reflect.Type) string {
	for _, u := range spec.Unions() {
		if u.Type == target {
			return fmt.Sprintf("id of %s [%s](%s)", article(u.Name), u.Name, g.pageOfUnion(u))
		}
	}
	t := target.Elem()
	return fmt.Sprintf("id of %s [%s](%s#%s)", article(heading(t)), heading(t), g.page[t], anchor(heading(t)))
}

// article returns the indefinite article of a word.
func article(word string) string {
	if strings.ContainsAny(word[:1], "aeioAEIO") {
		return "an"
	}
	return "a"
}

func (g *generator) pageOfUnion(u spec.Union) string {
	return g.page[reflect.TypeOf(u.Cases[0].New()).Elem()]
}

// targetOf returns the type that a reference accepts.
func targetOf(t reflect.Type) (reflect.Type, bool) {
	if t.Kind() != reflect.Struct {
		return nil, false
	}
	r, ok := reflect.New(t).Interface().(spec.Reference)
	if !ok {
		return nil, false
	}
	return spec.TargetType(r), true
}

// nestedStructs returns the structs that a document writes within a struct, in the
// order of the keys. Cases of unions are not among them.
func nestedStructs(t reflect.Type) []reflect.Type {
	var all []reflect.Type
	for _, f := range schemagen.Fields(t) {
		inner := f.Type
		for special[inner] == "" && (inner.Kind() == reflect.Pointer || inner.Kind() == reflect.Slice || inner.Kind() == reflect.Map) {
			inner = inner.Elem()
		}
		_, isRef := targetOf(inner)
		if inner.Kind() == reflect.Struct && special[inner] == "" && !isRef {
			all = append(all, inner)
		}
	}
	return all
}

// limitsOf describes rules of package validator.
func limitsOf(rules string) (string, error) {
	text := ""
	for rule := range strings.SplitSeq(rules, ",") {
		name, value, _ := strings.Cut(rule, "=")
		switch name {
		case "", "omitempty":
		case "oneof":
			text += ": `" + strings.Join(strings.Fields(value), "`, `") + "`"
		case "gt":
			text += ", greater than " + value
		case "gte", "min":
			text += ", at least " + value
		case "lt":
			text += ", less than " + value
		case "lte", "max":
			text += ", at most " + value
		case "http_url":
			text += ": an http or https URL"
		default:
			return "", fmt.Errorf("no description of the rule %q", rule)
		}
	}
	return text, nil
}

// anchor returns the fragment that GitHub gives a heading.
func anchor(heading string) string {
	return strings.ToLower(strings.ReplaceAll(heading, " ", "-"))
}

// escaped returns plain text as Markdown, without the markup that it may contain.
func escaped(text string) string {
	return strings.NewReplacer("\\", `\\`, "*", `\*`, "<", "&lt;", "[", `\[`).Replace(text)
}

// cell returns Markdown for a cell of a table.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

// maxKeyExample is the length of an example of one key; longer ones are not shown.
const maxKeyExample = 90

// keyExamples has a value of each key that a document contains, by the
// struct that declares the key.
type keyExamples map[reflect.Type]map[string]string

// readKeyDocuments adds the values of the documents that show what no other one does.
func readKeyDocuments(ctx context.Context, root string, all samples, keys keyExamples) error {
	files, err := filepath.Glob(filepath.Join(root, "internal", "docgen", "testdata", "*.qtype*.yaml"))
	if err != nil {
		return err
	}
	for _, file := range files {
		rest := samples{}
		if err := rest.collectFile(ctx, file, keys); err != nil {
			return err
		}
		for t, text := range rest {
			if all[t] == "" {
				all[t] = text
			}
		}
	}
	return nil
}

// add keeps the values of the keys of a node that fit in a line, if none was kept before.
func (k keyExamples) add(n spec.Node) {
	for _, f := range schemagen.Fields(reflect.TypeOf(n).Elem()) {
		t := f.Owner
		if k[t] == nil {
			k[t] = map[string]string{}
		}
		place, ok := n.Position().Lookup(f.Key)
		if !ok || k[t][f.Key] != "" {
			continue
		}
		text := strings.Trim(excerpt(place.Span()), " ")
		if text != "" && len(text) <= maxKeyExample && !strings.ContainsAny(text, "\n`") {
			k[t][f.Key] = text
		}
	}
}

// exampleOf returns the example of a key in the description of a struct: that of its
// declaration, or one of a document, unless the example of the struct contains the key.
func (g *generator) exampleOf(t reflect.Type, f schemagen.Field) string {
	if text := f.Tag.Get("example"); text != "" {
		return " Example: `" + text + "`."
	}
	text := g.keys[f.Owner][f.Key]
	if text == "" || hasKey(g.sampleOf(t), f.Key) {
		return ""
	}
	return " Example: `" + f.Key + ": " + text + "`."
}

// sampleOf returns the example of a struct.
func (g *generator) sampleOf(t reflect.Type) string {
	if g.samples[t] == "" {
		return synthesize(t)
	}
	return g.samples[t]
}

// hasKey reports whether a text in YAML contains a key.
func hasKey(text, key string) bool {
	for rest := text; ; {
		_, after, ok := strings.Cut(rest, key+":")
		if !ok {
			return false
		}
		before := rest[:len(rest)-len(after)-len(key)-1]
		if before == "" || strings.ContainsAny(before[len(before)-1:], " {\n-") {
			return true
		}
		rest = after
	}
}
