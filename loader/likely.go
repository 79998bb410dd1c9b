package loader

import (
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
)

// The hints of this file are for values of the wrong kind whose form shows what is meant.

// listHint returns how to write a mapping as a list with items of a type.
func listHint(n *node, item reflect.Type) string {
	const general = `start each item with "- ", or put brackets around them`
	if n.kind != mapping || len(n.pairs) == 0 || n.has("id") || n.has("type") || !hasID(item) {
		return general
	}
	first := n.pairs[0]
	switch {
	case first.value.kind == mapping:
		return `it is a list, in which each item has its name as the id: "- id: ` + first.key.shown() + `"`
	case first.value.kind == text && item == reflect.TypeFor[*spec.Variable]():
		return "it is a list: - {id: " + first.key.shown() + ", type: " + first.value.shown() + "}"
	}
	return general
}

// hasID reports whether the values of a type have an id.
func hasID(t reflect.Type) bool { return t.Implements(reflect.TypeFor[spec.Entity]()) }

// typeOfHint returns how to write a text that is the type of a mapping, such as the
// interface of a flow; empty if it is none.
func typeOfHint(n *node, made reflect.Type) string {
	f, found := made.FieldByName("Type")
	if n.kind != text || !found || f.Tag.Get("yaml") != "type" {
		return ""
	}
	for rule := range strings.SplitSeq(spec.ValidateTag(f), ",") {
		values, isList := strings.CutPrefix(rule, "oneof=")
		for _, value := range strings.Fields(values) {
			if isList && strings.EqualFold(value, n.text) {
				return "write {type: " + value + "}"
			}
		}
	}
	return ""
}

// thousands matches a number such as 4k and 4,000.
var thousands = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(\d{1,5})[kK]$|^\d{1,3}(,\d{3})+$`) })

// numberHint returns how to write a number with digits only; empty for other texts.
func numberHint(n *node) string {
	m := thousands().FindStringSubmatch(n.text)
	switch {
	case n.kind != text || n.shown() != n.text || m == nil:
		return ""
	case m[1] != "":
		return "write " + m[1] + "000"
	}
	return "write " + strings.ReplaceAll(n.text, ",", "")
}

// sectionOf returns where the entities that a reference names are declared: under models.
func sectionOf(target reflect.Type) string {
	if target == reflect.TypeFor[*spec.Variable]() {
		return "under the variables of the flow"
	}
	application := reflect.TypeFor[spec.Application]()
	for i := range application.NumField() {
		if f := application.Field(i); f.Type.Kind() == reflect.Slice && f.Type.Elem() == target {
			return "under " + f.Tag.Get("yaml")
		}
	}
	return "in its own section"
}

// keyedType explains an entity without a type whose only key is the type: "- Echo: {…}".
func keyedType(found diag.Diagnostic, n *node, u *spec.Union) diag.Diagnostic {
	if len(n.pairs) != 1 || !slices.Contains(tags(u), n.pairs[0].key.text) {
		return found
	}
	return found.WithHint("write type: %s, and the keys below it beside it", n.pairs[0].key.text)
}

// unsetHint returns what to do about a variable that is not set. Names of environment
// variables are rarely in lower case: in a template it is likely an input.
func unsetHint(name string) string {
	hint := "set it, or write a default: ${" + name + ":-…}"
	if name == strings.ToLower(name) && strings.Trim(name, "0123456789_") != "" {
		hint += "; the input " + strconv.Quote(name) + " of a template is {" + name + "}, without $"
	}
	return hint
}
