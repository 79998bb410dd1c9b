package loader

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/qtype-dev/qtype/internal/catalogue"
	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/spec/source"
)

// catalogueRow checks a row against the fields of catalogue.Model before it is decoded, so that each
// problem has its place.
type catalogueRow struct{ problems diag.List }

// rowOf decodes a row. It is not complete if there are problems.
func rowOf(n *node) (catalogue.Model, diag.List) {
	var c catalogueRow
	c.check(n, reflect.TypeFor[catalogue.Model](), "")
	if len(c.problems) > 0 {
		return catalogue.Model{}, c.problems
	}
	var text bytes.Buffer
	writeJSON(&text, n)
	row := catalogue.Model{Given: text.Bytes()}
	if err := json.Unmarshal(text.Bytes(), &row); err != nil {
		c.add(n.head(), "%s", strings.TrimPrefix(err.Error(), "json: "))
		return row, c.problems
	}
	if key, problem := row.Problem(); key != "" {
		c.add(placeOfKey(n, key), "%s", problem)
	}
	return row, c.problems
}

// add adds a problem.
func (c *catalogueRow) add(at source.Span, format string, args ...any) {
	c.problems.Add(ruleCatalogue.At(at, format, args...))
}

// check compares a value with the type of a field; path is its keys with dots, empty for the row.
func (c *catalogueRow) check(n *node, t reflect.Type, path string) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	wants, fits := wantedKind(t)
	name := path
	if name == "" {
		name = "a row"
	}
	switch {
	case n.kind == broken: // reported
		c.problems.Add(ruleCatalogue.At(n.head(), "%s cannot be read", name))
	case n.kind == null && path != "":
		c.problems.Add(ruleCatalogue.At(n.head(), "%s has no value", name).WithHint("remove the key, or write %s", wants))
	case !slices.Contains(fits, n.kind):
		c.add(n.head(), "%s must be %s, not %s", name, wants, n.kind.noun())
	case n.kind == mapping && t.Kind() == reflect.Struct:
		c.checkKeys(n, t, path)
	case n.kind == mapping:
		for _, p := range n.pairs {
			c.check(p.value, t.Elem(), joinKeys(path, p.key.text))
		}
	case n.kind == sequence:
		for i, item := range n.items {
			c.check(item, t.Elem(), joinKeys(path, strconv.Itoa(i)))
		}
	case t.Kind() == reflect.Int || t.Kind() == reflect.Float64:
		c.checkNumber(n, t, name)
	}
}

// checkKeys compares the keys of a mapping with the fields of a struct.
func (c *catalogueRow) checkKeys(n *node, t reflect.Type, path string) {
	fields := map[string]reflect.Type{}
	jsonFields(t, fields)
	names := make([]string, 0, len(fields))
	for name := range fields {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, p := range n.pairs {
		if field, ok := fields[p.key.text]; ok {
			c.check(p.value, field, joinKeys(path, p.key.text))
			continue
		}
		owner := "a row of the catalogue"
		if path != "" {
			owner = path
		}
		c.problems.Add(ruleCatalogue.At(p.key.span, "%s has no key %q", owner, p.key.shown()).WithNearest(p.key.text, names))
	}
}

// checkNumber checks that a number is one of JSON, and not negative.
func (c *catalogueRow) checkNumber(n *node, t reflect.Type, name string) {
	const largest = 1 << 53 // that a number of JSON has exactly
	digits := strings.ReplaceAll(n.text, "_", "")
	number, err := strconv.ParseFloat(digits, 64)
	invalid := err != nil || math.IsInf(number, 0) || math.IsNaN(number) || n.kind == integer && !json.Valid([]byte(digits)) // of another base
	if invalid || t.Kind() == reflect.Int && (n.kind == float || number > largest) {
		wants, _ := wantedKind(t)
		c.add(n.head(), "%s must be %s, not %s", name, wants, n.shown())
		return
	}
	if number < 0 {
		c.add(n.head(), "%s cannot be negative", name)
	}
}

// wantedKind returns what a value of a type must be, for messages, and the kinds of values that are.
func wantedKind(t reflect.Type) (string, []kind) {
	switch {
	case t == reflect.TypeFor[catalogue.Answer](), t.Kind() == reflect.Bool:
		return "true or false", []kind{boolean}
	case t.Kind() == reflect.Int:
		return "a whole number", []kind{integer, float}
	case t.Kind() == reflect.Float64:
		return "a number", []kind{integer, float}
	case t.Kind() == reflect.Slice:
		return "a list", []kind{sequence}
	case t.Kind() == reflect.Struct, t.Kind() == reflect.Map:
		return "a mapping", []kind{mapping}
	}
	return "a text", []kind{text}
}

// jsonFields adds the types of the fields of a struct by their names in JSON.
func jsonFields(t reflect.Type, to map[string]reflect.Type) {
	for field := range t.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case field.Anonymous:
			jsonFields(field.Type, to)
		case name != "" && name != "-":
			to[name] = field.Type
		}
	}
}

// joinKeys adds a key to a path.
func joinKeys(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// placeOfKey returns the place of a value by its path, or of the value around it if it is absent.
func placeOfKey(n *node, path string) source.Span {
	at := n
	for _, key := range strings.Split(path, ".") {
		i, err := strconv.Atoi(key)
		switch next := at.get(key); {
		case next != nil:
			at = next
		case err == nil && at.kind == sequence && i < len(at.items):
			at = at.items[i]
		default:
			return at.head()
		}
	}
	return at.head()
}

// writeJSON writes a value as JSON.
func writeJSON(w *bytes.Buffer, n *node) {
	switch n.kind {
	case mapping:
		w.WriteByte('{')
		for i, p := range n.pairs {
			if i > 0 {
				w.WriteByte(',')
			}
			writeText(w, p.key.text)
			w.WriteByte(':')
			writeJSON(w, p.value)
		}
		w.WriteByte('}')
	case sequence:
		w.WriteByte('[')
		for i, item := range n.items {
			if i > 0 {
				w.WriteByte(',')
			}
			writeJSON(w, item)
		}
		w.WriteByte(']')
	case null, broken:
		w.WriteString("null")
	case boolean:
		w.WriteString(strconv.FormatBool(slices.Contains([]string{"true", "yes", "on", "y"}, strings.ToLower(n.text))))
	case integer, float:
		number, _ := strconv.ParseFloat(strings.ReplaceAll(n.text, "_", ""), 64) // checked
		fmt.Fprint(w, strconv.FormatFloat(number, 'f', -1, 64))
	default:
		writeText(w, n.text)
	}
}

// writeText writes a text as JSON.
func writeText(w *bytes.Buffer, text string) {
	encoded, _ := json.Marshal(text) // a text has a JSON form
	w.Write(encoded)
}
