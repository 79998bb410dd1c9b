package checkpoint_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/qtype-dev/qtype/internal/checkpoint"
	"github.com/qtype-dev/qtype/spec"
)

// newFlow returns a flow with a step that calls a model, and the parts that tests
// change.
func newFlow() (*spec.Flow, *spec.LLMInference, *spec.Model) {
	in, out := &spec.Variable{ID: "in", Type: spec.Type{Name: "text"}}, &spec.Variable{ID: "out", Type: spec.Type{Name: "text"}}
	m := &spec.Model{ID: "gpt", Provider: "openai"}
	s := &spec.LLMInference{SystemMessage: "Be brief.", Model: spec.Ref[spec.ModelEntity]{ID: "gpt", To: m}}
	s.ID = "ask"
	s.Inputs = []spec.Ref[*spec.Variable]{{ID: "in", To: in}}
	s.Outputs = []spec.Ref[*spec.Variable]{{ID: "out", To: out}}
	return &spec.Flow{ID: "main", Variables: []*spec.Variable{in, out}, Steps: []*spec.StepItem{{Step: s}}}, s, m
}

func TestFingerprint(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*spec.LLMInference, *spec.Model)
		want   []string // the parts that change
	}{
		"nothing":       {func(*spec.LLMInference, *spec.Model) {}, nil},
		"a setting":     {func(s *spec.LLMInference, _ *spec.Model) { s.SystemMessage = "Be long." }, []string{"step ask"}},
		"the model":     {func(_ *spec.LLMInference, m *spec.Model) { m.ModelID = "gpt-4o" }, []string{"model gpt"}},
		"a type":        {func(s *spec.LLMInference, _ *spec.Model) { s.Outputs[0].To.Type.Name = "int" }, []string{"flow main", "step ask"}},
		"a timeout":     {func(s *spec.LLMInference, _ *spec.Model) { s.Timeout = spec.Duration(time.Second) }, nil},
		"an own ignore": {func(s *spec.LLMInference, _ *spec.Model) { s.OnError = "skip" }, nil},
	} {
		opts := checkpoint.FingerprintOptions{Ignore: []string{"on_error"}}
		flow, _, _ := newFlow()
		was := checkpoint.Fingerprint(flow, opts)
		flow, s, m := newFlow()
		c.change(s, m)
		is := checkpoint.Fingerprint(flow, opts)
		if got := slices.Sorted(maps.Keys(is)); !slices.Equal(got, []string{"flow main", "model gpt", "step ask"}) {
			t.Fatalf("%s: the parts are %q", name, got)
		}
		var changed []string
		for _, part := range slices.Sorted(maps.Keys(is)) {
			if is[part] != was[part] {
				changed = append(changed, part)
			}
		}
		if !slices.Equal(changed, c.want) {
			t.Errorf("%s: got %q, want %q", name, changed, c.want)
		}
		if same := checkpoint.Sum(was) == checkpoint.Sum(is); same != (c.want == nil) {
			t.Errorf("%s: equal sums: %v", name, same)
		}
	}
}

// TestFingerprint_Extra counts what is added for an entity, and keeps two entities
// with one id apart.
func TestFingerprint_Extra(t *testing.T) {
	flow, s, _ := newFlow()
	s.Model.To.Base().Fallbacks = []spec.Ref[spec.ModelEntity]{{ID: "gpt", To: &spec.Model{ID: "gpt", Provider: "mock"}}}
	server := "a"
	opts := checkpoint.FingerprintOptions{Extra: func(e spec.Entity) []string {
		if m, ok := e.(*spec.Model); ok && m.Provider == "mock" {
			return []string{server}
		}
		return nil
	}}
	was := checkpoint.Fingerprint(flow, opts)
	server = "b"
	is := checkpoint.Fingerprint(flow, opts)
	if len(is) != 4 || is["model gpt"] != was["model gpt"] || is["model gpt (2)"] == was["model gpt (2)"] {
		t.Errorf("was %v, is %v", was, is)
	}
}
