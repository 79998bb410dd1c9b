package validate

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/loader"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
)

// manyEntities returns a document with n steps and variables: all steps of one flow write
// its outputs, those of another one misspelt variables. It has a tenth of n entities of
// other kinds.
func manyEntities(n int) string {
	var b strings.Builder
	b.WriteString("id: app\n")
	list := func(key, format string, count int) {
		fmt.Fprintf(&b, "%s:\n", key)
		for i := range count {
			b.WriteString(strings.ReplaceAll(format, "%", fmt.Sprint(i)))
		}
	}
	list("auths", "- {type: api_key, id: key%, api_key: 'k%'}\n", n/10)
	list("models", "- {type: Model, id: model%, provider: openai, model_id: m, auth: key%}\n", n/10)
	list("memories", "- {id: memory%}\n", n/10)
	list("types", "- {id: Type%, properties: {a: text}}\n", n/10)
	b.WriteString("flows:\n- id: outputs\n")
	list("  variables", "  - {id: v%, type: text}\n", n/2)
	b.WriteString("  inputs: [v0]\n")
	list("  outputs", "  - v%\n", n/2)
	list("  steps", "  - {type: PromptTemplate, id: s%, template: '{v0}', inputs: [v0], outputs: [v%]}\n", n/2)
	b.WriteString("- id: misspelt\n")
	list("  variables", "  - {id: w%, type: text}\n", n/2)
	b.WriteString("  inputs: [w0]\n")
	list("  steps", "  - {type: LLMInference, id: t%, model: model0, inputs: [w0], outputs: [W_%]}\n", n/2)
	for i := range n / 10 {
		fmt.Fprintf(&b, "- {id: flow%d, steps: [{type: InvokeFlow, id: call%d, flow: misspelt, output_bindings: {}}]}\n", i, i)
	}
	return b.String()
}

// linkedEntities returns a checker with everything that rules need.
func linkedEntities(t *testing.T, n int) *checker {
	t.Helper()
	loaded, found := loader.LoadBytes(context.Background(), "app.qtype.yaml", []byte(manyEntities(n)), loader.Options{})
	if found.Errors() > 0 {
		t.Fatal(found.Err())
	}
	p := collect(loaded.Document)
	p.declare()
	p.linkTypes()
	p.linkRefs()
	p.linkExpressions()
	p.makePlans()
	return p
}

// allocations returns the number of allocations that f makes.
func allocations(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.Mallocs - before.Mallocs
}

// TestRules_Growth: the work of each rule, counted in allocations, grows with the number
// of entities and not with its square: ten times as many make at most 15 times the work.
func TestRules_Growth(t *testing.T) {
	small, large := linkedEntities(t, 1000), linkedEntities(t, 10_000)
	for _, r := range rules() {
		if r.check.run == nil {
			continue
		}
		few := allocations(func() { small.apply([]rule{r}) })
		many := allocations(func() { large.apply([]rule{r}) })
		if many > 15*few+1000 {
			t.Errorf("%s: %d allocations for 1,000 entities, %d for 10,000", r.code, few, many)
		}
	}
}

// TestDataflow_Overwriter compares the index of variables with a search of all steps.
func TestDataflow_Overwriter(t *testing.T) {
	a, b := &spec.Variable{ID: "a"}, &spec.Variable{ID: "b"}
	refs := func(all ...*spec.Variable) (ports []port) {
		for _, v := range all {
			ports = append(ports, &spec.Ref[*spec.Variable]{To: v})
		}
		return ports
	}
	kinds := []*spec.StepPlan{{Writes: refs(a)}, {Writes: refs(b)}, {Reads: refs(a)}, {Reads: refs(a), Writes: refs(a, b)}, {ReadsAll: true}, {Writes: refs(a), Maybe: true}}
	for i := range 6 * 6 * 6 * 6 {
		d := &dataflow{}
		for n := i; len(d.steps) < 4; n /= 6 {
			s := *kinds[n%6]
			s.Step = &spec.Echo{}
			d.steps = append(d.steps, &s)
		}
		d.indexVariables()
		for from := range d.steps {
			for _, v := range []*spec.Variable{a, b} {
				if got, want := d.overwriter(from, v), searchOverwriter(d.steps[from+1:], v); got != want {
					t.Fatalf("steps %d, from %d, variable %s: got %p, want %p", i, from, v.ID, got, want)
				}
			}
		}
	}
}

// searchOverwriter returns the first step that writes v; nil if a step before it reads v.
func searchOverwriter(steps []*spec.StepPlan, v *spec.Variable) spec.Step {
	uses := func(ports []port) bool { return slices.ContainsFunc(ports, func(p port) bool { return p.To == v }) }
	for _, s := range steps {
		switch {
		case s.ReadsAll || uses(s.Reads):
			return nil
		case uses(s.Writes) && s.Maybe:
			return nil
		case uses(s.Writes):
			return s.Step
		}
	}
	return nil
}

// BenchmarkCheck_ManyEntities checks a document of n entities; an operation should take ten
// times as long for ten times as many.
func BenchmarkCheck_ManyEntities(b *testing.B) {
	for _, n := range []int{1000, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			text := []byte(manyEntities(n))
			b.ReportAllocs()
			for b.Loop() {
				loaded, _ := loader.LoadBytes(context.Background(), "app.qtype.yaml", text, loader.Options{})
				if found := Check(loaded.Document); len(found) == 0 {
					b.Fatal("no diagnostics")
				}
			}
		})
	}
}

// BenchmarkNearest searches for a misspelt name among many.
func BenchmarkNearest(b *testing.B) {
	var names []string
	for i := range 10_000 {
		names = append(names, fmt.Sprint("variable_", i))
	}
	b.ReportAllocs()
	for b.Loop() {
		_ = diag.Nearest("varable_7312x", names)
	}
}
