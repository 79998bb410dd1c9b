package spec

import (
	"iter"
	"slices"
)

// IsComputation reports whether the steps of the flow, and of the flows that it runs, only
// compute: they call no models, tools or servers and use no memories or files. The tag
// `work:"compute"` of the embedded StepBase declares it for a type of step.
func (p *Plan) IsComputation() bool { return onlyCompute(p.All()) }

// IsComputation reports whether the step, and the steps of the flows that it runs, only
// compute; see Plan.IsComputation.
func (p *StepPlan) IsComputation() bool { return onlyCompute(p.All()) }

func onlyCompute(all iter.Seq[*StepPlan]) bool {
	for s := range all {
		if !s.OnlyComputes() {
			return false
		}
	}
	return true
}

// OnlyComputes reports whether the step itself reaches nothing but the values of its row.
func (p *StepPlan) OnlyComputes() bool {
	return stepTag(p.Step, "work") == "compute" && len(p.Memories()) == 0 && len(p.Tools()) == 0
}

// IsQuick reports whether no row of the step, and of the flows that it runs, waits for anything: they only compute, or
// call mock models that answer at once.
func (p *StepPlan) IsQuick() bool {
	for s := range p.All() {
		if !s.OnlyComputes() && !s.callsQuickMock() {
			return false
		}
	}
	return true
}

// callsQuickMock reports whether all that the step uses are mock models that answer at once.
func (p *StepPlan) callsQuickMock() bool {
	models := 0
	for _, u := range p.Uses {
		if u.Role == RoleVariable {
			continue
		}
		m, ok := u.Ref.Entity().(*Model)
		if !ok || u.Role != RoleChatModel || !m.isQuickMock() {
			return false
		}
		models++
	}
	return models > 0
}

// isQuickMock reports whether the model is a mock whose calls never wait, nor fail and are repeated.
func (m *Model) isQuickMock() bool {
	row, _ := m.ProviderRow()
	waits := func(r *MockRule) bool { return r.Delay > 0 || r.Error != "" }
	return row.Client == MockClient && m.RateLimit == nil && len(m.Fallbacks) == 0 && !slices.ContainsFunc(m.Rules, waits)
}
