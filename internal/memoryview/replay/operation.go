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

// operate carries out a line that has "op".
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
	case "variables":
		if err := rejectUnknownKeys(op, keys, "set"); err != nil {
			return err
		}
		return r.variables(ctx, keys["set"])
	case "read":
		if err := rejectUnknownKeys(op, keys, "as", "n_rounds", "max_context", "notice", "empty"); err != nil {
			return err
		}
		return r.reads(ctx, keys)
	}
	return fmt.Errorf("unknown operation %q: an operation is clear, set, limit, variables or read", op)
}

// rejectUnknownKeys refuses keys that an operation does not know.
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
	r.forget()
	return r.memory.Clear(ctx, session)
}

// set replaces the window. What it held was not evicted by the policy, so it is
// not told as evicted; of the new messages, those that do not fit are.
func (r *replay) set(ctx context.Context, raw json.RawMessage) error {
	var items []json.RawMessage
	if err := json.Unmarshal(raw, &items); err != nil || raw == nil || items == nil {
		return errors.New(`the operation set needs "messages", a list`)
	}
	var said []*inputMessage
	var messages []chat.Message
	for i, item := range items {
		u, err := r.utterance(item)
		if err != nil {
			return fmt.Errorf("messages[%d]: %w", i, err)
		}
		said, messages = append(said, u), append(messages, u.message)
	}
	if _, err := r.recordEvictions(ctx); err != nil {
		return err
	}
	r.forget()
	for _, u := range said {
		r.append(u)
	}
	return r.memory.Set(ctx, session, messages...)
}

// limit changes the limits that it names, all or none.
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
			return fmt.Errorf("%s must be %s, not %s", key, rangeOf(limit), keys[key])
		}
		limits[key] = *n
	}
	if err := r.memory.SetLimits(limits); err != nil {
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

func rangeOf(l spec.PolicyLimit) string {
	if l.Unit == spec.UnitShare {
		return "a number " + l.Range()
	}
	return "a positive whole number"
}
