package conversation

import (
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/qtype-dev/qtype/internal/apptest"
	"github.com/qtype-dev/qtype/internal/tool/factory"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
)

// Source is a conversation with what a test of it needs to know.
type Source struct {
	App    *spec.Application
	Flow   *spec.Flow
	Memory *spec.Memory   // that has the conversation
	Inputs map[string]any // of the flow, that the conversation does not have
	Path   string         // of the application, relative to the test file; empty for the default
	Name   string         // of the test
	Expect []string       // conditions that the last turn violates, or must not
	Calls  []string       // assertions on its calls of tools: the keys of a call assertion in YAML
	Sent   []string       // texts that each request to the model must contain

	Recordings string // of the model's answers, in place of mocks of the model; empty for none

	model string // the id of the model that answered
	input string // the id of the input that is the question
}

// Complete finds the step that has had the conversation. An error says why no test can be made of conversations of the flow.
func (s *Source) Complete() error {
	for _, step := range s.Flow.Plan().Steps {
		if !slices.Contains(step.Memories(), s.Memory) {
			continue
		}
		var models []string
		for _, m := range step.Models() {
			if chatModel, ok := m.(*spec.Model); ok {
				models = append(models, chatModel.ID)
			}
		}
		if len(models) == 0 || s.model != "" {
			continue
		}
		s.model = models[0]
		for _, r := range step.Reads {
			isInput := slices.ContainsFunc(s.Flow.Inputs, func(in spec.Ref[*spec.Variable]) bool { return in.To == r.To })
			if isInput && (r.To.Type.Is("text") || r.To.Type.Is("ChatMessage")) {
				s.input = r.To.ID
				break
			}
		}
	}
	switch {
	case s.model == "":
		return fmt.Errorf("no step of flow %s calls a model with memory %s", s.Flow.ID, s.Memory.ID)
	case s.input == "":
		return fmt.Errorf("memory %s of flow %s has texts that the flow has made, not its inputs: a test of a conversation needs a step that reads an input of the flow", s.Memory.ID, s.Flow.ID)
	}
	for _, in := range s.Flow.Inputs {
		if _, given := s.Inputs[in.To.ID]; !given && in.To.ID != s.input && !in.To.IsOptional() {
			return fmt.Errorf("the conversation does not have the input %s of flow %s: pass --input with its value", in.To.ID, s.Flow.ID)
		}
	}
	return nil
}

// The parts of a test file that are written, with their keys in this order.
type (
	suiteText struct {
		App string `yaml:"app,omitempty"`

		Recordings string `yaml:"recordings,omitempty"`

		Tests []testText `yaml:"tests"`
	}
	testText struct {
		Name   string      `yaml:"name"`
		Flow   string      `yaml:"flow"`
		Models []modelText `yaml:"models,omitempty"`
		Tools  []toolText  `yaml:"tools,omitempty"`
		Turns  []turnText  `yaml:"turns"`
	}
	modelText struct {
		ID    string     `yaml:"id"`
		Rules []ruleText `yaml:"rules"`
	}
	ruleText struct {
		Match string     `yaml:"match"`
		Round int        `yaml:"round,omitempty"`
		Text  *string    `yaml:"text,omitempty"`
		Calls []callText `yaml:"tool_calls,omitempty"`
	}
	callText struct {
		Name      string         `yaml:"name"`
		Arguments map[string]any `yaml:"arguments,omitempty"`
	}
	toolText struct {
		ID        string         `yaml:"id"`
		Arguments map[string]any `yaml:"arguments,omitempty"`
		Result    any            `yaml:"result,omitempty"`
		Error     string         `yaml:"error,omitempty"`
	}
	turnText struct {
		Inputs map[string]any  `yaml:"inputs"`
		Expect []string        `yaml:"expect,omitempty"`
		Sent   []sentText      `yaml:"sent,omitempty"`
		Calls  []assertionText `yaml:"calls,omitempty"`
		Order  []string        `yaml:"call_order,omitempty,flow"`
	}
	sentText struct {
		ID       string   `yaml:"id"`
		Contains []string `yaml:"contains"`
	}
	assertionText struct {
		ID        string         `yaml:"id"`
		Function  string         `yaml:"function,omitempty"`
		Arguments map[string]any `yaml:"arguments,omitempty"`
		Calls     *int           `yaml:"calls,omitempty"`
		Rejected  *int           `yaml:"rejected,omitempty"`
	}
)

