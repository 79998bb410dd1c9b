package runtime

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"hash"
	"reflect"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/spec"
)

// digest is a fingerprint of everything that decides what a step makes of its
// inputs: its own settings, and those of the models, tools, flows, types and
// variables that it names, and of what they name. It walks the structs of spec
// by their tags, so that a setting which is new in the language counts from its
// first day. What is not set does not count, so a key that the language gains
// changes nothing for documents without it. Secrets do not count either.
func (a *App) digest(s spec.Step) [sha256.Size]byte {
	d := &digester{app: a, hash: sha256.New(), seen: map[any]int{}}
	d.walk(reflect.ValueOf(s))
	return [sha256.Size]byte(d.hash.Sum(nil))
}

// indifferent tells of the keys that change how a result is come by, not what
// it is.
func indifferent(key string) bool {
	return slices.Contains([]string{
		"-", "auth", "batch_config", "budget", "cache_config", "concurrency_config", "feedback", "interface",
		"offline", "on_error", "prices", "rate_limit", "retry", "timeout",
	}, key)
}

type digester struct {
	app  *App
	hash hash.Hash
	seen map[any]int // entities that were begun, by their order: a cycle names the entity
}

// write adds texts; the quotes keep them apart.
func (d *digester) write(texts ...string) {
	for _, t := range texts {
		fmt.Fprintf(d.hash, "%q ", t)
	}
}

func (d *digester) walk(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() && !d.writeBackReference(v) {
			d.walk(v.Elem())
		}
	case reflect.Struct:
		d.structure(v)
	case reflect.Slice:
		fmt.Fprintf(d.hash, "[%d ", v.Len())
		for i := range v.Len() {
			d.walk(v.Index(i))
		}
	case reflect.Map:
		raw, err := json.Marshal(v.Interface()) // with its keys in order
		if err != nil {
			raw = []byte(fmt.Sprint(v.Interface()))
		}
		d.write(string(raw))
	default:
		d.write(fmt.Sprint(v.Interface()))
	}
}

// writeBackReference tells of a pointer to something that was said already, and says which.
func (d *digester) writeBackReference(v reflect.Value) bool {
	e, ok := v.Interface().(spec.Entity)
	if !ok || v.Kind() != reflect.Pointer {
		return false
	}
	if n, ok := d.seen[e]; ok {
		fmt.Fprintf(d.hash, "#%d ", n)
		return true
	}
	d.seen[e] = len(d.seen)
	switch e := e.(type) {
	case *spec.EmbeddingModel:
		d.writeProvider(e)
	case *spec.Model:
		d.writeProvider(e)
	case spec.Tool:
		if text := d.app.box.Source(e); text != "" {
			d.write("source", text)
		}
	}
	return false
}

// writeProvider says who really answers for a model: the server that the environment
// may name, or the mock that stands in for it.
func (d *digester) writeProvider(m spec.ModelEntity) {
	info, err := d.app.modelInfo(m)
	if err != nil { // then nothing will answer
		return
	}
	d.write(info.Provider, info.Name, info.Endpoint, info.StandsFor, fmt.Sprint(info.Mock))
}

func (d *digester) structure(v reflect.Value) {
	switch x := v.Interface().(type) {
	case spec.Secret:
		return
	case spec.Type:
		d.writeType(x)
		return
	case spec.Variable:
		d.write(x.ID)
		d.writeType(x.Type)
		return
	}
	if ref, ok := v.Addr().Interface().(spec.Reference); ok {
		d.reference(v, ref)
		return
	}
	if n, ok := v.Addr().Interface().(spec.Node); ok {
		d.write(spec.TypeName(n))
	}
	d.fields(v)
}

// fields says the fields of a struct, those of embedded ones among them.
func (d *digester) fields(v reflect.Value) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if !f.IsExported() {
			continue
		}
		if f.Anonymous {
			d.fields(v.Field(i))
			continue
		}
		key := f.Name
		if tag, ok := f.Tag.Lookup("yaml"); ok {
			key, _, _ = strings.Cut(tag, ",")
		}
		if indifferent(key) || v.Field(i).IsZero() {
			continue
		}
		d.write(key)
		d.walk(v.Field(i))
	}
}

// reference says what is referred to rather than how it is called.
func (d *digester) reference(v reflect.Value, ref spec.Reference) {
	if ref.Linked() {
		d.walk(v.FieldByName("To"))
		return
	}
	id, _ := ref.Target()
	d.write(id)
}

// writeType says a type with the properties of the custom types in it.
func (d *digester) writeType(t spec.Type) {
	d.write(t.String())
	for t.Elem != nil {
		t = *t.Elem
	}
	if t.Custom == nil {
		return
	}
	if _, ok := d.seen[t.Custom]; ok {
		return
	}
	d.seen[t.Custom] = len(d.seen)
	for _, p := range t.Custom.Properties {
		d.write(p.Name)
		d.writeType(p.Type)
	}
}
