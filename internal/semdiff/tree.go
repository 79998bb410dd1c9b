package semdiff

import (
	"cmp"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/source"
)

// shape is what a tree is.
type shape int

const (
	absent shape = iota // nothing is said, and there is no default
	text
	number
	other // boolean, null
	list
	record
)

// tree is a value as the document means it: defaults filled in, keys in
// alphabetical order, references by the new ids of what they name.
type tree struct {
	shape  shape
	text   string      // a scalar's one form
	number float64     // a number's value
	secret bool        // it must not be shown
	parts  []part      // the items of a list, the keys of a record
	span   source.Span // where it stands; the place of what it belongs to where it is not written
}

// part is an item of a list or a key of a record.
type part struct {
	key  string // empty for an item
	tree *tree
}

// find is the tree of a key, absent where there is none.
func (t *tree) find(key string) *tree {
	for _, p := range t.parts {
		if p.key == key {
			return p.tree
		}
	}
	return &tree{span: t.span}
}

// same tells whether two trees mean the same.
func (t *tree) same(u *tree) bool {
	return t.shape == u.shape && t.text == u.text && slices.EqualFunc(t.parts, u.parts, func(a, b part) bool {
		return a.key == b.key && a.tree.same(b.tree)
	})
}

// digest is a text that two trees share when they mean the same.
func (t *tree) digest() string {
	var b strings.Builder
	t.write(&b)
	return b.String()
}

func (t *tree) write(b *strings.Builder) {
	fmt.Fprintf(b, "%d%q", t.shape, t.text)
	for _, p := range t.parts {
		fmt.Fprintf(b, "(%q", p.key)
		p.tree.write(b)
		b.WriteByte(')')
	}
}

// reader makes trees of the structs of package spec.
type reader struct {
	renamed map[spec.Entity]string // the new ids of things of the old document
	words   map[string]string      // the new names of variables, in texts that name them; for one step at a time
}

// entity reads an entity without the keys that are compared apart.
func (r *reader) entity(e spec.Entity, without ...string) *tree {
	t := r.value(reflect.ValueOf(e), e.Place())
	t.parts = slices.DeleteFunc(t.parts, func(p part) bool { return slices.Contains(without, p.key) })
	return t
}

// value reads any value; place is where it stands.
func (r *reader) value(v reflect.Value, place *spec.Position) *tree {
	if t := r.special(v, place); t != nil {
		return t
	}
	t := &tree{span: place.Span()}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		return r.inner(v, place)
	case reflect.Struct:
		t.shape = record
		r.fields(t, v, place, "")
		t.sort()
	case reflect.Map:
		for _, k := range v.MapKeys() {
			t.put(k.String(), r.value(v.MapIndex(k), place.Field(k.String())))
		}
		t.sort()
	case reflect.Slice:
		for i := range v.Len() {
			t.put("", r.value(v.Index(i), place.Index(i)))
		}
	case reflect.String:
		t.shape, t.text = text, v.String()
	case reflect.Int, reflect.Int64:
		t.setNumber(float64(v.Int()), strconv.FormatInt(v.Int(), 10))
	case reflect.Uint64:
		t.setNumber(float64(v.Uint()), strconv.FormatUint(v.Uint(), 10))
	case reflect.Float64:
		t.setNumber(v.Float(), formatFloat(v.Float()))
	case reflect.Bool:
		t.shape, t.text = other, strconv.FormatBool(v.Bool())
	}
	return t
}

// inner reads what a pointer or an interface holds, and the type that chooses it of a union.
func (r *reader) inner(v reflect.Value, place *spec.Position) *tree {
	if v.IsNil() {
		return &tree{span: place.Span()}
	}
	node, isNode := v.Interface().(spec.Node)
	if isNode && node.Place() != nil {
		place = node.Place()
	}
	t := r.value(v.Elem(), place)
	if name := typeName(node); name != "" && v.Kind() == reflect.Pointer {
		t.put("type", &tree{shape: text, text: name, span: place.Field("type").Span()})
		t.sort()
	}
	return t
}

func typeName(n spec.Node) string {
	if n == nil {
		return ""
	}
	return spec.TypeName(n)
}

