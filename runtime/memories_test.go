package runtime_test

import (
	"slices"
	"testing"

	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec"
)

// TestMemories: those of a loop's body and of a tool's flow count, each once, and a
// flow that runs itself ends.
func TestMemories(t *testing.T) {
	say := func(memory string) *spec.StepItem {
		s := &spec.LLMInference{}
		s.Memory.To = &spec.Memory{ID: memory}
		return &spec.StepItem{Step: s}
	}
	body := &spec.Flow{Steps: []*spec.StepItem{say("inner"), say("outer")}}
	again := &spec.InvokeFlow{}
	again.Flow.To = body
	body.Steps = append(body.Steps, &spec.StepItem{Step: again})
	loop := &spec.Loop{}
	loop.Flow.To = body
	f := &spec.Flow{Steps: []*spec.StepItem{say("outer"), {Step: loop}}}
	if got := runtime.MemoryIDs(f); !slices.Equal(got, []string{"outer", "inner"}) {
		t.Errorf("the memories are %q", got)
	}
}
