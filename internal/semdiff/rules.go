package semdiff

import (
	"fmt"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/spec"
)

// valueChange is a key whose value differs.
type valueChange struct {
	pair pair
	key  string // dotted; items of lists by their number: rules[2].text
	old  *tree
	new  *tree
}

// rule says how much a change of a key matters.
type rule func(valueChange) (Impact, string)

// impactRules holds the rules of each kind by key; the key "" is for all others.
type impactRules map[spec.Kind]map[string]rule

// always is a rule that does not look at the values.
func always(class Impact, reason string) rule {
	return func(valueChange) (Impact, string) { return class, reason }
}

// lower is the rule of a limit: less of it breaks.
func lower(reason string) rule {
	return func(d valueChange) (Impact, string) {
		fell := d.new.number < d.old.number
		if d.old.shape == absent || d.new.shape == absent { // nothing said is no limit
			fell = d.old.shape == absent
		}
		if fell {
			return Breaking, reason
		}
		return Behaviour, ""
	}
}

// rules is the whole rulebook. A key that is not in it follows its parent, and
// at last its kind's "".
func rules() impactRules {
	elsewhere := always(Breaking, "conversations that are stored already are not found again")
	calls := always(Breaking, "the tool calls something else")
	answers, nobody := always(Behaviour, ""), always(Harmless, "")
	return impactRules{
		spec.KindFlow: {
			"":                         answers,
			"description":              nobody,
			"type":                     nobody,
			"interface":                wholeInterface,
			"interface.type":           always(Breaking, "callers talk to the flow in another way"),
			"interface.session_inputs": sessionInputs,
		},
		spec.KindMemory: {
			"":                         answers,
			"policy":                   always(Breaking, "what is remembered of running conversations changes"),
			"token_limit":              chatShare,
			"chat_history_token_ratio": chatShare,
			"max_messages":             lower("conversations keep fewer messages than before"),
			"max_tokens":               lower("conversations keep fewer tokens than before"),
			"n_rounds":                 lower("conversations keep fewer rounds than before"),
			"max_context":              lower("conversations keep fewer characters than before"),
			"ttl":                      lower("conversations are dropped earlier than before"),
			"store":                    elsewhere,
		},
		spec.KindStore: {"": elsewhere},
		spec.KindTool: {
			"":              answers,
			"type":          calls,
			"name":          always(Breaking, "models, recorded conversations and approvals know the tool by its name"),
			"endpoint":      calls,
			"method":        calls,
			"url":           calls,
			"command":       calls,
			"program":       calls,
			"args":          calls,
			"flow":          calls,
			"function_name": calls,
			"module_path":   calls,
			"tools":         answers,
		},
		spec.KindStep: {
			"":                   answers,
			"memory":             stepMemory,
			"concurrency_config": nobody,
		},
		spec.KindVariable:  {"": nobody, "type": answers, "optional": answers},
		spec.KindType:      {"": nobody},
		spec.KindModel:     {"": answers, "prices": nobody},
		spec.KindTelemetry: {"": nobody},
	}
}

// judge finds the rule for a key, its nearest parent's or its kind's.
func (b impactRules) judge(kind spec.Kind, d valueChange) (Impact, string) {
	rules := b[kind]
	for path := d.key; path != ""; path = parent(path) {
		if r, ok := rules[path]; ok {
			return r(d)
		}
	}
	if r, ok := rules[""]; ok {
		return r(d)
	}
	return Behaviour, ""
}

// parent is the path without its last key or number.
func parent(path string) string { return path[:max(strings.LastIndexAny(path, ".["), 0)] }

// wholeInterface judges a flow that is talked to now, or no longer.
func wholeInterface(d valueChange) (Impact, string) {
	if d.new.shape == absent {
		return Breaking, "the flow is no longer served as a stream"
	}
	return Behaviour, "the flow is served as a stream too"
}

// sessionInputs judges inputs that keep their first value.
func sessionInputs(d valueChange) (Impact, string) {
	for _, p := range d.old.parts {
		if !slices.ContainsFunc(d.new.parts, func(q part) bool { return q.tree.text == p.tree.text }) {
			return Breaking, "callers send it only once in a conversation"
		}
	}
	return Behaviour, ""
}

// chatShare judges the two settings that make the room for chat messages
// together (reference memory.md 2.3).
func chatShare(d valueChange) (Impact, string) {
	before, ok := d.pair.old.entity.(*spec.Memory)
	after, same := d.pair.new.entity.(*spec.Memory)
	if !ok || !same {
		return Behaviour, ""
	}
	was, is := share(before), share(after)
	reason := fmt.Sprintf("chat messages may fill %s tokens, not %s", thousands(is), thousands(was))
	if is < was && d.new.number < d.old.number {
		return Breaking, reason + ": what is over leaves the window"
	}
	return Behaviour, reason
}

func share(m *spec.Memory) int { return int(float64(m.TokenLimit) * m.ChatHistoryTokenRatio) }

// stepMemory judges a step that speaks in another conversation.
func stepMemory(d valueChange) (Impact, string) {
	switch {
	case d.new.shape == absent:
		return Breaking, "the step no longer remembers"
	case d.old.shape == absent:
		return Behaviour, "the step remembers now"
	}
	return Breaking, "the step does not see what was said so far"
}

// isSet tells whether the order of a list means nothing.
func isSet(path string) bool {
	return slices.Contains([]string{"tools", "approve", "scopes", "interface.session_inputs"}, path)
}
