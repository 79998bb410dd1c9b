package spec

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Language is what documents can say: the declarations of this package, and those that a program
// adds for parts of its own. The zero value and nil add nothing. A program adds declarations before
// it reads a document; after that the language may be used concurrently.
type Language struct {
	stores    []StoreType
	providers []Provider
	cases     map[reflect.Type][]Case // alternatives of unions, by the interface of the union
}

// StoreType declares a value of the key `type` of stores.
type StoreType struct {
	Name    string   // the value
	Doc     string   // what it is, as a phrase for the manual and the editor
	Schemes []string // of its addresses, the preferred one first; that of an added type is its name
}

// Clone returns a copy, to which declarations can be added.
func (l *Language) Clone() *Language {
	if l == nil {
		return new(Language)
	}
	return &Language{stores: slices.Clone(l.stores), providers: slices.Clone(l.providers), cases: maps.Clone(l.cases)}
}

type languageKey struct{}

// WithLanguage returns a context in which documents are read in a language.
func WithLanguage(ctx context.Context, l *Language) context.Context {
	return context.WithValue(ctx, languageKey{}, l)
}

// LanguageOf returns the language of a context; nil, which adds nothing, if it has none.
func LanguageOf(ctx context.Context) *Language {
	l, _ := ctx.Value(languageKey{}).(*Language)
	return l
}

// AddStore adds a type of stores. Its addresses have its name as their scheme.
func (l *Language) AddStore(t StoreType) error {
	if err := checkName(t.Name); err != nil {
		return fmt.Errorf("store type %w", err)
	}
	if other, found := l.StoreAt(t.Name); found {
		return fmt.Errorf("store type %q: the store type %s has the name or the scheme already", t.Name, other.Name)
	}
	t.Schemes = []string{t.Name}
	l.stores = append(l.stores, t)
	return nil
}

// AddProvider adds a model provider, which is called over the network: its row has a BaseURL.
func (l *Language) AddProvider(p Provider) error {
	if err := checkName(p.Name); err != nil {
		return fmt.Errorf("provider %w", err)
	}
	if _, found := l.Provider(p.Name); found {
		return fmt.Errorf("provider %q: there is a provider of the name already", p.Name)
	}
	if p.BaseURL == "" {
		return fmt.Errorf("provider %q: the row has no BaseURL", p.Name)
	}
	p.Client = NativeClient
	l.providers = append(l.providers, p)
	return nil
}

// AddCase adds an alternative of a union: U is Step or Tool, and made makes an empty struct. The name of the struct is the value
// of the key `type`. The tag `doc` has its description, at the embedded base, and those of its keys.
func AddCase[U Node](l *Language, made func() U) error {
	union, t := reflect.TypeFor[U](), reflect.TypeOf(made())
	tag := t.Elem().Name()
	for _, u := range l.Unions() {
		if slices.ContainsFunc(u.Cases, func(c Case) bool { return c.Tag == tag }) {
			return fmt.Errorf("type %q: there is a %s of the type already", tag, u.Name)
		}
	}
	if err := checkPart(made()); err != nil {
		return fmt.Errorf("type %q: %w", tag, err)
	}
	added := append(slices.Clone(l.cases[union]), Case{Tag: tag, New: func() Node { return made() }})
	if l.cases = maps.Clone(l.cases); l.cases == nil {
		l.cases = map[reflect.Type][]Case{}
	}
	l.cases[union] = added
	return nil
}

// checkDocs returns an error for a key of a struct without a description, or a struct without one.
func checkDocs(t reflect.Type) error {
	described := false
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous {
			described = described || f.Tag.Get("doc") != ""
			continue
		}
		if key := f.Tag.Get("yaml"); key != "" && key != "-" && f.Tag.Get("doc") == "" {
			return fmt.Errorf("the key %s has no description in the tag doc", key)
		}
	}
	if !described {
		return fmt.Errorf("the embedded base has no description in the tag doc")
	}
	return nil
}

// Cases lists the alternatives that the program adds.
func (l *Language) Cases() []Case {
	if l == nil {
		return nil
	}
	return slices.Concat(slices.Collect(maps.Values(l.cases))...)
}

// Providers lists the providers. The caller must not change the list.
func (l *Language) Providers() []Provider {
	if l == nil || len(l.providers) == 0 {
		return Providers()
	}
	return slices.Concat(Providers(), l.providers)
}

