package replay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/memory"
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
	limits := r.limits
	all := map[string]func(float64) bool{
		"token_limit":              whole(&limits.TokenLimit),
		"chat_history_token_ratio": share(&limits.ChatShare),
		"token_flush_size":         whole(&limits.FlushSize),
		"max_messages":             whole(&limits.MaxMessages),
		"max_tokens":               whole(&limits.MaxTokens),
		"n_rounds":                 whole(&limits.NRounds),
		"max_context":              whole(&limits.MaxContext),
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if err := r.checkLimitOfPolicy(key); err != nil {
			return err
		}
		var n *float64
		if err := json.Unmarshal(keys[key], &n); err != nil || n == nil || !all[key](*n) {
			return fmt.Errorf("%s must be %s, not %s", key, wanted(key), keys[key])
		}
	}
	if err := r.memory.SetLimits(limits); err != nil {
		return err
	}
	r.limits = limits
	return nil
}

// checkLimitOfPolicy refuses what is no limit of this memory's policy.
func (r *replay) checkLimitOfPolicy(key string) error {
	policy := r.memory.Policy()
	names := memory.LimitNames(policy)
	slices.Sort(names)
	switch other := memory.PolicyOfLimit(key); {
	case other == policy:
		return nil
	case other != "":
		return fmt.Errorf("%s is a limit of policy %s; this memory has policy %s", key, other, policy)
	case len(names) == 0:
		return fmt.Errorf("%q is no limit of this memory: policy %s has none", key, policy)
	}
	return fmt.Errorf("%q is no limit of this memory: its limits are %s", key, strings.Join(names, ", "))
}

func wanted(key string) string {
	if key == "chat_history_token_ratio" {
		return "a number above 0 and at most 1"
	}
	return "a positive whole number"
}

// whole sets to where n is a positive whole number.
func whole(to *int) func(float64) bool {
	return func(n float64) bool {
		*to = int(n)
		return n > 0 && n <= math.MaxInt32 && n == math.Trunc(n)
	}
}

// share sets to where n is above 0 and at most 1.
func share(to *float64) func(float64) bool {
	return func(n float64) bool {
		*to = n
		return n > 0 && n <= 1
	}
}
