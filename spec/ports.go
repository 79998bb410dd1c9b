package spec

import (
	"reflect"
	"strings"
)

// BindingsOf are the bindings of a step: what it gives to the tool, flow or record that
// it invokes, and what it gets back; nil where its type has none.
func BindingsOf(s Step) (inputs, outputs *Bindings) {
	v := reflect.ValueOf(s).Elem()
	for i := range v.NumField() {
		if !v.Type().Field(i).IsExported() {
			continue
		}
		b, ok := v.Field(i).Addr().Interface().(*Bindings)
		switch {
		case !ok:
		case v.Type().Field(i).Tag.Get("binds") == "outputs":
			outputs = b
		default:
			inputs = b
		}
	}
	return inputs, outputs
}

// AcceptedAuth lists the types of auth that an entity can use, as the tag `accepts`
// of its field or of an embedded struct lists them. ok is false for an entity without the
// tag; an empty list means that an auth has no effect.
func AcceptedAuth(n Node) (types []string, ok bool) {
	t := reflect.TypeOf(n).Elem()
	for i := range t.NumField() {
		if tag, found := t.Field(i).Tag.Lookup("accepts"); found {
			return strings.Fields(tag), true
		}
	}
	return nil, false
}

// EmptyKeys lists the keys of a step that must not be empty, by the tag `nonempty`, and are.
func EmptyKeys(s Step) []string {
	var keys []string
	v := reflect.ValueOf(s).Elem()
	for i := range v.NumField() {
		if f := v.Type().Field(i); f.Tag.Get("nonempty") == "true" && v.Field(i).Len() == 0 {
			keys = append(keys, f.Tag.Get("yaml"))
		}
	}
	return keys
}
