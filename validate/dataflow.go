package validate

import (
	"slices"

	"github.com/qtype-dev/qtype/spec"
)

// port is one variable that a step or flow reads or writes: what the document says,
// and the variable where it could be linked.
type port = *spec.Ref[*spec.Variable]

// portsOf are references as ports.
func portsOf(refs []spec.Ref[*spec.Variable]) []port {
	ports := make([]port, len(refs))
	for i := range refs {
		ports[i] = &refs[i]
	}
	return ports
}

// containsPort compares by id, not by variable: it must also work for what could not be linked.
func containsPort(ports []port, id string) bool {
	return slices.ContainsFunc(ports, func(p port) bool { return p.ID == id })
}

// typed is the type of a port, where it is known.
func (p *checker) typed(at port) (spec.Type, bool) {
	if at.To == nil || p.untyped[at.To] {
		return spec.Type{}, false
	}
	return at.To.Type, true
}

// dataflow is the plan of a flow, and how much of it is known.
type dataflow struct {
	steps    []*spec.StepPlan
	read     bool // every step could be read
	complete bool // every step and reference could be read, so what is missing is really missing
}

// makePlans computes the plan of every flow, now that all references are linked.
func (p *checker) makePlans() {
	for _, f := range p.flows {
		f.SetPlan()
		for _, s := range f.Plan().Steps {
			p.steps[s.Step] = s
		}
	}
}

// stepPlan is the plan of a step.
func (p *checker) stepPlan(s spec.Step) *spec.StepPlan {
	if p.steps[s] == nil {
		p.steps[s] = spec.PlanStep(s)
	}
	return p.steps[s]
}

// planOf is the plan of a flow.
func (p *checker) planOf(f *spec.Flow) *dataflow {
	if known := p.plans[f]; known != nil {
		return known
	}
	made := &dataflow{steps: f.Plan().Steps, read: f.Place().Complete("steps"), complete: allLinked(portsOf(f.Inputs)) && f.Place().Complete("inputs", "steps")}
	p.plans[f] = made
	if len(made.steps) < len(f.Steps) {
		made.read, made.complete = false, false
	}
	for _, s := range made.steps {
		made.read = made.read && allPortsRead(s.Step)
		made.complete = made.complete && made.read && allLinked(s.Writes)
	}
	return made
}

// allLinked reports whether every port names a variable.
func allLinked(ports []port) bool {
	return !slices.ContainsFunc(ports, func(p port) bool { return p.To == nil })
}
