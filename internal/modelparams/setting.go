package modelparams

import (
	"fmt"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/catalogue"
	"github.com/qtype-dev/qtype/spec"
)

// Problem is what is doubtful about a parameter of a document.
type Problem struct {
	Path   []string // in inference_params
	Text   string   // with the name of the parameter
	Number int      // the value, if it is a number
	Limit  int      // the nearest number that the model takes; 0 for none
}

// Unlisted lists values that the catalogue does not have for the model: efforts, levels and
// types of thinking, and budgets.
func Unlisted(m *spec.Model) []Problem {
	row, ok := m.Known()
	if !ok {
		return nil
	}
	asked := request{params: m.InferenceParams, row: row}
	refused := Refusals(m, false)
	isRefused := func(path []string) bool {
		return slices.ContainsFunc(refused, func(r Refusal) bool { return slices.Equal(r.Path, path) })
	}
	r := row.Reasoning
	var found []Problem
	for _, name := range []string{"reasoning_effort", "output_config.effort", "thinkingLevel", "thinking.type", "reasoning.context", "reasoning.mode", "tool_choice"} {
		path, value, written := asked.find(name)
		text, values := textOf(value), asked.values(name)
		if written && !isRefused(path) && len(values) > 0 && isDecided(text) && !slices.ContainsFunc(values, func(v string) bool { return strings.EqualFold(v, text) }) {
			found = append(found, Problem{Path: path, Text: fmt.Sprintf("%s %s is not one of the values of %s: %s", strings.Join(path, "."), text, row.ID, strings.Join(values, ", "))})
		}
	}
	if r.Mode == catalogue.ReasonsNever {
		return append(found, asked.withoutReasoning()...)
	}
	if r.Budget == nil {
		return found
	}
	for _, name := range []string{"thinkingBudget", "thinking.budget_tokens", "thinking_budget"} {
		path, value, written := asked.find(name)
		n, isNumber := number(value)
		if !written || !isNumber || n < 0 || n == 0 && r.Budget.Min == 0 { // -1 lets Gemini decide
			continue
		}
		switch {
		case n < r.Budget.Min:
			found = append(found, Problem{path, fmt.Sprintf("%s is %d; %s takes at least %d tokens", strings.Join(path, "."), n, row.ID, r.Budget.Min), n, r.Budget.Min})
		case r.Budget.Max > 0 && n > r.Budget.Max:
			found = append(found, Problem{path, fmt.Sprintf("%s is %d; %s takes at most %d tokens", strings.Join(path, "."), n, row.ID, r.Budget.Max), n, r.Budget.Max})
		}
	}
	return found
}

// withoutReasoning lists the settings of reasoning of a model without reasoning, except settings
// that turn it off.
func (r request) withoutReasoning() []Problem {
	var found []Problem
	for _, setting := range reasoningSettings() {
		path, value, written := r.find(setting.name)
		if text := textOf(value); written && text != setting.off && isDecided(text) {
			found = append(found, Problem{Path: path, Text: fmt.Sprintf("%s: %s does not reason", strings.Join(path, "."), r.row.ID)})
		}
	}
	return found
}

// limits are the parameters that limit the tokens of an answer.
func limits() []string {
	return []string{"max_completion_tokens", "max_output_tokens", "max_tokens", "maxOutputTokens", "maxTokens", "num_predict"}
}

// OverLimit returns limits of answers above the limit of the model, and limits that leave no room
// after the tokens for thinking.
func OverLimit(m *spec.Model) []Problem {
	row, ok := m.Known()
	if !ok {
		return nil
	}
	asked := request{params: m.InferenceParams, row: row}
	var found []Problem
	for _, name := range limits() {
		path, value, written := asked.find(name)
		n, isNumber := number(value)
		if !written || !isNumber || slices.ContainsFunc(found, func(p Problem) bool { return slices.Equal(p.Path, path) }) {
			continue
		}
		if row.MaxOutput > 0 && n > row.MaxOutput {
			found = append(found, Problem{path, fmt.Sprintf("%s is %d, but %s writes at most %d tokens in one call", strings.Join(path, "."), n, row.ID, row.MaxOutput), n, row.MaxOutput})
		}
		if _, value, written := (request{params: Sent(m), row: row}).find("thinking.budget_tokens"); written {
			if budget, isNumber := number(value); isNumber && budget >= n {
				found = append(found, Problem{Path: path, Text: fmt.Sprintf("%s is %d, which leaves no token for the answer: thinking may take %d", strings.Join(path, "."), n, budget)})
			}
		}
	}
	return found
}

// number returns a value as a whole number.
func number(value any) (int, bool) {
	switch n := value.(type) {
	case int:
		return n, true
	case int64:
		return int(n), true
	case float64:
		return int(n), n == float64(int(n))
	}
	return 0, false
}

// TwoForms lists the parameters that set the same as another one of inference_params.
func TwoForms(m *spec.Model) []Problem {
	asked := request{params: m.InferenceParams}
	var found []Problem
	for _, names := range [][]string{
		limits(), {"reasoning.effort", "reasoning_effort"}, {"thinkingLevel", "thinkingBudget"}, {"stop", "stop_sequences", "stopSequences"},
		{"temperature"}, {"topP", "top_p"}, {"topK", "top_k"}, {"top_p"}, {"top_k"},
	} {
		var paths [][]string
		for _, name := range names {
			for _, inner := range exact(name) {
				for _, outer := range containers() {
					path := slices.Concat(outer, inner)
					if value, ok := valueAt(asked.params, path); ok && value != nil && !slices.ContainsFunc(paths, func(p []string) bool { return slices.Equal(p, path) }) {
						paths = append(paths, path)
					}
				}
			}
		}
		if len(paths) > 1 && !slices.ContainsFunc(found, func(p Problem) bool { return slices.Equal(p.Path, paths[1]) }) {
			found = append(found, Problem{Path: paths[1], Text: fmt.Sprintf("%s and %s are two forms of one setting", strings.Join(paths[0], "."), strings.Join(paths[1], "."))})
		}
	}
	return found
}

// exact lists the paths of a name itself.
func exact(name string) [][]string {
	if strings.HasPrefix(name, "thinking") && !strings.Contains(name, ".") {
		return spellings(name)
	}
	return [][]string{strings.Split(name, ".")}
}
