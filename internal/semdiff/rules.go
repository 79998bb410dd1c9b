package semdiff

import (
	"fmt"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/textfmt"
	"github.com/qtype-dev/qtype/spec"
)

// valueChange is a key whose value differs.
type valueChange struct {
	pair pair
	key  string // with dots, and 1-based numbers of list items: rules[2].text
	old  *tree
	new  *tree
}

// rule rates a change of a key.
type rule func(valueChange) (Impact, string)

// impactRules are the rules of each kind by key; the key "" is for all others.
type impactRules map[spec.Kind]map[string]rule

// always returns a rule that does not depend on the values.
func always(impact Impact, reason string) rule {
	return func(valueChange) (Impact, string) { return impact, reason }
}

// decreased returns the rule of a limit: a lower one breaks.
func decreased(reason string) rule {
	return func(d valueChange) (Impact, string) {
		fell := d.new.number < d.old.number
		if d.old.shape == absent || d.new.shape == absent { // a missing limit means no limit
			fell = d.old.shape == absent
		}
		if fell {
			return Breaking, reason
		}
		return Behaviour, ""
	}
}

// rules returns all rules. A key without one has that of its parent, or else that
// of its kind.
func rules() impactRules {
	elsewhere := always(Breaking, "stored conversations will not be found")
	calls := always(Breaking, "the tool calls something else")
	answers, nobody := always(Behaviour, ""), always(Harmless, "")
	return impactRules{
		spec.KindFlow: {
			"":                         answers,
			"description":              nobody,
			"type":                     nobody,
			"interface":                interfaceChanged,
			"interface.type":           always(Breaking, "callers must use the flow differently"),
			"interface.session_inputs": sessionInputsChanged,
		},
		spec.KindMemory: memoryRules(answers, elsewhere),
		spec.KindStore:  {"": elsewhere},
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
			"memory":             stepMemoryChanged,
			"concurrency_config": nobody,
		},
		spec.KindVariable:  {"": nobody, "type": answers, "optional": answers},
		spec.KindType:      {"": nobody},
		spec.KindModel:     {"": answers, "prices": nobody},
		spec.KindTelemetry: {"": nobody},
	}
}

// memoryRules returns the rules for memories. A lower value of a limit breaks
// running conversations if the policy's row says that it is stricter.
func memoryRules(behaviour, elsewhere rule) map[string]rule {
	all := map[string]rule{
		"":       behaviour,
		"policy": always(Breaking, "the window of running conversations changes"),
		"ttl":    decreased("conversations are dropped earlier than before"),
		"store":  elsewhere,
	}
	for _, row := range spec.Policies() {
		for _, l := range row.Limits {
			if l.Stricter == spec.LowerIsStricter {
				all[l.Key] = decreased("conversations keep fewer " + string(l.Unit) + " than before")
			}
		}
		if i := slices.IndexFunc(row.Limits, func(l spec.PolicyLimit) bool { return l.Unit == spec.UnitShare }); i > 0 {
			all[row.Limits[0].Key], all[row.Limits[i].Key] = chatShareChanged, chatShareChanged // their product is the room
		}
	}
	return all
}

// judge applies the rule of a key.
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

// parent removes the last key or number of a path.
func parent(path string) string { return path[:max(strings.LastIndexAny(path, ".["), 0)] }

// interfaceChanged rates an interface that was added to a flow or removed.
func interfaceChanged(d valueChange) (Impact, string) {
	if d.new.shape == absent {
		return Breaking, "the flow is no longer served as a stream"
	}
	return Behaviour, "the flow is served as a stream too"
}

// sessionInputsChanged rates a change of the inputs that are constant in a session.
func sessionInputsChanged(d valueChange) (Impact, string) {
	for _, p := range d.old.parts {
		if !slices.ContainsFunc(d.new.parts, func(q part) bool { return q.tree.text == p.tree.text }) {
			return Breaking, "callers send it only once in a conversation"
		}
	}
	return Behaviour, ""
}

// chatShareChanged rates the two settings that together limit the chat messages of
// a memory.
func chatShareChanged(d valueChange) (Impact, string) {
	before, ok := d.pair.old.entity.(*spec.Memory)
	after, same := d.pair.new.entity.(*spec.Memory)
	if !ok || !same {
		return Behaviour, ""
	}
	was, is := chatTokens(before), chatTokens(after)
	reason := fmt.Sprintf("chat messages may fill %s tokens, not %s", textfmt.Thousands(is), textfmt.Thousands(was))
	if is < was && d.new.number < d.old.number {
		return Breaking, reason + ": older messages leave the window"
	}
	return Behaviour, reason
}

func chatTokens(m *spec.Memory) int { return int(float64(m.TokenLimit) * m.ChatHistoryTokenRatio) }

// stepMemoryChanged rates another memory of a step.
func stepMemoryChanged(d valueChange) (Impact, string) {
	switch {
	case d.new.shape == absent:
		return Breaking, "the step no longer uses a memory"
	case d.old.shape == absent:
		return Behaviour, "the step now uses a memory"
	}
	return Breaking, "the step does not see the conversation so far"
}

// isUnordered reports whether the order of a list has no meaning.
func isUnordered(path string) bool {
	return slices.Contains([]string{"tools", "approve", "scopes", "interface.session_inputs"}, path)
}
