package loader

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/qtype-dev/qtype/internal/redact"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/spec/source"
)

// decoder fills spec structs from the tree. It continues after an error: a value that
// cannot be decoded keeps its default or zero value.
//
// A text with an unset environment variable is kept as it is. Any other value with one
// is treated as absent without a diagnostic, because its value is not known.
type decoder struct {
	diags    *diagnostics
	plans    map[reflect.Type]*plan
	unions   []spec.Union
	language *spec.Language
	gaps     unknowns // what could not be decoded
	inTool   bool     // the value is part of a tool

	lookup   func(string) (string, bool)
	redactor *redact.Redactor // gets the secrets of the document; nil for none

	builders map[*source.File]*builder // what read the files of the document

	declared map[string]bool // the custom types that are declared
	hints    []typedHint     // diagnostics that apply if a type is declared
}

func newDecoder(f *loadState) *decoder {
	f.builders = map[*source.File]*builder{}
	return &decoder{diags: f.diags, lookup: f.lookup, redactor: f.redactor, builders: f.builders, plans: map[reflect.Type]*plan{}, language: f.language, declared: map[string]bool{}, unions: f.language.Unions()}
}

// target describes the destination of a value, for messages.
type target struct {
	owner string // the entity in messages: step "ask"
	name  string // the key
	item  int    // the position in a list, from 1; 0 for none

	isAddress bool // a secret only if it is an address with a password
	isNamed   bool // a secret only if its key names one, or it is from the environment
}

// String names the target as the subject of a sentence.
func (s target) String() string {
	if s.item > 0 {
		return fmt.Sprintf("item %d of %q", s.item, s.name)
	}
	return strconv.Quote(s.name)
}

// entry returns the target for the value of a key in a mapping.
func (s target) entry(key *node) target {
	return target{owner: s.owner, name: s.name + "." + key.shown()}
}

// title names the value of the target, if it has no other name.
func (s target) title() string {
	if s.item > 0 {
		return s.String()
	}
	return s.name
}

// isMapping reports whether n is a mapping. If it is another value, a diagnostic with
// what is expected is added.
func (d *decoder) isMapping(n *node, at target, expected string) bool {
	if n.kind == mapping {
		return true
	}
	if !n.unset {
		d.diags.add(d.wrongKind(n, at, expected))
	}
	return false
}

// wrongKind returns the diagnostic for a value of the wrong kind.
func (d *decoder) wrongKind(n *node, at target, want string) diag.Diagnostic {
	hideNamed(n)
	n.markInvalid()
	return ruleKind.At(n.head(), "%s needs %s, not %s", at, want, n.describe())
}

// describe returns a value as messages name it: a number 42, the text "many", a list.
func (n *node) describe() string {
	const maxShown = 40
	switch n.kind {
	case boolean, integer, float, text:
		shown := n.shown()
		if len([]rune(shown)) > maxShown {
			shown = string([]rune(shown)[:maxShown]) + "…"
		}
		switch {
		case n.date:
			return fmt.Sprintf("a date (%s)", shown)
		case n.kind == text:
			return fmt.Sprintf("the text %q", shown)
		}
		return fmt.Sprintf("%s (%s)", n.kind.noun(), shown)
	}
	return n.kind.noun()
}

// decode decodes n into v, which is settable and holds its default.
func (d *decoder) decode(n *node, v reflect.Value, at target) {
	if n.unset && v.Kind() != reflect.String {
		n.markInvalid()
	}
	if n.kind != broken {
		d.decodeKnown(n, v, at)
	}
	if n.unread || n.kind == broken {
		d.markLost(v)
	}
}

// decodeKnown decodes a value that could be read.
func (d *decoder) decodeKnown(n *node, v reflect.Value, at target) {
	if d.decodeSpecial(n, v, at) {
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		d.decodePointer(n, v, at)
	case reflect.Interface:
		d.decodeUnion(n, v, at)
	case reflect.Struct:
		d.decodeStruct(n, v, at.title())
	case reflect.Slice:
		d.decodeList(n, v, at)
	case reflect.Map:
		d.decodeMap(n, v, at)
	default:
		d.decodeScalar(n, v, at)
	}
}

// decodePointer creates what v points to; v stays nil if that fails.
func (d *decoder) decodePointer(n *node, v reflect.Value, at target) {
	to := reflect.New(v.Type().Elem())
	before := d.diags.raised
	switch document, isDocument := to.Interface().(*spec.Document); {
	case isDocument:
		d.decodeDocument(n, document)
	case n.unset:
		return
	case to.Elem().Kind() != reflect.Struct:
		d.decode(n, to.Elem(), at)
		if d.diags.raised > before {
			return
		}
	case n.kind != mapping:
		d.diags.add(d.wrongKind(n, at, "a mapping").WithHint("%s", d.typeOfHint(n, to.Elem().Type())))
		return
	default:
		d.decodeStruct(n, to.Elem(), at.title())
	}
	v.Set(to)
}

