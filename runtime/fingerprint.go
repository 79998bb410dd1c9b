package runtime

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/source"
)

// Fingerprints is what a flow is made of: for the flow itself and each step, model,
// memory, tool, type and other flow that it uses, a digest of its declaration,
// by names such as "step draft". Two flows with the same parts make the same of
// a row. What only changes how fast, how often or at what price that is done is
// not part of a digest, nor is a secret's text.
func Fingerprints(f *spec.Flow) map[string]string {
	p := &fingerprinter{digests: map[string]string{}}
	p.use(f)
	for len(p.todo) > 0 {
		e := p.todo[0]
		p.todo = p.todo[1:]
		var b strings.Builder
		p.fields(&b, reflect.ValueOf(e).Elem())
		sum := sha256.Sum256([]byte(b.String()))
		p.digests[entityLabel(e)] = hex.EncodeToString(sum[:8])
	}
	return p.digests
}

// ignoredKeys are the keys that do not change what is made of a row.
func ignoredKeys(key string) bool {
	return slices.Contains([]string{"description", "ui", "interface", "feedback", "concurrency_config", "cache_config",
		"timeout", "retry", "rate_limit", "fallbacks", "prices", "budget", "offline", "auth"}, key)
}

// fingerprinter walks what a flow is made of.
type fingerprinter struct {
	digests map[string]string
	todo    []spec.Entity
}

func entityLabel(e spec.Entity) string { return string(e.Kind()) + " " + e.EntityID() }

// use lists an entity for a digest of its own.
func (p *fingerprinter) use(e spec.Entity) {
	if e == nil || e.Kind() == spec.KindVariable {
		return
	}
	if _, known := p.digests[entityLabel(e)]; !known {
		p.digests[entityLabel(e)] = ""
		p.todo = append(p.todo, e)
	}
}

// fields writes a struct by the names of its fields.
func (p *fingerprinter) fields(b *strings.Builder, v reflect.Value) {
	fmt.Fprintf(b, "%s{", v.Type().Name())
	for i := range v.NumField() {
		f := v.Type().Field(i)
		key, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if !f.IsExported() || key == "-" || ignoredKeys(key) || f.Type == reflect.TypeFor[spec.Positioned]() {
			continue
		}
		fmt.Fprintf(b, "%s:", f.Name)
		p.value(b, v.Field(i))
		b.WriteByte(';')
	}
	b.WriteByte('}')
}

// value writes one value; entities are named and listed.
func (p *fingerprinter) value(b *strings.Builder, v reflect.Value) {
	if p.known(b, v) {
		return
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			b.WriteString("nil")
			return
		}
		if e, ok := v.Interface().(spec.Entity); ok && e.Kind() != spec.KindVariable {
			p.use(e)
			fmt.Fprintf(b, "%q", entityLabel(e))
			return
		}
		p.value(b, v.Elem())
	case reflect.Struct:
		p.fields(b, v)
	case reflect.Slice, reflect.Array:
		b.WriteByte('[')
		for i := range v.Len() {
			p.value(b, v.Index(i))
			b.WriteByte(',')
		}
		b.WriteByte(']')
	case reflect.Map:
		p.entries(b, v)
	default:
		fmt.Fprintf(b, "%q", fmt.Sprint(v.Interface()))
	}
}

// entries writes a map in the order of its keys.
func (p *fingerprinter) entries(b *strings.Builder, v reflect.Value) {
	keys := v.MapKeys()
	slices.SortFunc(keys, func(x, y reflect.Value) int { return strings.Compare(fmt.Sprint(x), fmt.Sprint(y)) })
	b.WriteByte('{')
	for _, k := range keys {
		fmt.Fprintf(b, "%q:", fmt.Sprint(k))
		p.value(b, v.MapIndex(k))
		b.WriteByte(';')
	}
	b.WriteByte('}')
}

// known writes the values that have a form of their own.
func (p *fingerprinter) known(b *strings.Builder, v reflect.Value) bool {
	switch x := v.Interface().(type) {
	case source.Span:
		return true
	case spec.Secret:
		if x.Ref != nil {
			fmt.Fprintf(b, "secret %q %q", x.Ref.SecretName, x.Ref.Key)
		}
		return true
	case spec.Type:
		b.WriteString(x.String())
		for t := &x; t != nil; t = t.Elem {
			if t.Custom != nil {
				p.use(t.Custom)
			}
		}
		return true
	case spec.Expression:
		fmt.Fprintf(b, "%q", x.Text)
		return true
	}
	if !v.CanAddr() {
		return false
	}
	ref, ok := v.Addr().Interface().(spec.Reference)
	if !ok {
		return false
	}
	id, _ := ref.Target()
	fmt.Fprintf(b, "%q", id)
	if e, ok := v.FieldByName("To").Interface().(spec.Entity); ok && ref.Linked() {
		p.use(e)
	}
	return true
}
