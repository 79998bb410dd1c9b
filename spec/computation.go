package spec

// IsComputation reports whether the steps of the flow, and those of the flows that it
// runs, only compute: they call no models, tools or servers and use no memories or
// files. The tag `work:"compute"` of the embedded StepBase declares it for a type of step.
func (p *Plan) IsComputation() bool {
	for s := range p.All() {
		if stepTag(s.Step, "work") != "compute" || len(s.Memories()) > 0 || len(s.Tools()) > 0 {
			return false
		}
	}
	return true
}
