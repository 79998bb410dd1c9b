package modelparams

import (
	"fmt"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/catalogue"
	"github.com/qtype-dev/qtype/spec"
)

// Refusal is a parameter of a document that the model refuses.
type Refusal struct {
	Rule catalogue.Rejection
	Path []string // where inference_params has it; empty for tools, and for what thinking means
	Name string   // the parameter, as the document writes it

	Accepted []string // the values that the model takes; empty if the parameter itself is refused, or they are not known
}

// Refusals lists the sent parameters that the model refuses by the catalogue; tools reports
// whether requests have tools. Values that depend on the environment are not judged. A service
// that translates a parameter does not refuse it.
func Refusals(m *spec.Model, tools bool) []Refusal {
	row, ok := m.Known()
	if !ok || row.Provider != m.Service() {
		return nil
	}
	protocol := protocolOf(m, false)
	asked := request{params: Sent(m), row: row}
	var refused []Refusal
	rules := row.Rejected
	if protocol == Responses {
		rules = append(slices.Clone(rules), onlyInChat())
	}
	for _, rule := range rules {
		if rule.Missing || rule.API == catalogue.ChatCompletions && protocol != ChatCompletions || !asked.meets(rule) {
			continue
		}
		for _, name := range rule.Parameters {
			if name == "tools" && tools {
				refused = append(refused, Refusal{Rule: rule, Name: name})
			}
			path, value, found := asked.find(name)
			if !found || name == "tools" || hasName(refused, strings.Join(path, ".")) || isTranslated(name, protocol, row.Provider) || !refuses(rule, value) {
				continue
			}
			made := Refusal{Rule: rule, Path: written(m, path), Name: strings.Join(path, ".")}
			if len(rule.Values) > 0 {
				made.Accepted = asked.values(name)
			}
			refused = append(refused, made)
		}
	}
	return refused
}

// hasName reports whether a parameter is refused.
func hasName(refused []Refusal, name string) bool {
	return slices.ContainsFunc(refused, func(r Refusal) bool { return r.Name == name })
}

// onlyInChat is the rule of the parameters of Chat Completions that the Responses API does not have,
// and that the client does not translate.
func onlyInChat() catalogue.Rejection {
	return catalogue.Rejection{
		Parameters: []string{"stop", "seed", "logit_bias", "presence_penalty", "frequency_penalty", "logprobs", "prediction", "modalities", "audio", "web_search_options", "functions", "function_call"},
		When:       catalogue.Always, Status: 400, Error: "the Responses API, by which it is called, has no such parameter",
	}
}

// values lists the values that a model takes for a parameter, as far as the catalogue has them.
func (r request) values(name string) []string {
	switch name {
	case "reasoning_effort", "output_config.effort":
		return r.row.Reasoning.Efforts
	case "thinkingLevel":
		return r.row.Reasoning.Levels
	case "thinking.type":
		return r.row.Reasoning.ThinkingTypes
	case "tool_choice":
		return r.row.Tools.ToolChoices
	case "reasoning.context":
		return r.row.Reasoning.Context
	case "reasoning.mode":
		return r.row.Reasoning.Modes
	}
	return nil
}

// isTranslated reports whether the client sends a parameter under the name that the model takes.
func isTranslated(name string, p Protocol, service string) bool {
	return name == "max_tokens" && (p == ChatCompletions || p == Responses) && (service == "openai" || service == "azure-openai")
}

// written returns a path if inference_params has it.
func written(m *spec.Model, path []string) []string {
	if _, ok := valueAt(m.InferenceParams, path); ok {
		return path
	}
	return nil
}

// request is what is sent to a model.
type request struct {
	params map[string]any
	row    *catalogue.Model
}

// containers are the objects in which protocols have parameters.
func containers() [][]string {
	return [][]string{nil, {"generationConfig"}, {"generation_config"}, {"inferenceConfig"}, {"inference_config"},
		{"additionalModelRequestFields"}, {"additional_model_request_fields"}, {"options"}, {"extra_body"}}
}