// Write returns the text of a test file with a test of the turns. Without conditions it expects the calls of tools
// of the last turn.
func (s *Source) Write(turns []*Turn) (string, error) {
	test := testText{Name: s.Name, Flow: s.Flow.ID, Models: []modelText{{ID: s.model}}}
	for _, t := range turns {
		inputs := map[string]any{s.input: t.Input}
		for id, v := range s.Inputs {
			inputs[id] = v
		}
		test.Turns = append(test.Turns, turnText{Inputs: inputs})
		for call, result := range t.calls() {
			if err := s.addTool(&test, call, result); err != nil {
				return "", fmt.Errorf("turn %d: %w", t.Number, err)
			}
		}
	}
	for _, t := range slices.Backward(turns) { // the last answer to a question counts
		test.Models[0].Rules = append(test.Models[0].Rules, rulesOf(t, test.Models[0].Rules)...)
	}
	test.Tools = s.withUncalled(simplified(test.Tools))
	last := &test.Turns[len(test.Turns)-1]
	if last.Expect = s.Expect; !s.Expects() {
		s.expectCalls(last, turns[len(turns)-1])
	}
	if err := s.addAssertions(last); err != nil {
		return "", err
	}
	if s.Recordings != "" {
		test.Models = nil
	}
	var b strings.Builder
	out := yaml.NewEncoder(&b)
	out.SetIndent(2)
	if err := out.Encode(suiteText{App: s.Path, Recordings: s.Recordings, Tests: []testText{test}}); err != nil {
		return "", err
	}
	if err := out.Close(); err != nil {
		return "", err
	}
	return strings.ReplaceAll(b.String(), "${", "${DOLLAR:-$}{"), nil
}

// Expects reports whether it is said what the last turn should have.
func (s *Source) Expects() bool { return len(s.Expect)+len(s.Calls)+len(s.Sent) > 0 }

// addAssertions adds those on calls of tools and on requests to the model.
func (s *Source) addAssertions(to *turnText) error {
	for _, text := range s.Calls {
		var a assertionText
		d := yaml.NewDecoder(strings.NewReader("{" + strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(text), "{"), "}") + "}"))
		d.KnownFields(true)
		if err := d.Decode(&a); err != nil || a.ID == "" {
			return fmt.Errorf("--expect-call: expected the keys of a call in YAML, such as 'id: refund, calls: 0': %q", text)
		}
		to.Calls = append(to.Calls, a)
	}
	if len(s.Sent) > 0 {
		to.Sent = []sentText{{s.model, s.Sent}}
	}
	return nil
}

// Keeps reports whether some turns say what all of them say of the texts that the model must get: else a test without them
// could never pass.
func (s *Source) Keeps(some, all []*Turn) bool {
	return !slices.ContainsFunc(s.Sent, func(text string) bool { return says(all, text) && !says(some, text) })
}

// says reports whether a question, an answer or a result has a text.
func says(turns []*Turn, text string) bool {
	return slices.ContainsFunc(turns, func(t *Turn) bool {
		return strings.Contains(t.Input, text) || slices.ContainsFunc(t.Rounds, func(r *Round) bool {
			return strings.Contains(r.Text, text) || slices.ContainsFunc(r.Calls, func(c chat.ToolCall) bool { return strings.Contains(r.Results[c.ID], text) })
		})
	})
}

