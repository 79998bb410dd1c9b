package steps

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ohler55/ojg/jp"

	"github.com/qtype-dev/qtype/internal/jsonpath"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
	"github.com/qtype-dev/qtype/spec/value"
)

// fieldExtractor selects values of its input by a JSONPath, one row for each match, in
// document order.
type fieldExtractor struct {
	in, out slot
	path    *jsonpath.Path
	text    string // the path as written in the document
}

func buildFieldExtractor(s *spec.FieldExtractor, env *Env) (Runner, error) {
	in, out, err := env.inOut(&s.StepBase)
	if err != nil {
		return nil, err
	}
	path, err := jsonpath.Parse(s.JSONPath)
	if err != nil {
		return nil, fmt.Errorf("invalid json_path %q: %w", s.JSONPath, err)
	}
	return &fieldExtractor{in: in, out: out, path: path, text: s.JSONPath}, nil
}

// Process emits one row for each match. Without a match it emits one row with null
// where the output is optional, else it fails the row.
func (e *fieldExtractor) Process(_ context.Context, row *Row, emit Emit) error {
	v, err := e.in.read(row)
	if err != nil {
		return err
	}
	matches, err := e.path.Find(wrapValue(parsed(v)), inOrder)
	if err != nil {
		return fmt.Errorf("%s: %w", e.text, err)
	}
	if len(matches) == 0 {
		if !e.out.of.IsOptional() {
			return fmt.Errorf("%s finds nothing in %s%s", e.text, e.in.of.ID, textHint(v))
		}
		matches = []any{nil}
	}
	for _, m := range matches {
		c := row.Clone()
		if err := e.set(c, unwrap(m)); err != nil {
			return err
		}
		if err := emit(c); err != nil {
			return err
		}
	}
	return nil
}

// parsed returns the object or the list whose JSON a text is; other values are unchanged.
func parsed(v any) any {
	text, ok := v.(string)
	if text = value.AnswerText(text); !ok || !strings.HasPrefix(text, "{") && !strings.HasPrefix(text, "[") {
		return v
	}
	if inside, err := value.Parse(text); err == nil {
		return inside
	}
	return v
}

// textHint explains the most common reason for no match: a text that is not JSON.
func textHint(v any) string {
	if _, ok := parsed(v).(string); ok {
		return ", which is a text that is not JSON"
	}
	return ""
}

// set writes a match to the output: wrapped where a list is declared, converted to a
// record where one is declared; null stays null.
func (e *fieldExtractor) set(row *Row, m any) error {
	if m == nil {
		e.out.write(row, nil)
		return nil
	}
	if _, isList := m.([]any); e.out.of.Type.IsList() && !isList {
		m = []any{m}
	}
	return e.out.setCoerced(row, m)
}

// inOrder lists the matches of a path in document order.
func inOrder(path jp.Expr, doc any) []any {
	if !slices.ContainsFunc(path, isDescent) {
		return path.Get(doc)
	}
	// A descent returns deep matches first, so the matches are sorted by their positions.
	places := path.Locate(doc, 0)
	slices.SortStableFunc(places, func(a, b jp.Expr) int { return comparePlaces(doc, a, b) })
	places = slices.CompactFunc(places, func(a, b jp.Expr) bool { return comparePlaces(doc, a, b) == 0 })
	found := make([]any, len(places))
	for i, place := range places {
		found[i] = place.First(doc)
	}
	return found
}

func isDescent(f jp.Frag) bool {
	_, ok := f.(jp.Descent)
	return ok
}

// comparePlaces orders two positions of one document.
func comparePlaces(doc any, a, b jp.Expr) int {
	at := doc
	for i := range min(len(a), len(b)) {
		var x, y int
		switch node := at.(type) {
		case *pathRecord:
			x, y = node.index(a[i]), node.index(b[i])
			if x >= 0 {
				at = node.values[x]
			}
		case []any:
			x, y = listIndex(a[i]), listIndex(b[i])
			if x >= 0 && x < len(node) {
				at = node[x]
			}
		}
		if x != y {
			return x - y
		}
	}
	return len(a) - len(b)
}

func listIndex(f jp.Frag) int {
	if n, ok := f.(jp.Nth); ok {
		return int(n)
	}
	return -1
}

// pathRecord gives the path library access to a record, in the order of its fields.
type pathRecord struct {
	record *value.Record
	values []any // the fields' values, wrapped
}

// ValueForKey returns the value of a field.
func (o *pathRecord) ValueForKey(key string) (any, bool) {
	if i := o.index(jp.Child(key)); i >= 0 {
		return o.values[i], true
	}
	return nil, false
}

// SetValueForKey does nothing: values are immutable.
func (o *pathRecord) SetValueForKey(string, any) {}

// RemoveValueForKey does nothing.
func (o *pathRecord) RemoveValueForKey(string) {}

// Keys lists the fields' names.
func (o *pathRecord) Keys() []string { return o.record.Names() }

// index returns the position of a field, -1 for none.
func (o *pathRecord) index(f jp.Frag) int {
	key, ok := f.(jp.Child)
	if !ok {
		return -1
	}
	i := 0
	for name := range o.record.All() {
		if name == string(key) {
			return i
		}
		i++
	}
	return -1
}

// wrapValue converts a value to types that the path library can traverse.
func wrapValue(v any) any {
	switch v := v.(type) {
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = wrapValue(v[i])
		}
		return out
	case *value.Record:
		o := &pathRecord{record: v}
		for _, x := range v.All() {
			o.values = append(o.values, wrapValue(x))
		}
		return o
	case chat.Message:
		return wrapValue(value.AsRecord(v))
	case value.Date, value.DateTime, value.Time:
		return value.Text(v) // filters compare the ISO text
	}
	return v
}

// unwrap is the inverse of wrapValue.
func unwrap(v any) any {
	switch v := v.(type) {
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = unwrap(v[i])
		}
		return out
	case *pathRecord:
		return v.record
	}
	return v
}
