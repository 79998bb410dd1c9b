package spec

// ApprovedTools returns the ids of the tools that the agent calls only after approval.
func (a *Agent) ApprovedTools() []string {
	ids := make([]string, len(a.Approve))
	for i, ref := range a.Approve {
		ids[i] = ref.ID
	}
	return ids
}

// ApprovedTools returns the ids of the tools that the step calls only after approval.
func (p *StepPlan) ApprovedTools() []string {
	s, ok := p.Step.(interface{ ApprovedTools() []string })
	if !ok {
		return nil
	}
	return s.ApprovedTools()
}

// NeedsApproval reports whether the step may call tools that require approval.
func (p *StepPlan) NeedsApproval() bool { return len(p.ApprovedTools()) > 0 }

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
