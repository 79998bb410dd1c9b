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
