package loader

import (
	"reflect"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/spec"
)

// field is what the tags of a struct field say (package spec documents them).
type field struct {
	name       string
	index      []int  // as reflect.Value.FieldByIndex takes it
	required   bool   // the key must be there
	fallback   string // the default, as YAML text
	hasDefault bool   // the default is there, be it empty
	rule       string // the validator's rule on the value
	alias      string // an earlier name of the key, still accepted; empty for none
}

// plan is how a struct is decoded.
type plan struct {
	fields  []field
	byName  map[string]int
	names   []string          // the keys, in declaration order
	aliases map[string]string // earlier names of keys, to the keys of today
}

// planOf reads a struct's tags, embedded structs included, once for each decoder.
func (d *decoder) planOf(t reflect.Type) *plan {
	if p, made := d.plans[t]; made {
		return p
	}
	p := &plan{byName: map[string]int{}, aliases: map[string]string{}}
	p.collect(t, nil)
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

func (p *plan) collect(t reflect.Type, above []int) {
	for i := range t.NumField() {
		f := t.Field(i)
		index := append(slices.Clone(above), i)
		key, tagged := f.Tag.Lookup("yaml")
		switch {
		case f.Anonymous && !tagged && f.Type.Kind() == reflect.Struct:
			from := len(p.fields)
			p.collect(f.Type, index)
			p.adapt(from, f.Tag)
		case tagged && key != "-" && f.IsExported():
			fallback, hasDefault := f.Tag.Lookup("default")
			name, _, _ := strings.Cut(key, ",")
			p.fields = append(p.fields, field{
				name: name, index: index, fallback: fallback, hasDefault: hasDefault, rule: spec.ValidateTag(f), alias: f.Tag.Get("alias"),
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

// allowsUnknown tells whether unknown keys of a struct are only worth a warning: QType
// accepts them there (reference language.md 4).
func allowsUnknown(t reflect.Type) bool {
	switch t {
	case reflect.TypeFor[spec.CacheConfig](), reflect.TypeFor[spec.BatchConfig](), reflect.TypeFor[spec.ConcurrencyConfig]():
		return true
	}
	return false
}

// unionOf finds the union whose alternatives an interface type stands for.
func (d *decoder) unionOf(t reflect.Type) *spec.Union {
	for i := range d.unions {
		if d.unions[i].Type == t {
			return &d.unions[i]
		}
	}
	return nil
}

// tags lists the values of `type` that a union knows.
func tags(u *spec.Union) []string {
	names := make([]string, len(u.Cases))
	for i, c := range u.Cases {
		names[i] = c.Tag
	}
	return names
}
