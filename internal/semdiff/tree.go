package semdiff

import (
	"cmp"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/source"
)

// shape is the kind of a tree.
type shape int

const (
	absent shape = iota // no value and no default
	stringValue
	number
	scalar // boolean, null
	list
	record
)

// tree is a normalized value: defaults are filled in, keys sorted, and references
// replaced by the new ids of their targets.
type tree struct {
	shape  shape
	text   string // the normalized text of a scalar
	number float64
	secret bool // must not be shown
	// The environment variables in a scalar, as written: ${NAME:-default}.
	variables []string
	parts     []part      // items of a list, entries of a record
	span      source.Span // of the value; of the entity if the document does not contain it
}

// part is an item of a list or an entry of a record.
type part struct {
	key  string // empty for an item
	tree *tree
}

// get returns the tree of a key, or an absent one.
func (t *tree) get(key string) *tree {
	for _, p := range t.parts {
		if p.key == key {
			return p.tree
		}
	}
	return &tree{span: t.span}
}

// equal reports whether two trees have the same meaning.
func (t *tree) equal(u *tree) bool {
	if len(t.variables) > 0 && len(u.variables) > 0 && !slices.Equal(t.variables, u.variables) {
		return false // the same value here, but not everywhere
	}
	return t.shape == u.shape && t.text == u.text && slices.EqualFunc(t.parts, u.parts, func(a, b part) bool {
		return a.key == b.key && a.tree.equal(b.tree)
	})
}

