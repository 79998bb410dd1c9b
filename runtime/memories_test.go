package runtime_test

import (
	"slices"
	"testing"

	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec"
)

// TestMemoryIDs lists the memories of called flows, each once, also if a flow calls
// itself.
func TestMemoryIDs(t *testing.T) {
	memories := map[string]*spec.Memory{"inner": {ID: "inner"}, "outer": {ID: "outer"}}
	say := func(memory string) *spec.StepItem {
		s := &spec.LLMInference{}
		s.Memory = spec.Ref[*spec.Memory]{ID: memory, To: memories[memory]}
		return &spec.StepItem{Step: s}
	}
	body := &spec.Flow{ID: "body", Steps: []*spec.StepItem{say("inner"), say("outer")}}
	again := &spec.InvokeFlow{}
	again.Flow = spec.Ref[*spec.Flow]{ID: "body", To: body}
	body.Steps = append(body.Steps, &spec.StepItem{Step: again})
	loop := &spec.Loop{}
	loop.Flow = spec.Ref[*spec.Flow]{ID: "body", To: body}
	f := &spec.Flow{Steps: []*spec.StepItem{say("outer"), {Step: loop}}}
	if got := runtime.MemoryIDs(f); !slices.Equal(got, []string{"outer", "inner"}) {
		t.Errorf("the memories are %q", got)
	}
}
