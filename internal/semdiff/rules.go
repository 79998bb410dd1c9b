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

// rules returns all rules. A key without one has the rule of its parent, or else of its
// kind.
func rules() impactRules {
	storeChanged := always(Breaking, "stored conversations will not be found")
	callChanged := always(Breaking, "the tool calls something else")
	behaviour, harmless := always(Behaviour, ""), always(Harmless, "")
	return impactRules{
		spec.KindFlow: {
			"":                         behaviour,
			"description":              harmless,
			"type":                     harmless,
			"allow":                    allowChanged,
			"interface":                interfaceChanged,
			"interface.type":           always(Breaking, "callers must use the flow differently"),
			"interface.session_inputs": sessionInputsChanged,
		},
		spec.KindMemory: memoryRules(behaviour, storeChanged),
		spec.KindStore:  {"": storeChanged},
		spec.KindTool: {
			"":              behaviour,
			"type":          callChanged,
			"name":          always(Breaking, "models, recorded conversations and approvals know the tool by its name"),
			"endpoint":      callChanged,
			"method":        callChanged,
			"url":           callChanged,
			"command":       callChanged,
			"program":       callChanged,
			"args":          callChanged,
			"flow":          callChanged,
			"function_name": callChanged,
			"module_path":   callChanged,
			"tools":         behaviour,
		},
		spec.KindStep: {
			"":                   behaviour,
			"memory":             stepMemoryChanged,
			"concurrency_config": harmless,
		},
		spec.KindVariable:  {"": harmless, "type": behaviour, "optional": behaviour},
		spec.KindType:      {"": harmless},
		spec.KindModel:     {"": behaviour, "prices": harmless},
		spec.KindTelemetry: {"": harmless},
	}
}

// memoryRules returns the rules for memories. A lower value of a limit breaks
// running conversations if the policy's row declares it stricter.
func memoryRules(behaviour, storeChanged rule) map[string]rule {
	all := map[string]rule{
		"":       behaviour,
		"policy": always(Breaking, "the window of running conversations changes"),
		"ttl":    decreased("conversations are dropped earlier than before"),
		"store":  storeChanged,
		"scope":  storeChanged,
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

// allowChanged rates a change of who may use a flow. No list allows everyone.
func allowChanged(d valueChange) (Impact, string) {
	switch {
	case d.new.shape == absent:
		return Behaviour, "every caller is allowed"
	case d.old.shape == absent || lacksItem(d.old, d.new):
		return Breaking, "callers that were allowed are refused"
	}
	return Behaviour, ""
}

// lacksItem reports whether a list lacks an item of an older one.
func lacksItem(old, now *tree) bool {
	return slices.ContainsFunc(old.parts, func(p part) bool {
		return !slices.ContainsFunc(now.parts, func(q part) bool { return q.tree.text == p.tree.text })
	})
}

// sessionInputsChanged rates a change of the inputs that are constant in a session.
func sessionInputsChanged(d valueChange) (Impact, string) {
	if lacksItem(d.old, d.new) {
		return Breaking, "callers send it only once in a conversation"
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
	return slices.Contains([]string{"tools", "approve", "allow", "repeatable", "scopes", "interface.session_inputs"}, path)
}
