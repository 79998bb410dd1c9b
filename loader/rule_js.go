package loader

import "reflect"

// fitsRule reports whether a value fits the rule of a tag `validate`.
func fitsRule(v reflect.Value, rule string) bool { return satisfies(v, rule) }
