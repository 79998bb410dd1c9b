package runtime

import (
	"reflect"

	"github.com/qtype-dev/qtype/internal/redact"
	"github.com/qtype-dev/qtype/spec"
)

// Redactor returns what replaces the secrets of the application: secrets of the document,
// of the variables with credentials of providers, and, as far as they were read, of the
// secret manager.
func (a *App) Redactor() *redact.Redactor { return a.opts.Redactor }

// knownSecrets returns the Redactor of an application. The loader has added the secrets of a
// document that it has read; those of another one are added here.
func knownSecrets(app *spec.Application, opts Options) *redact.Redactor {
	r := opts.Redactor
	if r == nil {
		r = redact.New()
		eachSecret(reflect.ValueOf(app), "", map[uintptr]bool{}, func(s spec.Secret, kind string) {
			switch kind {
			case "":
				r.Add(s.Reveal())
			case "url":
				r.AddAddress(s.Reveal())
			}
		})
	}
	names := []string{"AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"}
	for _, p := range opts.Parts.Language.Providers() {
		names = append(names, p.KeyEnv...)
	}
	for _, name := range names {
		r.Add(opts.DocumentEnv(name))
	}
	return r
}

// eachSecret calls found for each secret in a value of package spec. kind is the tag `secret`
// of the field. seen has the pointers
// that were followed: entities refer to each other.
func eachSecret(v reflect.Value, kind string, seen map[uintptr]bool, found func(s spec.Secret, kind string)) {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() || seen[v.Pointer()] {
			return
		}
		seen[v.Pointer()] = true
		eachSecret(v.Elem(), kind, seen, found)
	case reflect.Interface:
		eachSecret(v.Elem(), kind, seen, found)
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			eachSecret(v.Index(i), kind, seen, found)
		}
	case reflect.Map:
		for it := v.MapRange(); it.Next(); {
			if s, ok := it.Value().Interface().(spec.Secret); ok && kind == "named" && s.Literal() && !redact.NamesSecret(it.Key().String()) {
				continue // such as {accept: application/json}
			}
			eachSecret(it.Value(), kind, seen, found)
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[spec.Secret]() {
			found(v.Interface().(spec.Secret), kind)
			return
		}
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() {
				eachSecret(v.Field(i), f.Tag.Get("secret"), seen, found)
			}
		}
	}
}
