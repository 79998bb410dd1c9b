package replay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/qtype-dev/qtype/memory"
)

// variables sets the named values of the session.
func (r *replay) variables(ctx context.Context, raw json.RawMessage) error {
	var values map[string]json.RawMessage
	if err := json.Unmarshal(raw, &values); err != nil || len(values) == 0 {
		return errors.New(`the operation variables needs "set", an object of names and values`)
	}
	var set []memory.Variable
	for _, name := range slices.Sorted(maps.Keys(values)) {
		set = append(set, memory.Variable{Name: name, Value: values[name]})
	}
	return r.memory.SetVariables(ctx, session, set...)
}

// reads looks at a round_window with limits and texts of its own (reference
// memory.md 5.6); nothing of it lasts. A notice that is empty is none.
func (r *replay) reads(ctx context.Context, keys map[string]json.RawMessage) error {
	var how memory.ReadOptions
	var notice *string
	as := "messages"
	for key, to := range map[string]any{"as": &as, "notice": &notice, "empty": &how.Empty, "n_rounds": &how.NRounds, "max_context": &how.MaxContext} {
		raw, given := keys[key]
		if !given {
			continue
		}
		what := "a string"
		if key == "n_rounds" || key == "max_context" {
			what = "a positive whole number"
		}
		if err := json.Unmarshal(raw, to); err != nil || string(raw) == "0" {
			return fmt.Errorf("%s must be %s, not %s", key, what, raw)
		}
	}
	if notice != nil {
		how.Notice, how.NoNotice = *notice, *notice == ""
	}
	switch as {
	case "text":
		text, err := r.memory.ReadText(ctx, session, how)
		r.read = encode(text)
		return err
	case "messages":
		list, err := r.memory.ReadJSON(ctx, session, how)
		r.read = list
		return err
	}
	return fmt.Errorf(`as must be "text" or "messages", not %q`, as)
}
