package validate

import (
	"slices"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/source"
)

// port is one variable that a step or flow reads or writes.
type port struct {
	id   string         // what the document says
	span source.Span    // where it says so
	v    *spec.Variable // nil where it could not be linked
}

// portsOf joins the references that a list names and those that bindings and
// paths add, each variable once.
func portsOf(named []spec.Ref[*spec.Variable], derived []*spec.Ref[*spec.Variable]) []port {
	ports := make([]port, 0, len(named)+len(derived))
	add := func(r *spec.Ref[*spec.Variable]) { ports = append(ports, port{r.ID, r.Span, r.To}) }
	for i := range named {
		add(&named[i])
	}
	for _, r := range derived {
		if r != nil && !containsPort(ports, r.ID) {
			add(r)
		}
	}
	return ports
}

// containsPort compares by id, not by variable: it must also work for what could not be linked.
func containsPort(ports []port, id string) bool {
	return slices.ContainsFunc(ports, func(p port) bool { return p.id == id })
}

// inputsOf and outputsOf are what a step reads and writes, bindings and paths included (language.md 8.8).
func inputsOf(s spec.Step) []port  { return portsOf(s.Common().Inputs, s.Common().DerivedInputs) }
func outputsOf(s spec.Step) []port { return portsOf(s.Common().Outputs, s.Common().DerivedOutputs) }

// typed tells the type of a port, where it is known.
func (p *checker) typed(at port) (spec.Type, bool) {
	if at.v == nil || p.untyped[at.v] {
		return spec.Type{}, false
	}
	return at.v.Type, true
}

// dataflow is who reads and who writes each variable of a flow, computed once.
type dataflow struct {
	stages []dataflowStep
	read   bool // every step could be read
	whole  bool // every step and reference could be read, so what is missing is really missing
}

// dataflowStep is one step of a plan.
type dataflowStep struct {
	step    spec.Step
	reused  source.Span // where the flow refers to a step that is written elsewhere; zero for one written here
	reads   []port
	writes  []port
	readAll bool // it reads whatever the row holds
}

// planOf is the plan of a flow.
func (p *checker) planOf(f *spec.Flow) *dataflow {
	if known := p.plans[f]; known != nil {
		return known
	}
	made := &dataflow{read: f.Place().Complete("steps"), whole: allLinked(portsOf(f.Inputs, nil)) && f.Place().Complete("inputs", "steps")}
	p.plans[f] = made
	for _, item := range f.Steps {
		if item == nil || item.Step == nil {
			made.read, made.whole = false, false
			continue
		}
		s := stageOf(item)
		made.read = made.read && wholePorts(item.Step)
		made.whole = made.whole && made.read && allLinked(s.writes)
		made.stages = append(made.stages, s)
	}
	return made
}

// stageOf is one place in a flow that holds a step.
func stageOf(item *spec.StepItem) dataflowStep {
	s := dataflowStep{step: item.Step, reused: item.Ref.Span, reads: inputsOf(item.Step), writes: outputsOf(item.Step)}
	if c, ok := item.Step.(*spec.Collect); ok {
		s.reads = append(s.reads, portsOf(c.By, nil)...)
	}
	// A FileWriter without inputs writes all columns (steps.md 5).
	if w, ok := item.Step.(*spec.FileWriter); ok {
		s.readAll = len(w.Inputs) == 0
	}
	return s
}

// allLinked tells whether every port names a variable.
func allLinked(ports []port) bool {
	return !slices.ContainsFunc(ports, func(p port) bool { return p.v == nil })
}