// special reads the types of package spec that are written in a way of their
// own; nil for all others.
func (r *reader) special(v reflect.Value, place *spec.Position) *tree {
	if !v.CanInterface() {
		return nil
	}
	t := &tree{shape: text, span: place.Span()}
	switch x := v.Interface().(type) {
	case spec.Secret:
		t.text, t.secret = secretText(x), true
	case spec.Type:
		t.text = r.typeText(x)
	case spec.Duration:
		t.setNumber(float64(x), time.Duration(x).String())
	case spec.Expression:
		t.text = r.renameInText(x.Text, inExpression())
	case spec.Bindings:
		for _, b := range x {
			t.put(b.Name, r.value(reflect.ValueOf(b.Var), place.Field(b.Name)))
		}
	case spec.Assignments:
		for _, a := range x {
			t.put(r.refText(reflect.ValueOf(a.Var)), r.value(reflect.ValueOf(a.Expr), place.Field(a.Var.ID)))
		}
	case spec.Properties:
		for _, p := range x {
			t.put(p.Name, r.value(reflect.ValueOf(p.Type), place.Field(p.Name)))
		}
	default:
		if !isReference(v) {
			return nil
		}
		t.text = r.refText(v)
	}
	if t.shape == text && t.text == "" {
		t.shape = absent
	}
	t.sort()
	return t
}

// secretText tells two secrets apart; it is never shown.
func secretText(s spec.Secret) string {
	if s.Ref != nil {
		return "secret " + s.Ref.SecretName + " " + s.Ref.Key
	}
	return s.Reveal()
}

// isReference tells whether v is a Ref.
func isReference(v reflect.Value) bool {
	return v.Kind() == reflect.Struct && reflect.PointerTo(v.Type()).Implements(reflect.TypeFor[spec.Reference]())
}

// refText is the new id of what a reference names.
func (r *reader) refText(v reflect.Value) string {
	if e, ok := v.FieldByName("To").Interface().(spec.Entity); ok && !reflect.ValueOf(e).IsNil() {
		return r.idOf(e)
	}
	return v.FieldByName("ID").String()
}

// idOf is an entity's id in the new document.
func (r *reader) idOf(e spec.Entity) string {
	if id, ok := r.renamed[e]; ok {
		return id
	}
	return e.EntityID()
}

// typeText is a type expression with the new names of custom types.
func (r *reader) typeText(t spec.Type) string {
	if t.Elem != nil {
		elem := *t.Elem
		elem.Name, elem.Elem = r.typeText(elem), nil
		elem.Optional = false
		t.Elem = &elem
	} else if t.Custom != nil {
		t.Name = r.idOf(t.Custom)
	}
	return t.String()
}

// fields reads the fields of a struct. Embedded structs lend theirs; without
// lists keys that they lend not.
func (r *reader) fields(t *tree, v reflect.Value, place *spec.Position, without string) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if f.Anonymous && f.Type.Kind() == reflect.Struct {
			r.fields(t, v.Field(i), place, f.Tag.Get("without"))
			continue
		}
		key, tagged := f.Tag.Lookup("yaml")
		switch {
		case !f.IsExported() || key == "-" || f.Type == reflect.TypeFor[source.Span]():
			continue
		case slices.Contains(strings.Split(without, ","), key):
			continue
		case !tagged:
			key = strings.ToLower(f.Name)
		}
		part := r.value(v.Field(i), place.Field(key))
		_, hasDefault := f.Tag.Lookup("default")
		if !hasDefault && v.Field(i).IsZero() {
			part = &tree{span: part.span}
		}
		if part.shape == text {
			part.text = r.renameInText(part.text, namesInSyntax(f.Tag.Get("syntax")))
		}
		t.put(key, part)
	}
}

// put adds a part; one that says nothing leaves the tree as it is.
func (t *tree) put(key string, p *tree) {
	if t.shape = list; key != "" {
		t.shape = record
	}
	if p.shape != absent || key == "" {
		t.parts = append(t.parts, part{key, p})
	}
}

// sort puts keys in order; lists stay as they are.
func (t *tree) sort() {
	if t.shape == record {
		slices.SortStableFunc(t.parts, func(a, b part) int { return cmp.Compare(a.key, b.key) })
	}
}

func (t *tree) setNumber(n float64, form string) { t.shape, t.number, t.text = number, n, form }

// formatFloat writes 1.0 as 1: whether a number is whole is no difference.
func formatFloat(f float64) string {
	if f == math.Trunc(f) && math.Abs(f) < 1<<53 {
		return strconv.FormatInt(int64(f), 10)
	}
	return strconv.FormatFloat(f, 'g', -1, 64)
}
