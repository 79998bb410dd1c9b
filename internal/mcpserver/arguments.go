package mcpserver

import (
	"fmt"
	"maps"
	"slices"

	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/spec/value"
)

// arguments are the arguments of a call by name: values of package value.
type arguments map[string]any

// parseArguments reads the JSON object of a call; nothing is an empty object.
func parseArguments(raw []byte) (arguments, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return arguments{}, nil
	}
	v, err := value.Parse(string(raw))
	if err != nil {
		return nil, fmt.Errorf("the arguments are not JSON: %w", err)
	}
	r, ok := v.(*value.Record)
	if !ok {
		return nil, fmt.Errorf("the arguments must be an object, not %s", value.Describe(v))
	}
	return maps.Collect(r.All()), nil
}

// only returns an error for an argument with another name.
func (a arguments) only(names ...string) error {
	for _, name := range slices.Sorted(maps.Keys(a)) {
		if !slices.Contains(names, name) {
			return fmt.Errorf("there is no argument %s%s", value.Describe(name), diag.DidYouMean(name, names))
		}
	}
	return nil
}

// text returns a required text.
func (a arguments) text(name string) (string, error) {
	v, ok := a[name]
	if !ok {
		return "", fmt.Errorf("the argument %s is missing", name)
	}
	s, ok := v.(string)
	if !ok {
		return "", fmt.Errorf("the argument %s must be a text, not %s", name, value.Describe(v))
	}
	return s, nil
}

// texts returns required texts, the only arguments of a tool.
func (a arguments) texts(names ...string) ([]string, error) {
	if err := a.only(names...); err != nil {
		return nil, err
	}
	var all []string
	for _, name := range names {
		s, err := a.text(name)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

// integer returns an optional number between limits.
func (a arguments) integer(name string, preset, least, most int64) (int, error) {
	v, ok := a[name]
	if !ok || v == nil {
		return int(preset), nil
	}
	n, ok := v.(int64)
	if f, isFloat := v.(float64); isFloat && f == float64(int64(f)) {
		n, ok = int64(f), true
	}
	if !ok || n < least || n > most {
		return 0, fmt.Errorf("the argument %s must be a whole number from %d to %d, not %s", name, least, most, value.Describe(v))
	}
	return int(n), nil
}
