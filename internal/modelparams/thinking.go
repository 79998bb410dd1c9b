package modelparams

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/catalogue"
	"github.com/qtype-dev/qtype/spec"
)

// Of returns the parameters that are sent to a model: its inference_params and the parameters
// of its thinking. The error is an *Error.
func Of(m *spec.Model) (map[string]any, error) {
	if m.Thinking == "" {
		return m.InferenceParams, nil
	}
	thinking, err := Thinking(m)
	if err != nil {
		return nil, err
	}
	if name := firstShared(m.InferenceParams, thinking, ""); name != "" {
		return nil, &Error{Name: strings.SplitN(name, ".", 2)[0], Problem: fmt.Sprintf("thinking and %s of inference_params both set how much the model reasons; remove one of them", name)}
	}
	return merged(m.InferenceParams, thinking), nil
}

// Sent is Of for what only reports the parameters: those of the document if they are in conflict.
func Sent(m *spec.Model) map[string]any {
	if params, err := Of(m); err == nil {
		return params
	}
	return m.InferenceParams
}

// firstShared returns the first path that both trees have, by name; empty for none.
func firstShared(a, b map[string]any, path string) string {
	for _, name := range slices.Sorted(maps.Keys(b)) {
		given, set := a[name]
		if !set {
			continue
		}
		inner, isMap := given.(map[string]any)
		other, areBoth := b[name].(map[string]any)
		if !isMap || !areBoth {
			return path + name
		}
		if found := firstShared(inner, other, path+name+"."); found != "" {
			return found
		}
	}
	return ""
}

// merged returns a tree with the leaves of two that share none.
func merged(a, b map[string]any) map[string]any {
	out := maps.Clone(a)
	if out == nil {
		out = map[string]any{}
	}
	for name, v := range b {
		inner, isMap := out[name].(map[string]any)
		if other, areBoth := v.(map[string]any); isMap && areBoth {
			v = merged(inner, other)
		}
		out[name] = v
	}
	return out
}

// Thinking returns the parameters by which the model's protocol sets its `thinking`. The error is
// an *Error: the model cannot reason so.
func Thinking(m *spec.Model) (map[string]any, error) {
	p := protocolOf(m, false)
	t := thinker{want: m.Thinking, protocol: p}
	row, known := m.Known()
	if known {
		t.reasoning = row.Reasoning
		t.limitBudget(row.MaxOutput)
	}
	control := cmp.Or(t.reasoning.Control, usualControl(p))
	problem := t.problem(known)
	if problem == "" && !known && t.want.Budget() > 0 && (control == catalogue.ReasoningEffort || control == catalogue.ThinkingLevel) {
		problem = "the model is not in the catalogue, and its protocol takes words; write low, medium, high or max"
	}
	if problem == "" && (control == catalogue.ThinkingEffort || control == catalogue.ConverseThinking) {
		problem = t.leavesNoAnswer(m, known)
	}
	if problem != "" {
		return nil, &Error{Name: "thinking", Problem: fmt.Sprintf("thinking: %s: %s", m.Thinking, problem)}
	}
	if known && !t.reasoning.Reasons() && t.reasoning.Mode != "" { // off is what it does anyway
		return nil, nil
	}
	return t.params(control), nil
}

// limitBudget limits the budget of Anthropic's models: it must be below the tokens of the answer.
func (t *thinker) limitBudget(maxOutput int) {
	if t.reasoning.Budget == nil || t.reasoning.Budget.Max > 0 || maxOutput == 0 {
		return
	}
	if c := t.reasoning.Control; c == catalogue.ThinkingEffort || c == catalogue.ConverseThinking {
		t.reasoning.Budget = &catalogue.Budget{Min: t.reasoning.Budget.Min, Max: maxOutput - 1}
	}
}

// unlistedMaxTokens is the limit of an answer that a client sends for a model of Anthropic's protocol
// that the catalogue does not have.
const unlistedMaxTokens = 4096

