package schema

import (
	"reflect"

	"github.com/qtype-dev/qtype/spec"
)

// Feedback returns the configuration of the flow's feedback: its type and the keys of its
// declaration; nil for none.
func (f *Flow) Feedback() map[string]any {
	if f.Spec.Feedback == nil {
		return nil
	}
	out := map[string]any{"type": spec.TypeName(f.Spec.Feedback)}
	addKeys(out, reflect.ValueOf(f.Spec.Feedback).Elem())
	return out
}

// addKeys adds the fields of a struct under their keys in a document.
func addKeys(out map[string]any, v reflect.Value) {
	for i := range v.NumField() {
		field := v.Type().Field(i)
		key := field.Tag.Get("yaml")
		switch {
		case !field.IsExported():
		case field.Anonymous && field.Type.Kind() == reflect.Struct:
			addKeys(out, v.Field(i))
		case key != "":
			out[key] = v.Field(i).Interface()
		}
	}
}
