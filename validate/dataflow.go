package validate

import (
	"slices"

	"github.com/qtype-dev/qtype/spec"
)

// port is a reference to a variable that a step or flow reads or writes.
type port = *spec.Ref[*spec.Variable]

// portsOf returns pointers to the references.
func portsOf(refs []spec.Ref[*spec.Variable]) []port {
	ports := make([]port, len(refs))
	for i := range refs {
		ports[i] = &refs[i]
	}
	return ports
}

// containsPort compares by id, because ports may be unlinked.
func containsPort(ports []port, id string) bool {
	return slices.ContainsFunc(ports, func(p port) bool { return p.ID == id })
}

// typed returns the type of a port, and whether it is known.
func (p *checker) typed(at port) (spec.Type, bool) {
	if at.To == nil || p.untyped[at.To] {
		return spec.Type{}, false
	}
	return at.To.Type, true
}

// dataflow is the plan of a flow and how much of it is known.
type dataflow struct {
	steps    []*spec.StepPlan
	read     bool // every step could be read
	complete bool // every step and reference could be read, so a missing value is an error

	written map[*spec.Variable][]int // the indexes of the steps that write each variable, in order
	readers map[*spec.Variable][]int // the indexes of the steps that read each variable by its name
	readAll []int                    // the indexes of the steps that read all values of the row
}

// indexVariables notes which steps read and write each variable.
func (d *dataflow) indexVariables() {
	d.written, d.readers = map[*spec.Variable][]int{}, map[*spec.Variable][]int{}
	for i, s := range d.steps {
		for _, out := range s.Writes {
			d.written[out.To] = append(d.written[out.To], i)
		}
		for _, in := range s.Reads {
			d.readers[in.To] = append(d.readers[in.To], i)
		}
		if s.ReadsAll {
			d.readAll = append(d.readAll, i)
		}
	}
}

// after returns the first of some indexes, in order, that is greater than i; the number of
// steps if there is none.
func (d *dataflow) after(indexes []int, i int) int {
	if at, _ := slices.BinarySearch(indexes, i+1); at < len(indexes) {
		return indexes[at]
	}
	return len(d.steps)
}

// overwriter returns the first step after step i that writes v; nil if there is none, or
// a step up to that one reads v.
func (d *dataflow) overwriter(i int, v *spec.Variable) spec.Step {
	next := d.after(d.written[v], i)
	read := min(d.after(d.readers[v], i), d.after(d.readAll, i))
	if next == len(d.steps) || read <= next || d.steps[next].Maybe {
		return nil
	}
	return d.steps[next].Step
}

// makePlans computes the plan of every flow. All references must be linked.
func (p *checker) makePlans() {
	for _, f := range p.flows {
		f.SetPlan()
		for _, s := range f.Plan().Steps {
			p.steps[s.Step] = s
		}
	}
}

// stepPlan returns the plan of a step.
func (p *checker) stepPlan(s spec.Step) *spec.StepPlan {
	if p.steps[s] == nil {
		p.steps[s] = spec.PlanStep(s)
	}
	return p.steps[s]
}

// planOf returns the plan of a flow.
func (p *checker) planOf(f *spec.Flow) *dataflow {
	if known := p.plans[f]; known != nil {
		return known
	}
	made := &dataflow{
		steps:    f.Plan().Steps,
		read:     f.Position().Complete("steps"),
		complete: allLinked(portsOf(f.Inputs)) && f.Position().Complete("inputs", "steps"),
	}
	p.plans[f] = made
	if len(made.steps) < len(f.Steps) {
		made.read, made.complete = false, false
	}
	for _, s := range made.steps {
		made.read = made.read && allPortsRead(s.Step)
		made.complete = made.complete && made.read && allLinked(s.Writes)
	}
	made.indexVariables()
	return made
}

// allLinked reports whether every port is linked to a variable.
func allLinked(ports []port) bool {
	return !slices.ContainsFunc(ports, func(p port) bool { return p.To == nil })
}
