package tool

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/qtype-dev/qtype/spec"
)

// texts formats a value for a path or a query: true and false, dates as ISO 8601, bytes
// as base64, records as JSON. A list has a text for each item, null none.
func texts(v any) ([]string, error) {
	list, isList := v.([]any)
	if !isList {
		list = []any{v}
	}
	var written []string
	for _, item := range list {
		if item == nil {
			continue
		}
		t, err := text(item)
		if err != nil {
			return nil, err
		}
		written = append(written, t)
	}
	return written, nil
}

// text formats one value; a JSON string is written without quotes.
func text(v any) (string, error) {
	switch v := v.(type) {
	case string:
		return v, nil
	case []byte:
		return base64.StdEncoding.EncodeToString(v), nil
	case time.Time:
		return v.Format(time.RFC3339Nano), nil
	}
	raw, err := writeJSON(v)
	if err != nil {
		return "", err
	}
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s, nil
	}
	return string(raw), nil
}

func writeJSON(v any) ([]byte, error) {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("cannot be encoded as JSON")
	}
	return []byte(strings.TrimSuffix(b.String(), "\n")), nil
}

// ValidateArgs returns the arguments without optional ones that are null. Unknown and
// missing arguments are an *ArgumentError.
func (i Info) ValidateArgs(args map[string]any) (map[string]any, error) {
	given := make(map[string]any, len(args))
	for _, v := range i.Inputs {
		value, ok := args[v.ID]
		switch {
		case !ok && v.IsOptional(), ok && value == nil && v.IsOptional():
			continue
		case !ok:
			return nil, &ArgumentError{i.ID, v.ID, "is missing"}
		}
		given[v.ID] = value
	}
	for _, name := range slices.Sorted(maps.Keys(args)) { // sorted, so that the error is always the same
		if !i.declares(name) {
			return nil, &ArgumentError{i.ID, name, "is not an argument of this tool"}
		}
	}
	return given, nil
}

func (i Info) declares(name string) bool {
	return slices.ContainsFunc(i.Inputs, func(v *spec.Variable) bool { return v.ID == name })
}
