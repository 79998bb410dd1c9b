package chat

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/spec/diag"
)

// object is a JSON object without duplicate or unknown keys.
type object map[string]json.RawMessage

// readObject parses a JSON object; what names it in errors ("a message"). Keys
// other than known are rejected.
func readObject(data []byte, what string, known ...string) (object, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		if err != nil && err != io.EOF {
			return nil, badJSON(what, err)
		}
		return nil, fmt.Errorf("%s must be a JSON object, not %s", what, textfmt.JSONKind(data))
	}
	o := object{}
	for dec.More() {
		t, err := dec.Token()
		if err != nil {
			return nil, badJSON(what, err)
		}
		key, _ := t.(string) // the decoder returns only strings here
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return nil, badJSON(what, err)
		}
		if _, twice := o[key]; twice {
			return nil, fmt.Errorf("%s has the key %q twice", what, key)
		}
		if !slices.Contains(known, key) {
			return nil, fmt.Errorf("%s has no field %q%s", what, key, suggest(key, known))
		}
		o[key] = raw
	}
	if _, err := dec.Token(); err != nil {
		return nil, badJSON(what, err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, fmt.Errorf("%s is followed by more text", what)
	}
	return o, nil
}

func badJSON(what string, err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%s is cut off: the JSON text ends too early", what)
	}
	return fmt.Errorf("%s is not valid JSON: %s", what, strings.TrimPrefix(err.Error(), "json: "))
}

// has reports whether the key is present and not null.
func (o object) has(key string) bool {
	raw, found := o[key]
	return found && string(raw) != "null"
}

// text returns the string at key, "" if there is none.
func (o object) text(key string) (string, error) {
	if !o.has(key) {
		return "", nil
	}
	var s string
	if err := json.Unmarshal(o[key], &s); err != nil {
		return "", fmt.Errorf("%q must be a string, not %s", key, textfmt.JSONKind(o[key]))
	}
	return s, nil
}

// texts sets each string to the value of its key.
func (o object) texts(fields map[string]*string) error {
	for _, key := range slices.Sorted(maps.Keys(fields)) { // for a deterministic error
		s, err := o.text(key)
		if err != nil {
			return err
		}
		*fields[key] = s
	}
	return nil
}

// list returns the array at key, nil if there is none.
func (o object) list(key string) ([]json.RawMessage, error) {
	if !o.has(key) {
		return nil, nil
	}
	var items []json.RawMessage
	if err := json.Unmarshal(o[key], &items); err != nil {
		return nil, fmt.Errorf("%q must be a list, not %s", key, textfmt.JSONKind(o[key]))
	}
	return items, nil
}

// role returns the required "role".
func (o object) role() (Role, error) {
	if !o.has("role") {
		return "", fmt.Errorf("a message needs a %q", "role")
	}
	s, err := o.text("role")
	if err != nil {
		return "", err
	}
	return parseRole(s)
}

// parseRole parses a role; an error suggests the nearest one.
func parseRole(name string) (Role, error) {
	if r := Role(name); slices.Contains(Roles(), r) {
		return r, nil
	}
	var names []string
	for _, r := range Roles() {
		names = append(names, string(r))
	}
	if hint := suggest(name, names); hint != "" {
		return "", fmt.Errorf("unknown role %q%s", name, hint)
	}
	return "", fmt.Errorf("unknown role %q: a role is %s", name, strings.Join(names, ", "))
}

// suggest returns `, did you mean "x"?` for the nearest valid word, "" if none is near.
func suggest(word string, valid []string) string {
	near := diag.Nearest(word, valid)
	if near == "" {
		return ""
	}
	return fmt.Sprintf(", did you mean %q?", near)
}