// leavesNoAnswer returns why a budget leaves no tokens for the answer; empty if it does, and if
// there is no budget.
func (t thinker) leavesNoAnswer(m *spec.Model, known bool) string {
	thinking, _ := t.messages()["thinking"].(map[string]any)
	budget, _ := thinking["budget_tokens"].(int)
	asked := request{params: m.InferenceParams}
	for _, name := range []string{"max_tokens", "maxTokens"} {
		if path, value, set := asked.find(name); set {
			if n, isNumber := number(value); isNumber && budget >= n {
				return fmt.Sprintf("the %d tokens for thinking leave none of %s %d for the answer; raise it or lower thinking", budget, strings.Join(path, "."), n)
			}
			return ""
		}
	}
	if (t.protocol == Messages || t.protocol == VertexMessages) && !known && budget >= unlistedMaxTokens {
		return fmt.Sprintf("the %d tokens for thinking leave none for the answer of a model that the catalogue does not have; set max_tokens of inference_params above it", budget)
	}
	return ""
}

// SentAs returns the word that is sent to a model that lacks the word of its thinking;
// empty if it has, and where no word is sent. max is the highest one of any model.
func SentAs(m *spec.Model) string {
	row, known := m.Known()
	if !known || m.Thinking == "" || m.Thinking == spec.ThinkingOff || m.Thinking == spec.ThinkingMax || m.Thinking.Budget() > 0 {
		return ""
	}
	params, err := Thinking(m)
	if err != nil {
		return ""
	}
	asked := request{params: params, row: row}
	for _, name := range []string{"reasoning_effort", "output_config.effort", "thinkingLevel"} {
		if word := asked.word(name); word != "" && word != string(m.Thinking) {
			return word
		}
	}
	return ""
}

// usualControl returns the parameter of a protocol for a model that the catalogue does not have.
func usualControl(p Protocol) catalogue.Control {
	switch p {
	case Messages, VertexMessages:
		return catalogue.ThinkingEffort
	case Gemini:
		return catalogue.ThinkingLevel
	case Converse:
		return catalogue.ConverseThinking
	}
	return catalogue.ReasoningEffort
}

// thinker converts a thinking to parameters.
type thinker struct {
	want      spec.Thinking
	protocol  Protocol
	reasoning catalogue.Reasoning
}

// problem returns why the model cannot reason as wanted; empty if it can.
func (t thinker) problem(known bool) string {
	switch t.protocol {
	case 0, Bridged, BridgedMistral, Local:
		return "the provider has no setting for it"
	case Ollama:
		if t.want.Budget() > 0 {
			return "Ollama takes words, not a number of tokens"
		}
		return ""
	}
	if !known {
		return ""
	}
	switch r := t.reasoning; {
	case r.Mode == catalogue.ReasonsNever && t.want != spec.ThinkingOff:
		return "the model does not reason"
	case r.Mode == catalogue.ReasonsAlways && t.want == spec.ThinkingOff:
		return "the model always reasons; low is the least"
	case t.want == spec.ThinkingOff && t.cannotStop():
		return "the model cannot stop reasoning; low is the least, and " + t.word(slices.Concat(r.Levels, r.Efforts)) + " in inference_params is the least that it has"
	case t.want.Budget() > 0 && !t.takesBudget():
		return "the model takes no number of tokens; write low, medium, high or max"
	case t.want.Budget() > 0 && r.Budget != nil && (t.want.Budget() < r.Budget.Min || r.Budget.Max > 0 && t.want.Budget() > r.Budget.Max):
		if r.Budget.Max > 0 {
			return fmt.Sprintf("the model takes from %d to %d tokens", r.Budget.Min, r.Budget.Max)
		}
		return fmt.Sprintf("the model takes at least %d tokens", r.Budget.Min)
	}
	return ""
}

// cannotStop reports whether the model has words for how much it reasons, and none of them is no
// reasoning.
func (t thinker) cannotStop() bool {
	words := map[catalogue.Control][]string{catalogue.ThinkingLevel: t.reasoning.Levels, catalogue.ReasoningEffort: t.reasoning.Efforts}[t.reasoning.Control]
	return len(words) > 0 && !slices.Contains(words, "none")
}

// takesBudget reports whether a number of tokens can be set.
func (t thinker) takesBudget() bool {
	switch t.reasoning.Control {
	case catalogue.ThinkingBudget, catalogue.EnableThinking:
		return true
	case catalogue.ThinkingEffort, catalogue.ConverseThinking:
		return slices.Contains(t.reasoning.ThinkingTypes, "enabled")
	}
	return false
}

