package loader

import (
	"fmt"
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
	if n.kind == text && strings.HasPrefix(n.text, "-") || n.kind == mapping && len(n.pairs) > 0 && strings.HasPrefix(n.pairs[0].key.text, "-") {
		return `write a space after each dash: "- "`
	}
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
func (d *decoder) typeOfHint(n *node, made reflect.Type) string {
	f, found := made.FieldByName("Type")
	if n.kind != text || !found || f.Tag.Get("yaml") != "type" {
		return ""
	}
	for rule := range strings.SplitSeq(d.language.ValidateTag(f), ",") {
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
	return found.WithHint("write type: %s, with its other keys at the same level", n.pairs[0].key.text)
}

// unsetHint returns what to do about a variable that is not set. Names of environment
// variables are rarely in lower case: in a template it is likely an input.
func unsetHint(name string) string {
	if trimmed := strings.TrimSpace(name); trimmed != name && isVariableName(trimmed) {
		return "write ${" + trimmed + "}, without blanks"
	}
	if input := strings.TrimSpace(strings.TrimPrefix(name, "{")); strings.HasPrefix(name, "{") && isVariableName(input) && !strings.Contains(input, ".") {
		return fmt.Sprintf("the input %q of a template is {%s}, and ${DOLLAR:-$}{%s} with a $ before it", input, input, input)
	}
	other := otherForm(name)
	if other == "" && !isVariableName(name) {
		return "write ${DOLLAR:-$}{" + name + "} for the text ${" + name + "}"
	}
	hint := "set it, or write a default: ${" + name + ":-…}" + other
	if name == strings.ToLower(name) && strings.Trim(name, "0123456789_") != "" && other == "" {
		hint += "; the input " + strconv.Quote(name) + " of a template is {" + name + "}, without $"
	}
	return hint
}

// isVariableName reports whether programs and .env files give environment variables such names.
func isVariableName(name string) bool {
	return name != "" && strings.Trim(name, nameCharacters+"-") == ""
}

// lengthOfTime matches a number and a unit as people write them.
var lengthOfTime = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(\d{1,6})\s*([A-Za-z]*)$`) })

// explainDuration adds how to write a length of time, if the text shows what is meant.
func explainDuration(found diag.Diagnostic, n *node) diag.Diagnostic {
	m := lengthOfTime().FindStringSubmatch(strings.TrimSpace(n.text))
	if m == nil || n.shown() != n.text || n.kind != text && n.kind != integer {
		return found
	}
	if m[2] == "" {
		return found.WithHint("give the unit: %ss", m[1]).WithSuggestion(m[1] + "s")
	}
	count, err := strconv.Atoi(m[1])
	if err != nil {
		return found
	}
	const hoursOfDay, daysOfWeek = 24, 7
	switch unit := strings.ToLower(m[2]); unit {
	case "d", "day", "days":
		return found.WithoutSuggestion().WithSuggestion(strconv.Itoa(count*hoursOfDay) + "h")
	case "w", "week", "weeks":
		return found.WithoutSuggestion().WithSuggestion(strconv.Itoa(count*daysOfWeek*hoursOfDay) + "h")
	case "ms", "msec", "millis", "millisecond", "milliseconds":
		return found.WithoutSuggestion().WithSuggestion(m[1] + "ms")
	case "s", "sec", "secs", "second", "seconds", "m", "min", "mins", "minute", "minutes", "h", "hr", "hrs", "hour", "hours":
		return found.WithoutSuggestion().WithSuggestion(m[1] + unit[:1])
	}
	return found
}

// isVariableByName reports whether a pair declares a variable as "- question: text".
func isVariableByName(n *node, p pair, made reflect.Type) bool {
	return made == reflect.TypeFor[spec.Variable]() && len(n.pairs) == 1 && p.key.kind == text && p.value.kind == text
}

// shownType returns the type that a text names; … if it is not a built-in one, because the
// value may be secret.
func shownType(n *node) string {
	t, err := spec.ParseType(n.text)
	for err == nil && t.Elem != nil {
		t = *t.Elem
	}
	if err != nil || !isBuiltin(t.Name) {
		return "…"
	}
	return n.shown()
}

// explainOtherCase explains an unknown key that another type of the union has, such as the
// batch_config of another step: a key that is only similar to it is not meant.
func (d *decoder) explainOtherCase(found diag.Diagnostic, key *node, made reflect.Value) diag.Diagnostic {
	const most = 4 // types in a message
	u := d.unionWith(made.Addr().Interface().(spec.Node))
	if u == nil {
		return found
	}
	var types []string
	for _, c := range u.Cases {
		if _, has := d.planOf(reflect.TypeOf(c.New()).Elem()).byName[key.text]; has {
			types = append(types, c.Tag)
		}
	}
	if len(types) == 0 {
		return found
	}
	if len(types) > most {
		types = append(types[:most], "…")
	}
	return found.WithoutSuggestion().WithHint("it is a key of type %s", strings.Join(types, ", "))
}

// bracketHint returns how to write a text that starts with a bracket or a brace; empty for a
// value that does not.
func bracketHint(n *node) string {
	line := []rune(n.span.File.Line(n.span.Start.Line))
	if at := n.span.Start.Column - 1; at >= 0 && at < len(line) && (line[at] == '{' || line[at] == '[') {
		return "put a text that starts with " + string(line[at]) + " in quotes"
	}
	return ""
}

// emptyHint returns how to write a document that is a scalar, such as one with id:shop.
func emptyHint(n *node) string {
	first := strings.Fields(n.shown() + " .")[0]
	if m := keyWithoutSpace().FindStringSubmatch(first); m != nil {
		return "a colon needs a space after it: write " + m[1] + ": …" // the value may be secret
	}
	return "expected a mapping (an application) or a list"
}
