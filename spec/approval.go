package spec

// NeedsApproval reports whether the agent may call tools that require approval.
func (a *Agent) NeedsApproval() bool { return len(a.Approve) > 0 }

// NeedsApproval reports whether the step may call tools that require approval.
func (p *StepPlan) NeedsApproval() bool {
	s, ok := p.Step.(interface{ NeedsApproval() bool })
	return ok && s.NeedsApproval()
}

// AllTools lists the tools of an application and of the documents that it references.
func (a *Application) AllTools() []Tool {
	all := append([]Tool(nil), a.Tools...)
	for _, doc := range a.References {
		if doc.Application != nil {
			all = append(all, doc.Application.AllTools()...)
			continue
		}
		all = append(all, doc.Tools...)
	}
	return all
}