// params returns the parameters of a control.
func (t thinker) params(control catalogue.Control) map[string]any {
	if t.protocol == Ollama {
		return map[string]any{"think": t.think()}
	}
	off := t.want == spec.ThinkingOff
	switch control {
	case catalogue.ThinkingEffort:
		return t.messages()
	case catalogue.ConverseThinking:
		return map[string]any{"additionalModelRequestFields": t.messages()}
	case catalogue.ThinkingSwitch:
		params := map[string]any{"thinking": map[string]any{"type": map[bool]string{true: "disabled", false: "enabled"}[off]}}
		if !off && len(t.reasoning.Efforts) > 0 {
			params["reasoning_effort"] = t.word(t.reasoning.Efforts)
		}
		return params
	case catalogue.EnableThinking:
		params := map[string]any{"enable_thinking": !off}
		if tokens := t.tokens(); !off && tokens > 0 {
			params["thinking_budget"] = tokens
		}
		return params
	case catalogue.ThinkingLevel:
		return map[string]any{"thinkingConfig": map[string]any{"thinkingLevel": t.word(t.reasoning.Levels)}}
	case catalogue.ThinkingBudget:
		return map[string]any{"thinkingConfig": map[string]any{"thinkingBudget": t.tokens()}}
	case catalogue.ReasoningConfig:
		config := map[string]any{"type": map[bool]string{true: "disabled", false: "enabled"}[off]}
		if !off {
			config["maxReasoningEffort"] = t.word([]string{"low", "medium", "high"})
		}
		return map[string]any{"additionalModelRequestFields": map[string]any{"reasoningConfig": config}}
	}
	effort := t.word(t.reasoning.Efforts)
	if t.protocol == Responses {
		return map[string]any{"reasoning": map[string]any{"effort": effort}}
	}
	return map[string]any{"reasoning_effort": effort}
}

// messages returns the parameters of Anthropic's models.
func (t thinker) messages() map[string]any {
	types := t.reasoning.ThinkingTypes
	has := func(kind string) bool { return len(types) == 0 || slices.Contains(types, kind) }
	switch {
	case t.want == spec.ThinkingOff && has("disabled"):
		return map[string]any{"thinking": map[string]any{"type": "disabled"}}
	case t.want == spec.ThinkingOff:
		return map[string]any{"thinking": map[string]any{"type": "between_tools"}}
	case t.want.Budget() == 0 && has("adaptive"):
		return map[string]any{"thinking": map[string]any{"type": "adaptive"}, "output_config": map[string]any{"effort": t.word(t.reasoning.Efforts)}}
	}
	return map[string]any{"thinking": map[string]any{"type": "enabled", "budget_tokens": t.tokens()}}
}

// think returns the value of Ollama's parameter: a word for models that take one.
func (t thinker) think() any {
	if t.want == spec.ThinkingOff {
		return false
	}
	if len(t.reasoning.Efforts) > 0 {
		return t.word(t.reasoning.Efforts)
	}
	return true
}

// efforts are all words of providers, from the least to the most.
func efforts() []string { return []string{"none", "minimal", "low", "medium", "high", "xhigh", "max"} }

// word returns the word of a model for the thinking: itself if the model has it, else the next
// higher one, else the highest. max is the highest one that the model has.
func (t thinker) word(of []string) string {
	want := string(t.want)
	if t.want == spec.ThinkingOff {
		want = "none"
	}
	rank := func(word string) int { return slices.Index(efforts(), word) }
	best := ""
	for _, word := range of {
		switch {
		case word == want:
			return word
		case best == "", rank(word) >= rank(want) && (rank(best) < rank(want) || rank(word) < rank(best)), rank(best) < rank(want) && rank(word) > rank(best):
			best = word
		}
	}
	if best != "" {
		return best
	}
	return want
}

// tokens returns the budget: the number, or what a word means for a model that takes numbers.
func (t thinker) tokens() int {
	n, limits := t.want.Budget(), t.reasoning.Budget
	if n > 0 {
		return n
	}
	n = map[spec.Thinking]int{spec.ThinkingLow: 2048, spec.ThinkingMedium: 8192, spec.ThinkingHigh: 16384, spec.ThinkingMax: 32768}[t.want]
	if limits != nil && n > 0 {
		n = max(n, limits.Min)
		if limits.Max > 0 {
			n = min(n, limits.Max)
		}
	}
	return n
}
