package spec_test

import (
	"slices"
	"testing"

	"github.com/qtype-dev/qtype/spec"
)

// TestIsComputation: only listed types of steps compute; a flow with another one does not.
func TestIsComputation(t *testing.T) {
	var names []string
	for _, s := range spec.StepTypes() {
		f := &spec.Flow{Steps: []*spec.StepItem{{Step: &spec.Echo{}}, {Step: s}}}
		if f.Plan().IsComputation() {
			names = append(names, spec.TypeName(s))
		}
	}
	slices.Sort(names)
	want := []string{"Aggregate", "Collect", "Construct", "Decoder", "Echo", "Explode", "FieldExtractor", "InvokeFlow", "Loop", "Parallel", "PromptTemplate", "Switch", "Transform"}
	if !slices.Equal(names, want) {
		t.Errorf("got %v, want %v", names, want)
	}
}

// TestIsQuick: steps that only compute wait for nothing, and neither do those that call mock models that answer at once.
func TestIsQuick(t *testing.T) {
	calls := func(m *spec.Model) spec.Step {
		s := &spec.LLMInference{}
		s.Model = spec.Ref[spec.ModelEntity]{ID: "m", To: m}
		return s
	}
	mock := func(change func(*spec.Model)) *spec.Model {
		m := &spec.Model{Provider: "mock", Rules: []*spec.MockRule{{Text: "yes"}}}
		change(m)
		return m
	}
	remembers := calls(mock(func(*spec.Model) {})).(*spec.LLMInference)
	remembers.Memory = spec.Ref[*spec.Memory]{ID: "chats", To: &spec.Memory{}}
	for name, c := range map[string]struct {
		step spec.Step
		want bool
	}{
		"computes":      {&spec.Echo{}, true},
		"a tool":        {&spec.InvokeTool{}, false},
		"a mock":        {calls(mock(func(*spec.Model) {})), true},
		"with a memory": {remembers, false},
		"a slow mock":   {calls(mock(func(m *spec.Model) { m.Rules[0].Delay = 1 })), false},
		"an error":      {calls(mock(func(m *spec.Model) { m.Rules[0].Error = "down" })), false},
		"a rate limit":  {calls(mock(func(m *spec.Model) { m.RateLimit = &spec.RateLimit{} })), false},
		"a model":       {calls(&spec.Model{Provider: "openai"}), false},
		"no model":      {&spec.LLMInference{}, false},
		"a flow":        {&spec.InvokeFlow{}, true},
	} {
		if got := spec.PlanStep(c.step).IsQuick(); got != c.want {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}
