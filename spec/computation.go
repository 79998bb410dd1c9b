package spec

import "iter"

// IsComputation reports whether the steps of the flow, and those of the flows that it
// runs, only compute: they call no models, tools or servers and use no memories or
// files. The tag `work:"compute"` of the embedded StepBase declares it for a type of step.
func (p *Plan) IsComputation() bool { return onlyCompute(p.All()) }

// IsComputation reports whether the step, and those of the flows that it runs, only
// compute; see Plan.IsComputation.
func (p *StepPlan) IsComputation() bool { return onlyCompute(p.All()) }

func onlyCompute(all iter.Seq[*StepPlan]) bool {
	for s := range all {
		if stepTag(s.Step, "work") != "compute" || len(s.Memories()) > 0 || len(s.Tools()) > 0 {
			return false
		}
	}
	return true
}
