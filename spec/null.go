package spec

import (
	"reflect"
	"slices"
	"strings"
)

// TakesNull reports whether null in the place of a field's value is the same as no key. A required key and
// one with a default need a value, except where the struct can tell null from the default.
func TakesNull(f reflect.StructField) bool {
	switch f.Type {
	case reflect.TypeFor[*BatchConfig](), reflect.TypeFor[*ConcurrencyConfig](): // as in QType (Python)
		return false
	}
	if f.Type.Kind() == reflect.Pointer {
		return true
	}
	_, hasDefault := f.Tag.Lookup("default")
	return !hasDefault && !slices.Contains(strings.Split(f.Tag.Get("jsonschema"), ","), "required")
}
