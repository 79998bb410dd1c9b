package loader

import (
	"reflect"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/spec"
)

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