// Provider finds a provider by its name.
func (l *Language) Provider(name string) (Provider, bool) {
	return findRow(l.Providers(), func(p Provider) bool { return p.Name == name })
}

// Link sets the row of a model's provider, if the language adds it.
func (l *Language) Link(m *Model) {
	if l == nil {
		return
	}
	if i := slices.IndexFunc(l.providers, func(p Provider) bool { return p.Name == m.Provider }); i >= 0 {
		m.row = &l.providers[i]
	}
}

// checkName returns an error unless a name that a document writes is lower-case letters and digits.
func checkName(name string) error {
	if name == "" || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789") != "" || name[0] <= '9' {
		return fmt.Errorf("%q: a name has lower-case letters and digits, and begins with a letter", name)
	}
	return nil
}

// StoreTypes lists the types of stores. The caller must not change the list.
func (l *Language) StoreTypes() []StoreType {
	all := []StoreType{
		{"memory", "in the process, lost when it ends", []string{"memory"}},
		{"postgres", "a PostgreSQL database", []string{"postgres", "postgresql"}},
		{"redis", "a Redis or Valkey server", []string{"redis", "rediss"}},
		{"sqlite", "a file", []string{"sqlite", "file"}},
	}
	if l == nil {
		return all
	}
	return append(all, l.stores...)
}

// StoreType finds a type of stores by its name.
func (l *Language) StoreType(name string) (StoreType, bool) {
	return findRow(l.StoreTypes(), func(t StoreType) bool { return t.Name == name })
}

// StoreAt finds a type of stores by a scheme of its addresses.
func (l *Language) StoreAt(scheme string) (StoreType, bool) {
	return findRow(l.StoreTypes(), func(t StoreType) bool { return slices.Contains(t.Schemes, scheme) })
}

// ValidateTag returns the validator rules of a field. The rules `provider`, `hosted`, `policy`
// and `store` are expanded to a `oneof` with the names of their rows.
func (l *Language) ValidateTag(f reflect.StructField) string {
	rules := strings.Split(f.Tag.Get("validate"), ",")
	for i, rule := range rules {
		if docs := l.rowDocs(rule); docs != nil {
			names := make([]string, len(docs))
			for j, d := range docs {
				names[j] = d.name
			}
			rules[i] = "oneof=" + strings.Join(names, " ")
		}
	}
	return strings.Join(rules, ",")
}

// ValueDocs describes the values of a field with a fixed set of values, by the
// value; nil where their names are all there is.
func (l *Language) ValueDocs(f reflect.StructField) map[string]string {
	rows := l.rowDocs(f.Tag.Get("validate"))
	if rows == nil {
		return nil
	}
	docs := map[string]string{}
	for _, r := range rows {
		docs[r.name] = r.doc
	}
	return docs
}

// rowDoc describes one value of a key whose values are rows of a table.
type rowDoc struct{ name, doc string }

// rowDocs lists the values of a validator rule of this package; nil
// for other rules.
func (l *Language) rowDocs(rule string) []rowDoc {
	var docs []rowDoc
	switch rule {
	case "provider":
		for _, p := range l.Providers() {
			docs = append(docs, rowDoc{p.Name, p.Doc})
		}
	case "hosted":
		for _, k := range HostedKinds() {
			docs = append(docs, rowDoc{k.Name, k.Doc})
		}
	case "policy":
		for _, p := range Policies() {
			docs = append(docs, rowDoc{string(p.Name), p.Doc})
		}
	case "store":
		for _, t := range l.StoreTypes() {
			docs = append(docs, rowDoc{t.Name, t.Doc})
		}
	}
	return docs
}

// IDs returns the ids of entities.
func IDs[E Entity](all []E) []string {
	var ids []string
	for _, e := range all {
		ids = append(ids, e.EntityID())
	}
	return ids
}

// VariableByID returns the variable with an id, nil for none.
func VariableByID(vars []*Variable, id string) *Variable {
	for _, v := range vars {
		if v != nil && v.ID == id {
			return v
		}
	}
	return nil
}

// findRow returns the first row of a table that is the one sought.
func findRow[R any](rows []R, is func(R) bool) (row R, found bool) {
	for _, r := range rows {
		if is(r) {
			return r, true
		}
	}
	return row, false
}

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