// spellings lists the paths of a parameter in the objects of a protocol.
func spellings(name string) [][]string {
	paths := [][]string{strings.Split(name, ".")}
	switch name {
	case "reasoning_effort":
		paths = append(paths, []string{"reasoning", "effort"})
	case "thinkingLevel", "thinkingBudget":
		paths = [][]string{{"thinkingConfig", name}, {"thinking_config", snake(name)}}
	case "topP", "maxTokens", "topK":
		paths = append(paths, []string{snake(name)})
	}
	return paths
}

// snake writes a name in camel case with underscores.
func snake(name string) string {
	var b strings.Builder
	for _, r := range name {
		if r >= 'A' && r <= 'Z' {
			b.WriteByte('_')
			r += 'a' - 'A'
		}
		b.WriteRune(r)
	}
	return b.String()
}

// find returns a parameter of the request. Null is no parameter.
func (r request) find(name string) (path []string, value any, found bool) {
	for _, inner := range spellings(name) {
		for _, outer := range containers() {
			path := slices.Concat(outer, inner)
			if value, ok := valueAt(r.params, path); ok && value != nil {
				return path, value, true
			}
		}
	}
	return nil, nil, false
}

// valueAt returns the value at a path of maps.
func valueAt(params map[string]any, path []string) (any, bool) {
	value, ok := params[path[0]]
	if !ok || len(path) == 1 {
		return value, ok
	}
	inner, isMap := value.(map[string]any)
	if !isMap {
		return nil, false
	}
	return valueAt(inner, path[1:])
}

// word returns the value of a parameter as a text, empty for none.
func (r request) word(name string) string {
	if _, value, ok := r.find(name); ok {
		return textOf(value)
	}
	return ""
}

// textOf returns a value as the catalogue writes it: the type of an object that has one.
func textOf(value any) string {
	if object, ok := value.(map[string]any); ok {
		value = object["type"]
		if value == "function" || value == nil {
			return "named" // tool_choice: {type: function, function: {name: NAME}}
		}
	}
	return fmt.Sprint(value)
}

// isDecided reports whether a text does not depend on an environment variable.
func isDecided(text string) bool { return !strings.Contains(text, "${") }

// refuses reports whether a rule is about a value.
func refuses(rule catalogue.Rejection, value any) bool {
	text := textOf(value)
	switch {
	case !isDecided(fmt.Sprint(value)):
		return false
	case len(rule.Values) > 0:
		return slices.Contains(rule.Values, text)
	case slices.Contains(rule.Except, "default"):
		return text != "1" // the default of temperature and top_p; top_k has none
	}
	return !slices.Contains(rule.Except, text)
}

// meets reports whether the condition of a rule certainly holds.
func (r request) meets(rule catalogue.Rejection) bool {
	switch rule.When {
	case catalogue.Always:
		return true
	case catalogue.ReasoningOn:
		on, certain := r.reasons()
		return certain && on
	case catalogue.ReasoningOff:
		on, certain := r.reasons()
		return certain && !on
	case catalogue.ThinkingEnabled:
		return r.word("thinking.type") == "enabled"
	case catalogue.AtEfforts:
		for _, name := range []string{"reasoning_effort", "output_config.effort", "reasoningConfig.maxReasoningEffort"} {
			if slices.Contains(rule.Efforts, r.word(name)) {
				return true
			}
		}
	}
	return false
}

// reasoningSetting is a parameter that sets whether a model reasons, with the value that it has
// for no.
type reasoningSetting struct{ name, off string }

func reasoningSettings() []reasoningSetting {
	return []reasoningSetting{{"reasoning_effort", "none"}, {"thinking.type", "disabled"}, {"enable_thinking", "false"}, {"thinkingBudget", "0"}}
}

// reasons reports whether the model reasons for the request, and whether that is certain.
func (r request) reasons() (on, certain bool) {
	for _, setting := range reasoningSettings() {
		if word := r.word(setting.name); word != "" {
			return word != setting.off, isDecided(word)
		}
	}
	switch reasoning := r.row.Reasoning; {
	case reasoning.Mode == catalogue.ReasonsAlways || reasoning.DefaultOn:
		return true, true
	case reasoning.Mode == catalogue.ReasonsNever:
		return false, true
	case reasoning.ChatTools == catalogue.ToolsIfSetOff: // without a setting too
		return true, true
	default:
		return false, reasoning.Default != ""
	}
}
