package runtime

import (
	"maps"
	"reflect"
	"slices"
	"sync"

	"github.com/qtype-dev/qtype/spec"
)

// knownSecrets are the texts of secrets.
type knownSecrets struct {
	once  sync.Once
	mu    sync.Mutex
	texts map[string]bool
}

func (k *knownSecrets) add(text string) {
	if text == "" {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.texts == nil {
		k.texts = map[string]bool{}
	}
	k.texts[text] = true
}

// Secrets returns the secrets of the document, those of its secret manager that were used
// so far, and EnvironmentSecrets, so that a caller can remove them from what it shows. The
// longest come first.
func (a *App) Secrets() []string {
	a.known.once.Do(func() {
		eachSecret(reflect.ValueOf(a.spec), map[uintptr]bool{}, func(s spec.Secret) { a.known.add(s.Reveal()) })
	})
	a.known.mu.Lock()
	all := slices.AppendSeq(EnvironmentSecrets(a.opts.Getenv), maps.Keys(a.known.texts))
	a.known.mu.Unlock()
	sortSecrets(all)
	return all
}

// eachSecret calls found for each secret in a value of package spec. seen has the pointers
// that were followed: entities refer to each other.
func eachSecret(v reflect.Value, seen map[uintptr]bool, found func(spec.Secret)) {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() || seen[v.Pointer()] {
			return
		}
		seen[v.Pointer()] = true
		eachSecret(v.Elem(), seen, found)
	case reflect.Interface:
		eachSecret(v.Elem(), seen, found)
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			eachSecret(v.Index(i), seen, found)
		}
	case reflect.Map:
		for it := v.MapRange(); it.Next(); {
			eachSecret(it.Value(), seen, found)
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[spec.Secret]() {
			found(v.Interface().(spec.Secret))
			return
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				eachSecret(v.Field(i), seen, found)
			}
		}
	}
}

// EnvironmentSecrets returns the values of the environment variables in which providers
// find credentials. The longest come first.
func EnvironmentSecrets(getenv func(string) string) []string {
	names := []string{"AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"}
	for _, p := range spec.Providers() {
		names = append(names, p.KeyEnv...)
	}
	var all []string
	for _, name := range names {
		if text := getenv(name); text != "" {
			all = append(all, text)
		}
	}
	sortSecrets(all)
	return all
}

// sortSecrets sorts longer texts first: one may contain another.
func sortSecrets(all []string) {
	slices.SortFunc(all, func(x, y string) int { return len(y) - len(x) })
}
