package tool

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
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

// address returns the URL of a call, with the arguments of the path and the query.
func (a *api) address(args map[string]any) (*url.URL, error) {
	u, err := a.endpoint.fill(func(name string) (string, error) {
		written, err := texts(args[name])
		if err != nil {
			return "", &pathArgumentError{name, err.Error()}
		}
		return strings.Join(written, ","), nil
	})
	if err != nil {
		return nil, err
	}
	query := url.Values{}
	for _, v := range a.query {
		written, err := texts(args[v.ID])
		if err != nil {
			return nil, &pathArgumentError{v.ID, err.Error()}
		}
		for _, w := range written {
			query.Add(v.ID, w)
		}
	}
	if len(query) > 0 {
		if u.RawQuery != "" {
			u.RawQuery += "&"
		}
		u.RawQuery += query.Encode()
	}
	return u, nil
}

// payload returns the JSON body of a call, nil for a method without one.
func (a *api) payload(args map[string]any) ([]byte, error) {
	if !a.hasBody {
		return nil, nil
	}
	fields := map[string]any{}
	for _, v := range a.body {
		if value, ok := args[v.ID]; ok {
			fields[v.ID] = value
		}
	}
	raw, err := writeJSON(fields)
	if err != nil {
		return nil, &pathArgumentError{strings.Join(ids(a.body), ", "), err.Error()}
	}
	return raw, nil
}

func ids(vars []*spec.Variable) []string {
	list := make([]string, len(vars))
	for i, v := range vars {
		list[i] = v.ID
	}
	return list
}