// rulesOf returns the rules by which a mock answers a turn; none for a question that has rules already.
func rulesOf(t *Turn, before []ruleText) []ruleText {
	match := "^" + regexp.QuoteMeta(t.Input) + "$"
	if slices.ContainsFunc(before, func(r ruleText) bool { return r.Match == match }) {
		return nil
	}
	var rules []ruleText
	for i, r := range t.Rounds {
		rule := ruleText{Match: match}
		if len(t.Rounds) > 1 {
			rule.Round = i + 1
		}
		if len(r.Calls) == 0 {
			text := strings.ReplaceAll(r.Text, "$", "$$") // $1 would be what the pattern captures
			rule.Text = &text
		}
		for _, c := range r.Calls {
			arguments := argumentsOf(c)
			for name, v := range arguments {
				arguments[name] = escape(v)
			}
			rule.Calls = append(rule.Calls, callText{c.Name, arguments})
		}
		rules = append(rules, rule)
	}
	return rules
}

// escape doubles the dollar signs of the texts of a value.
func escape(v any) any {
	switch v := v.(type) {
	case string:
		return strings.ReplaceAll(v, "$", "$$")
	case []any:
		for i := range v {
			v[i] = escape(v[i])
		}
	case map[string]any:
		for name := range v {
			v[name] = escape(v[name])
		}
	}
	return v
}

func argumentsOf(c chat.ToolCall) map[string]any {
	var arguments map[string]any
	if json.Unmarshal([]byte(c.Arguments), &arguments) != nil {
		return nil // the model has written no object
	}
	return arguments
}

// addTool adds a mock that answers a call; a later call with the same arguments is answered as the first one.
func (s *Source) addTool(test *testText, call chat.ToolCall, text string) error {
	id, err := s.toolOf(call)
	if err != nil {
		return err
	}
	m := toolText{ID: id, Arguments: argumentsOf(call)}
	if slices.ContainsFunc(test.Tools, func(o toolText) bool { return o.ID == id && reflect.DeepEqual(o.Arguments, m.Arguments) }) {
		return nil
	}
	m.Result, m.Error = resultOf(id, text)
	test.Tools = append(test.Tools, m)
	return nil
}

// toolOf returns the id of the tool that a model has called.
func (s *Source) toolOf(call chat.ToolCall) (string, error) {
	for _, t := range s.App.Tools {
		if apptest.ToolName(s.App, t.EntityID()) == call.Name {
			return t.EntityID(), nil
		}
	}
	return "", fmt.Errorf("tool %s cannot be replaced by a mock: it is a function of a server, or the application has no such tool", call.Name)
}

// simplified returns one mock for each tool that answers all calls alike, and else those with more arguments first.
func simplified(tools []toolText) (kept []toolText) {
	for _, t := range tools {
		if !slices.ContainsFunc(tools, func(o toolText) bool {
			return o.ID == t.ID && (o.Error != t.Error || !reflect.DeepEqual(o.Result, t.Result))
		}) {
			t.Arguments = nil
		}
		if !slices.ContainsFunc(kept, func(o toolText) bool { return o.ID == t.ID && t.Arguments == nil }) {
			kept = append(kept, t)
		}
	}
	slices.SortStableFunc(kept, func(a, b toolText) int { return len(b.Arguments) - len(a.Arguments) })
	return kept
}

// withUncalled adds mocks of the tools that start programs and were not called: a test of their flow needs them.
func (s *Source) withUncalled(tools []toolText) []toolText {
	for step := range s.Flow.Plan().All() {
		for _, t := range step.Tools() {
			id := t.EntityID()
			if factory.Program(t) != "" && !slices.ContainsFunc(tools, func(m toolText) bool { return m.ID == id }) {
				tools = append(tools, toolText{ID: id, Error: "the conversation has no call of this tool"})
			}
		}
	}
	return tools
}

// expectCalls adds what tools the turn has called.
func (s *Source) expectCalls(to *turnText, t *Turn) {
	for call := range t.calls() {
		id, err := s.toolOf(call)
		if err != nil {
			continue // reported by addTool
		}
		to.Order = append(to.Order, id)
		if i := slices.IndexFunc(to.Calls, func(a assertionText) bool { return a.ID == id }); i >= 0 {
			*to.Calls[i].Calls++
			continue
		}
		one := 1
		to.Calls = append(to.Calls, assertionText{ID: id, Arguments: argumentsOf(call), Calls: &one})
	}
}
