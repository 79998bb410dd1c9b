package spec

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/spec/diag"
)

// ArgumentError is a key of a free mapping, such as the args of a reader, that its
// declaration does not accept.
type ArgumentError struct {
	Key     string   // the key, empty for a missing one
	Unknown bool     // no argument has the key
	Missing []string // the keys of which one is needed, empty for a wrong key
	Message string   // what is wrong
	Hint    string   // how to fix it; may be empty
}

// Error returns the message with the key.
func (e *ArgumentError) Error() string {
	if e.Key == "" {
		return e.Message
	}
	return e.Key + ": " + e.Message
}

// ArgumentChecker is implemented by the structs of arguments with rules that their types
// do not express, such as ranges.
type ArgumentChecker interface {
	// CheckArguments returns what is wrong with the decoded arguments, in the order of
	// the fields.
	CheckArguments() []*ArgumentError
}

// DecodeArguments sets the fields of a struct from a mapping of a document. A field has
// the key of its tag `yaml`; `jsonschema:"required"` makes it mandatory, and a field
// whose key is missing gets the value of its tag `default`, if it has one.
// Fields are strings, integers, floats, booleans, lists of them, maps with text keys, or
// any; a text may contain a number or a boolean, as everywhere in a document. All wrong
// keys are reported, in alphabetical order; an ArgumentChecker is asked if there is none.
func DecodeArguments(args map[string]any, into any) []*ArgumentError {
	target := reflect.ValueOf(into).Elem()
	fields, names := map[string]reflect.Value{}, []string(nil)
	var problems []*ArgumentError
	for f := range argumentFields(target.Type()) {
		key := argumentKey(f)
		fields[key], names = target.FieldByIndex(f.Index), append(names, key)
		if args[key] != nil {
			continue
		}
		if text, ok := f.Tag.Lookup("default"); ok {
			if err := setArgument(fields[key], text); err != nil {
				problems = append(problems, &ArgumentError{Message: fmt.Sprintf("the default of %q is invalid: %s", key, err)})
			}
		}
		if slices.Contains(strings.Split(f.Tag.Get("jsonschema"), ","), "required") {
			problems = append(problems, &ArgumentError{Missing: []string{key}, Message: fmt.Sprintf("missing key %q", key)})
		}
	}
	keys := slices.Sorted(maps.Keys(args))
	for _, key := range keys {
		field, ok := fields[key]
		if !ok {
			problems = append(problems, unknownArgument(key, names))
			continue
		}
		if args[key] == nil {
			continue // as if the key were missing, as in Python
		}
		if err := setArgument(field, args[key]); err != nil {
			problems = append(problems, &ArgumentError{Key: key, Message: err.Error()})
		}
	}
	if checker, ok := into.(ArgumentChecker); ok && len(problems) == 0 {
		return checker.CheckArguments()
	}
	return problems
}

func unknownArgument(key string, names []string) *ArgumentError {
	e := &ArgumentError{Key: key, Unknown: true, Message: "unknown key"}
	if near := diag.Nearest(key, names); near != "" {
		e.Hint = fmt.Sprintf("did you mean %q?", near)
	} else if len(names) > 0 {
		e.Hint = "the keys are " + strings.Join(names, ", ")
	}
	return e
}

var errNotWhole = errors.New("expected a whole number")

// setArgument converts a value of a document to the type of a field.
func setArgument(field reflect.Value, v any) error {
	switch field.Kind() {
	case reflect.Pointer:
		field.Set(reflect.New(field.Type().Elem()))
		return setArgument(field.Elem(), v)
	case reflect.Interface:
		if v != nil {
			field.Set(reflect.ValueOf(v))
		}
		return nil
	case reflect.String:
		if s, ok := v.(string); ok {
			field.SetString(s)
			return nil
		}
		return fmt.Errorf("expected text, got %s", textfmt.Kind(v))
	case reflect.Bool:
		if b, ok := v.(bool); ok {
			field.SetBool(b)
			return nil
		}
		if b, err := strconv.ParseBool(textOf(v)); err == nil {
			field.SetBool(b)
			return nil
		}
		return fmt.Errorf("expected true or false, got %s", textfmt.Kind(v))
	case reflect.Int, reflect.Int64:
		return setInteger(field, v)
	case reflect.Float64:
		switch x := v.(type) {
		case float64:
			field.SetFloat(x)
			return nil
		case int, int64:
			field.SetFloat(reflect.ValueOf(x).Convert(reflect.TypeFor[float64]()).Float())
			return nil
		}
		if f, err := strconv.ParseFloat(textOf(v), 64); err == nil {
			field.SetFloat(f)
			return nil
		}
		return fmt.Errorf("expected a number, got %s", textfmt.Kind(v))
	case reflect.Slice:
		return setList(field, v)
	case reflect.Map:
		return setMapping(field, v)
	default:
		return fmt.Errorf("a field of kind %s cannot be set", field.Kind())
	}
}

func setList(field reflect.Value, v any) error {
	items, ok := v.([]any)
	if !ok {
		return fmt.Errorf("expected a list, got %s", textfmt.Kind(v))
	}
	list := reflect.MakeSlice(field.Type(), len(items), len(items))
	for i, item := range items {
		if err := setArgument(list.Index(i), item); err != nil {
			return fmt.Errorf("item %d: %w", i+1, err)
		}
	}
	field.Set(list)
	return nil
}

// setMapping sets a map. Its keys are set in alphabetical order, so that the error is
// the same each time.
func setMapping(field reflect.Value, v any) error {
	entries, ok := v.(map[string]any)
	if !ok {
		return fmt.Errorf("expected a mapping, got %s", textfmt.Kind(v))
	}
	made := reflect.MakeMapWithSize(field.Type(), len(entries))
	for _, key := range slices.Sorted(maps.Keys(entries)) {
		value := reflect.New(field.Type().Elem()).Elem()
		if entries[key] != nil {
			if err := setArgument(value, entries[key]); err != nil {
				return fmt.Errorf("%s: %w", key, err)
			}
		}
		made.SetMapIndex(reflect.ValueOf(key), value)
	}
	field.Set(made)
	return nil
}

func setInteger(field reflect.Value, v any) error {
	switch n := v.(type) {
	case int:
		field.SetInt(int64(n))
	case int64:
		field.SetInt(n)
	case float64:
		if n != math.Trunc(n) || math.Abs(n) > 1<<53 {
			return errNotWhole
		}
		field.SetInt(int64(n))
	default:
		i, err := strconv.ParseInt(textOf(v), 10, 64)
		if err != nil {
			return fmt.Errorf("expected a whole number, got %s", textfmt.Kind(v))
		}
		field.SetInt(i)
	}
	return nil
}

// textOf returns a text without the surrounding space, "" for another value.
func textOf(v any) string {
	s, _ := v.(string)
	return strings.TrimSpace(s)
}