// variablePattern matches an environment variable in a text.
var variablePattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\$\{[^}]*\}`) })

// variablesIn returns the environment variables in a scalar of the document.
func variablesIn(place *spec.Position) []string {
	if len(place.Parts) > 0 {
		return nil
	}
	return variablePattern().FindAllString(textAt(place.Span()), -1)
}

// digest returns a text that is the same for equal trees.
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

// reader converts structs of package spec to trees.
type reader struct {
	renamed       map[spec.Entity]string // the new ids of entities of the old document
	variableNames map[string]string      // the new names of variables, for the texts of the current step
}

// readEntity reads an entity without the given keys.
func (r *reader) readEntity(e spec.Entity, without ...string) *tree {
	t := r.readValue(reflect.ValueOf(e), e.Position())
	t.parts = slices.DeleteFunc(t.parts, func(p part) bool { return slices.Contains(without, p.key) })
	return t
}

// readValue reads any value; place is its position.
func (r *reader) readValue(v reflect.Value, place *spec.Position) *tree {
	if t := r.readSpecial(v, place); t != nil {
		return t
	}
	t := &tree{span: place.Span()}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		return r.readInner(v, place)
	case reflect.Struct:
		t.shape = record
		r.readFields(t, v, place, "")
		t.sort()
	case reflect.Map:
		for _, k := range v.MapKeys() {
			entry := r.readValue(v.MapIndex(k), place.Field(k.String()))
			entry.variables = variablesIn(place.Field(k.String()))
			t.put(k.String(), entry)
		}
		t.sort()
	case reflect.Slice:
		for i := range v.Len() {
			t.put("", r.readValue(v.Index(i), place.Index(i)))
		}
	case reflect.String:
		t.shape, t.text = stringValue, v.String()
	case reflect.Int, reflect.Int64:
		t.setNumber(float64(v.Int()), strconv.FormatInt(v.Int(), 10))
	case reflect.Uint64:
		t.setNumber(float64(v.Uint()), strconv.FormatUint(v.Uint(), 10))
	case reflect.Float64:
		t.setNumber(v.Float(), textfmt.Number(v.Float()))
	case reflect.Bool:
		t.shape, t.text = scalar, strconv.FormatBool(v.Bool())
	}
	return t
}

// readInner reads the target of a pointer or interface, and the `type` of a union.
func (r *reader) readInner(v reflect.Value, place *spec.Position) *tree {
	if v.IsNil() {
		return &tree{span: place.Span()}
	}
	node, isNode := v.Interface().(spec.Node)
	if isNode && node.Position() != nil {
		place = node.Position()
	}
	t := r.readValue(v.Elem(), place)
	if name := typeName(node); name != "" && v.Kind() == reflect.Pointer {
		t.put("type", &tree{shape: stringValue, text: name, span: place.Field("type").Span()})
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

// readSpecial reads the types of package spec with their own notation; nil for
// others.
func (r *reader) readSpecial(v reflect.Value, place *spec.Position) *tree {
	if !v.CanInterface() {
		return nil
	}
	t := &tree{shape: stringValue, span: place.Span()}
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
			t.put(b.Name, r.readValue(reflect.ValueOf(b.Var), place.Field(b.Name)))
		}
	case spec.Assignments:
		for _, a := range x {
			t.put(r.refText(reflect.ValueOf(a.Var)), r.readValue(reflect.ValueOf(a.Expr), place.Field(a.Var.ID)))
		}
	case spec.Properties:
		for _, p := range x {
			t.put(p.Name, r.readValue(reflect.ValueOf(p.Type), place.Field(p.Name)))
		}
	default:
		if !isReference(v) {
			return nil
		}
		t.text = r.refText(v)
	}
	if t.shape == stringValue && t.text == "" {
		t.shape = absent
	}
	t.sort()
	return t
}

// secretText distinguishes secrets; it is never shown.
func secretText(s spec.Secret) string {
	if s.Ref != nil {
		return "secret " + s.Ref.SecretName + " " + s.Ref.Key
	}
	return s.Reveal()
}

// isReference reports whether v is a spec.Ref.
func isReference(v reflect.Value) bool {
	return v.Kind() == reflect.Struct && reflect.PointerTo(v.Type()).Implements(reflect.TypeFor[spec.Reference]())
}

// refText returns the new id of the target of a reference.
func (r *reader) refText(v reflect.Value) string {
	if e, ok := v.FieldByName("To").Interface().(spec.Entity); ok && !reflect.ValueOf(e).IsNil() {
		return r.idOf(e)
	}
	return v.FieldByName("ID").String()
}

// idOf returns the id of an entity in the new document.
func (r *reader) idOf(e spec.Entity) string {
	if id, ok := r.renamed[e]; ok {
		return id
	}
	return e.EntityID()
}

// typeText returns a type expression with the new names of custom types.
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

// readFields reads the fields of a struct. Those of embedded structs are keys of
// it, except the keys listed in without.
func (r *reader) readFields(t *tree, v reflect.Value, place *spec.Position, without string) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if f.Anonymous && f.Type.Kind() == reflect.Struct {
			r.readFields(t, v.Field(i), place, f.Tag.Get("without"))
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
		part := r.readValue(v.Field(i), place.Field(key))
		_, hasDefault := f.Tag.Lookup("default")
		if !hasDefault && v.Field(i).IsZero() {
			part = &tree{span: part.span}
		}
		if part.shape == stringValue {
			part.text = r.renameInText(part.text, namesInSyntax(f.Tag.Get("syntax")))
		}
		if f.Tag.Get("case") == "ignored" {
			part.text = strings.ToUpper(part.text)
		}
		if written, ok := place.Lookup(key); ok {
			part.variables = variablesIn(written)
		}
		t.put(key, part)
	}
}

// put adds a part, unless it is the absent value of a key.
func (t *tree) put(key string, p *tree) {
	if t.shape = list; key != "" {
		t.shape = record
	}
	if p.shape != absent || key == "" || len(p.variables) > 0 {
		t.parts = append(t.parts, part{key, p})
	}
}

// sort sorts the keys of a record.
func (t *tree) sort() {
	if t.shape == record {
		slices.SortStableFunc(t.parts, func(a, b part) int { return cmp.Compare(a.key, b.key) })
	}
}

func (t *tree) setNumber(n float64, form string) { t.shape, t.number, t.text = number, n, form }