// hasScalarItems reports whether the items of a list are single words.
func hasScalarItems(item reflect.Type) bool {
	return item.Kind() == reflect.String || item.Kind() == reflect.Struct && reflect.PointerTo(item).Implements(reflect.TypeFor[spec.Reference]())
}

func (d *decoder) decodeList(n *node, v reflect.Value, at target) {
	if n.kind != sequence {
		if n.unset {
			return
		}
		found := d.wrongKind(n, at, "a list")
		if n.kind == text || n.kind == mapping {
			found = found.WithHint("%s", listHint(n, v.Type().Elem()))
		}
		if n.kind == text && hasScalarItems(v.Type().Elem()) {
			found = found.WithBrackets(n.shown())
		}
		d.diags.add(found)
		return
	}
	list := reflect.MakeSlice(v.Type(), 0, len(n.items))
	for i, item := range n.items {
		if item.kind == broken {
			d.gaps.add(d, v.Type().Elem())
			continue
		}
		at.item = i + 1
		v := reflect.New(v.Type().Elem()).Elem()
		if item.kind == null && v.Type() != reflect.TypeFor[*spec.Document]() {
			item.markInvalid()
			d.gaps.add(d, v.Type())
			d.diags.add(ruleKind.At(item.span, "%s is empty", at))
			continue
		}
		d.decode(item, v, at)
		if k := v.Kind(); (k == reflect.Pointer || k == reflect.Interface) && v.IsNil() {
			continue // not decoded; lists contain no nil
		}
		list = reflect.Append(list, v)
	}
	v.Set(list)
}

// decodeMap decodes mappings with free keys, such as args and headers.
func (d *decoder) decodeMap(n *node, v reflect.Value, at target) {
	if n.kind != mapping && v.Type().Elem() == reflect.TypeFor[spec.Secret]() {
		hideAll(n)
	}
	if !d.isMapping(n, at, "a mapping") {
		return
	}
	hideNamed(n)
	m := reflect.MakeMapWithSize(v.Type(), len(n.pairs))
	elem := v.Type().Elem()
	for _, p := range n.pairs {
		value := reflect.New(elem).Elem()
		if elem.Kind() == reflect.Interface {
			if made := d.decodeAny(p.value); made != nil {
				value.Set(reflect.ValueOf(made))
			}
		} else if plain := at.isNamed && p.value.kind == text && !p.value.raw && !strings.Contains(p.value.source, "${") && !redact.NamesSecret(p.key.text); plain {
			value.Set(reflect.ValueOf(spec.NewLiteralSecret(p.value.text)))
		} else {
			d.decode(p.value, value, at.entry(p.key))
		}
		m.SetMapIndex(reflect.ValueOf(p.key.text), value)
	}
	v.Set(m)
}

// decodeAny converts a value that may have any type, and reports numbers that JSON does not have.
func (d *decoder) decodeAny(n *node) any {
	d.checkFinite(n)
	return n.toAny()
}

// checkFinite reports the numbers of a value that are not finite.
func (d *decoder) checkFinite(n *node) {
	switch n.kind {
	case integer, float:
		if f, _ := n.toFloat(); !n.unset && !isFinite(f) {
			d.reportNotFinite(n, "a number")
		}
	case sequence:
		for _, item := range n.items {
			d.checkFinite(item)
		}
	case mapping:
		for _, p := range n.pairs {
			d.checkFinite(p.value)
		}
	}
}

// reportNotFinite reports .nan, .inf or a number beyond the range of floats. No key has a use for
// them: a comparison with .nan is never true, so that a limit would have no effect.
func (d *decoder) reportNotFinite(n *node, subject string) {
	hideNamed(n)
	n.markInvalid()
	d.diags.add(ruleRange.At(n.span, "%s must be finite, not %s", subject, n.shown()))
}

func isFinite(f float64) bool { return !math.IsNaN(f) && !math.IsInf(f, 0) }

// decodeScalar decodes texts, numbers and booleans.
func (d *decoder) decodeScalar(n *node, v reflect.Value, at target) {
	if n.unset && v.Kind() != reflect.String {
		return
	}
	want, ok := "", false
	switch v.Kind() {
	case reflect.String:
		d.decodeText(n, at, func(s string) { v.SetString(s) })
		return
	case reflect.Int:
		var i int64
		want = "a whole number"
		if i, ok = n.toInt(); ok {
			v.SetInt(i)
		} else if n.kind == integer {
			hideNamed(n)
			n.markInvalid()
			d.diags.add(ruleKind.At(n.span, "%s is too large: %s", at, n.shown()))
			return
		}
	case reflect.Float64:
		var f float64
		want = "a number"
		if f, ok = n.toFloat(); ok && isFinite(f) {
			v.SetFloat(f)
		} else if ok {
			d.reportNotFinite(n, at.String())
			return
		}
	case reflect.Bool:
		var b bool
		want = "true or false"
		if b, ok = n.toBool(); ok {
			v.SetBool(b)
		}
	}
	if !ok {
		d.diags.add(d.wrongKind(n, at, want).WithHint("%s", numberHint(n)))
	}
}

