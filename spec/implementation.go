package spec

import (
	"reflect"
	"slices"
	"strings"
)

// Implementation is a row of a table of alternatives that a document selects by name,
// such as readers, splitters and index stores. Validator, editors, manual and runtime
// read the row.
type Implementation struct {
	Name    string   // the short name, which messages and editors propose
	Aliases []string // other names: the Python classes that it replaces
	Doc     string   // what it is, as a phrase for the manual and the editor
	// Args returns a new struct for DecodeArguments, which declares the keys of the
	// mapping `args`. It is nil for an implementation without arguments.
	Args func() any
}

// IsNamed reports whether a name of a document means the implementation.
func (i Implementation) IsNamed(name string) bool {
	return name == i.Name || slices.Contains(i.Aliases, name)
}

// Selector is an entity that selects an implementation by name and configures it by free
// mappings. One rule of the validator checks all of them.
type Selector interface {
	Entity
	// Selection returns what the entity selects.
	Selection() Selection
}

// Selection is the implementation that an entity selects.
type Selection struct {
	Key      string           // the key with the name, such as reader_module
	Name     string           // the value of that key
	Noun     string           // what is selected, such as "reader"
	Known    bool             // an implementation has the name
	Options  []Implementation // what the key may name, without Args
	Auths    []string         // the types of auth that the implementation accepts; nil for the types of the tag `accepts`
	Mappings []Argument       // the free mappings of the entity
	Runtime  []string         // keys whose values may come from variables of a row
}

// Names returns the short names of all implementations.
func (s Selection) Names() []string {
	var names []string
	for _, o := range s.Options {
		names = append(names, o.Name)
	}
	return names
}

// Aliases returns the other names of all implementations.
func (s Selection) Aliases() []string {
	var names []string
	for _, o := range s.Options {
		names = append(names, o.Aliases...)
	}
	return names
}

// SelectionOf returns what an entity of a struct type selects if its key has a name. It
// returns false for a struct that is not a Selector or selects by a reference.
func SelectionOf(t reflect.Type, name string) (Selection, bool) {
	made := reflect.New(t)
	e, ok := made.Interface().(Selector)
	if !ok {
		return Selection{}, false
	}
	key := e.Selection().Key
	for _, f := range reflect.VisibleFields(t) {
		if argumentKey(f) == key && f.Type.Kind() == reflect.String {
			made.Elem().FieldByIndex(f.Index).SetString(name)
			return e.Selection(), true
		}
	}
	return Selection{}, false
}

// Argument is a free mapping of a document with the struct that declares its keys.
type Argument struct {
	Key   string         // the key of the mapping, such as args
	Given map[string]any // the mapping
	Into  any            // a new struct with one field for each key; nil if no key is allowed
}

// Decode decodes all mappings. A key that Runtime lists is not reported as missing.
func (s Selection) Decode() []SelectionError {
	var problems []SelectionError
	for _, m := range s.Mappings {
		into := m.Into
		if into == nil {
			into = &struct{}{}
		}
		for _, e := range DecodeArguments(m.Given, into) {
			fromRow := func(key string) bool { return slices.Contains(s.Runtime, key) }
			if !slices.ContainsFunc(e.Missing, fromRow) {
				problems = append(problems, SelectionError{Mapping: m.Key, ArgumentError: e})
			}
		}
	}
	return problems
}

// SelectionError is a wrong key of one of the mappings of a Selection.
type SelectionError struct {
	Mapping        string // the key of the mapping
	*ArgumentError        // what is wrong in it
}

// Error returns the message with the mapping and the key.
func (e SelectionError) Error() string { return e.Mapping + ": " + e.ArgumentError.Error() }

// selection returns the part of a Selection that follows from a table.
func selection[T any](key, noun, name string, rows []T, row func(T) Implementation) (s Selection, found T) {
	s = Selection{Key: key, Noun: noun, Name: name}
	for _, r := range rows {
		i := row(r)
		s.Options = append(s.Options, Implementation{Name: i.Name, Aliases: i.Aliases, Doc: i.Doc})
		if i.IsNamed(name) {
			s.Known, found = true, r
		}
	}
	return s, found
}

// newArguments returns a new struct of a row, nil for none.
func newArguments(make func() any) any {
	if make == nil {
		return nil
	}
	return make()
}

// ArgumentKeys lists the keys that a struct for DecodeArguments declares.
func ArgumentKeys(into any) []string {
	if into == nil {
		return nil
	}
	var keys []string
	for f := range argumentFields(reflect.TypeOf(into).Elem()) {
		keys = append(keys, argumentKey(f))
	}
	return keys
}

// argumentKey returns the key of a field, "" for a field that has none.
func argumentKey(f reflect.StructField) string {
	return strings.Split(f.Tag.Get("yaml"), ",")[0]
}

// argumentFields returns the fields that have a key; those of embedded structs at their
// position.
func argumentFields(t reflect.Type) func(yield func(reflect.StructField) bool) {
	return func(yield func(reflect.StructField) bool) {
		for _, f := range reflect.VisibleFields(t) {
			if argumentKey(f) != "" && !yield(f) {
				return
			}
		}
	}
}

// ArgumentKeys lists the keys that a mapping may have.
func (s Selection) ArgumentKeys(mapping string) []string {
	return ArgumentKeys(s.mapping(mapping).Into)
}

// Value returns the value of a key of a mapping, nil for none.
func (s Selection) Value(mapping, key string) any { return s.mapping(mapping).Given[key] }

// mapping returns the mapping of a key, the zero value for none.
func (s Selection) mapping(key string) Argument {
	for _, m := range s.Mappings {
		if m.Key == key {
			return m
		}
	}
	return Argument{}
}
