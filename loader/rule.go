//go:build !js

package loader

import (
	"reflect"
	"sync"

	"github.com/go-playground/validator/v10"
)

var rules = sync.OnceValue(func() *validator.Validate { return validator.New() })

// fitsRule reports whether a value fits the rule of a tag `validate`.
func fitsRule(v reflect.Value, rule string) bool { return rules().Var(v.Interface(), rule) == nil }
