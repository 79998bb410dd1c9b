package replay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
)

// operate executes a line with "op".
func (r *replay) operate(ctx context.Context, keys map[string]json.RawMessage) error {
	var op string
	if err := json.Unmarshal(keys["op"], &op); err != nil {
		return errors.New(`"op" must be a string: clear, set, limit, variables or read`)
	}
	delete(keys, "op")
	switch op {
	case "clear":
		if err := rejectUnknownKeys(op, keys); err != nil {
			return err
		}
		return r.clear(ctx)
	case "set":
		if err := rejectUnknownKeys(op, keys, "messages"); err != nil {
			return err
		}
		return r.set(ctx, keys["messages"])
	case "limit":
		return r.limit(keys)
	case "session": // of a full export
		if err := rejectUnknownKeys(op, keys, "session"); err != nil || r.line == 1 {
			return err
		}
		return r.clear(ctx)
	case "event":
		return rejectUnknownKeys(op, keys, "event")
	case "variables":
		if err := rejectUnknownKeys(op, keys, "set", "turns"); err != nil {
			return err
		}
		return r.variables(ctx, keys["set"])
	case "context": // of a full export
		return rejectUnknownKeys(op, keys, "set")
	case "read":
		if err := rejectUnknownKeys(op, keys, "as", "n_rounds", "max_context", "notice", "empty"); err != nil {
			return err
		}
		return r.readWindow(ctx, keys)
	}
	return fmt.Errorf("unknown operation %q: an operation is clear, set, limit, variables or read", op)
}

// rejectUnknownKeys returns an error for keys that an operation does not have.
func rejectUnknownKeys(op string, keys map[string]json.RawMessage, known ...string) error {
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if !slices.Contains(known, key) {
			return fmt.Errorf("the operation %s has no field %q", op, key)
		}
	}
	return nil
}

func (r *replay) clear(ctx context.Context) error {
	if _, err := r.recordEvictions(ctx); err != nil {
		return err
	}
	r.reset()
	return r.memory.Clear(ctx, session)
}

// set replaces the window. Only new messages that do not fit count as evicted.
func (r *replay) set(ctx context.Context, raw json.RawMessage) error {
	var items []json.RawMessage
	if err := json.Unmarshal(raw, &items); err != nil || raw == nil || items == nil {
		return errors.New(`the operation set needs "messages", a list`)
	}
	var added []*inputMessage
	var messages []chat.Message
	for i, item := range items {
		m, err := r.parseMessage(item)
		if err != nil {
			return fmt.Errorf("messages[%d]: %w", i, err)
		}
		added, messages = append(added, m), append(messages, m.message)
	}
	if _, err := r.recordEvictions(ctx); err != nil {
		return err
	}
	r.reset()
	for _, m := range added {
		r.append(m)
	}
	return r.memory.Set(ctx, session, messages...)
}

// limit changes the given limits, all or none.
func (r *replay) limit(keys map[string]json.RawMessage) error {
	if len(keys) == 0 {
		return errors.New("the operation limit names no limit")
	}
	row, _ := spec.FindPolicy(r.memory.Policy())
	limits := maps.Clone(r.limits)
	if limits == nil {
		limits = memory.Limits{}
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		limit, ok := row.Limit(key)
		if !ok {
			return foreignLimit(row, key)
		}
		var n *float64
		if err := json.Unmarshal(keys[key], &n); err != nil || n == nil || !limit.Allows(*n) {
			return fmt.Errorf("%s must be %s, not %s", key, limitRange(limit), keys[key])
		}
		limits[key] = *n
	}
	within := r.config
	within.Limits = limits
	if err := r.memory.SetLimits(limitsWithin(within, r.contextWindow)); err != nil {
		return err
	}
	r.limits = limits
	return nil
}

// foreignLimit is the error for a key that is not a limit of the policy.
func foreignLimit(row spec.PolicyRow, key string) error {
	var names []string
	for _, l := range row.Limits {
		names = append(names, l.Key)
	}
	slices.Sort(names)
	for _, other := range spec.Policies() {
		if _, ok := other.Limit(key); ok {
			return fmt.Errorf("%s is a limit of policy %s; this memory has policy %s", key, other.Name, row.Name)
		}
	}
	if len(names) == 0 {
		return fmt.Errorf("%q is not a limit of this memory: policy %s has none", key, row.Name)
	}
	return fmt.Errorf("%q is not a limit of this memory: its limits are %s", key, strings.Join(names, ", "))
}

func limitRange(l spec.PolicyLimit) string {
	if l.Unit == spec.UnitShare {
		return "a number " + l.Range()
	}
	return "a positive whole number"
}

// variables executes the operation variables.
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

// readWindow reads a round_window with the given limits and texts, which do not
// last. An empty notice means none.
func (r *replay) readWindow(ctx context.Context, keys map[string]json.RawMessage) error {
	var opts memory.ReadOptions
	var notice *string
	as := "messages"
	for _, err := range []error{
		decodeKey(keys, "as", &as, "a string"),
		decodeKey(keys, "notice", &notice, "a string"),
		decodeKey(keys, "empty", &opts.Empty, "a string"),
		decodeKey(keys, "n_rounds", &opts.NRounds, "a positive whole number"),
		decodeKey(keys, "max_context", &opts.MaxContext, "a positive whole number"),
	} {
		if err != nil {
			return err
		}
	}
	if notice != nil {
		opts.Notice, opts.NoNotice = *notice, *notice == ""
	}
	switch as {
	case "text":
		text, err := r.memory.ReadText(ctx, session, opts)
		r.read = encode(text)
		return err
	case "messages":
		list, err := r.memory.ReadJSON(ctx, session, opts)
		r.read = list
		return err
	}
	return fmt.Errorf(`as must be "text" or "messages", not %q`, as)
}

// decodeKey reads the value of a key, if it exists. want describes valid values.
func decodeKey[T any](keys map[string]json.RawMessage, key string, to *T, want string) error {
	raw, ok := keys[key]
	if !ok {
		return nil
	}
	if err := json.Unmarshal(raw, to); err != nil || string(raw) == "0" {
		return fmt.Errorf("%s must be %s, not %s", key, want, raw)
	}
	return nil
}