// decodeText decodes a text. For a value that YAML reads as another type it suggests quotes.
func (d *decoder) decodeText(n *node, at target, set func(string)) {
	switch {
	case n.kind == text && !n.date:
		set(n.text)
	case n.isBare() && n.tag != "":
		d.diags.add(d.wrongKind(n, at, "a text").WithHint("write %s instead, without the tag %s", strconv.Quote(n.shown()), n.tag))
	case n.isBare():
		found := d.wrongKind(n, at, "a text")
		found.Hint = "put it in quotes: " + strconv.Quote(n.shown())
		found.Suggestion = strconv.Quote(n.shown())
		found = found.WithQuotes(n.shown())
		d.diags.add(found)
	case n.kind == mapping && n.unread:
		n.markInvalid() // the key was reported: {{ name }}
	default:
		d.diags.add(d.wrongKind(n, at, "a text").WithHint("%s", bracketHint(n)))
	}
}

// field holds the tags of a struct field, which package spec documents.
type field struct {
	name       string
	index      []int  // for reflect.Value.FieldByIndex
	required   bool   // the key is required
	fallback   string // the default, as YAML text
	hasDefault bool   // there is a default, possibly empty
	rule       string // the validator rule of the value
	isAddress  bool   // a secret only if it is an address with a password
	isNamed    bool   // secrets only if their keys name one, or they are from the environment
	takesNull  bool   // null is the same as no key
	typed      bool   // values of environment variables become numbers and booleans by their keys
	alias      string // an earlier name of the key, still accepted; empty for none
}

// plan is how a struct is decoded.
type plan struct {
	fields  []field
	byName  map[string]int
	names   []string          // the keys, in declaration order
	aliases map[string]string // current keys by their earlier names
}

// planOf returns the plan of a struct, embedded structs included; it is computed once for each decoder.
func (d *decoder) planOf(t reflect.Type) *plan {
	if p, made := d.plans[t]; made {
		return p
	}
	p := &plan{byName: map[string]int{}, aliases: map[string]string{}}
	d.collect(p, t, nil)
	for i, f := range p.fields {
		p.byName[f.name] = i
		p.names = append(p.names, f.name)
		if f.alias != "" {
			p.aliases[f.alias] = f.name
		}
	}
	d.plans[t] = p
	return p
}

// collect adds the fields of a struct to its plan.
func (d *decoder) collect(p *plan, t reflect.Type, above []int) {
	for i := range t.NumField() {
		f := t.Field(i)
		index := append(slices.Clone(above), i)
		key, tagged := f.Tag.Lookup("yaml")
		switch {
		case f.Anonymous && !tagged && f.Type.Kind() == reflect.Struct:
			from := len(p.fields)
			d.collect(p, f.Type, index)
			p.adapt(from, f.Tag)
		case tagged && key != "-" && f.IsExported():
			fallback, hasDefault := f.Tag.Lookup("default")
			name, _, _ := strings.Cut(key, ",")
			p.fields = append(p.fields, field{
				name: name, index: index, fallback: fallback, hasDefault: hasDefault, takesNull: spec.TakesNull(f), rule: d.language.ValidateTag(f), alias: f.Tag.Get("alias"), isAddress: f.Tag.Get("secret") == "url", isNamed: f.Tag.Get("secret") == "named", typed: f.Tag.Get("variables") == "typed",
				required: slices.Contains(strings.Split(f.Tag.Get("jsonschema"), ","), "required"),
			})
		}
	}
}

// adapt applies the tags of an embedded struct to its fields, those from an index on.
func (p *plan) adapt(from int, tag reflect.StructTag) {
	without, optional := keyList(tag.Get("without")), keyList(tag.Get("optional"))
	kept := p.fields[:from]
	for _, f := range p.fields[from:] {
		if slices.Contains(without, f.name) {
			continue
		}
		f.required = f.required && !slices.Contains(optional, f.name)
		kept = append(kept, f)
	}
	p.fields = kept
}

func keyList(tag string) []string { return strings.Split(tag, ",") }

// allowsUnknown reports whether unknown keys of a struct are only a warning, because
// QType accepts them there.
func allowsUnknown(t reflect.Type) bool {
	switch t {
	case reflect.TypeFor[spec.CacheConfig](), reflect.TypeFor[spec.BatchConfig](), reflect.TypeFor[spec.ConcurrencyConfig]():
		return true
	}
	return false
}

// tags lists the values of `type` of a union.
func tags(u *spec.Union) []string {
	names := make([]string, len(u.Cases))
	for i, c := range u.Cases {
		names[i] = c.Tag
	}
	return names
}
