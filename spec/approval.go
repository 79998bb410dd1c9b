package spec

import (
	"fmt"
	"slices"
	"strings"
)

// Approval is a tool of an Agent whose calls a person approves; {tool: ID, by: [role:NAME]} names who.
type Approval struct {
	Positioned
	// Tool is the id of the tool.
	Tool Ref[Tool] `yaml:"tool" jsonschema:"required" role:"-"`
	// By are those who may decide on a server: caller is who has started the run, role:NAME is everyone with the role. Without it the caller decides.
	By []string `yaml:"by"`
}

// ByCaller is the entry of Approval.By for the caller who has started the run.
const ByCaller = "caller"

// CheckDecider returns an error if a text is not a valid entry of Approval.By.
func CheckDecider(entry string) error {
	name, isRole := strings.CutPrefix(entry, RolePrefix)
	if entry == ByCaller || isRole && IsPrincipalName(name) {
		return nil
	}
	return fmt.Errorf("%q is neither caller nor role:NAME", entry)
}

// MayDecide reports whether a person with roles may decide about a call. by is Approval.By; isCaller
// reports whether the person has started the run.
func MayDecide(by, roles []string, isCaller bool) bool {
	if isCaller && (len(by) == 0 || slices.Contains(by, ByCaller)) {
		return true
	}
	return slices.ContainsFunc(roles, func(role string) bool { return slices.Contains(by, RolePrefix+role) })
}

// ApprovedTools returns the ids of the tools that the agent calls only after approval.
func (a *Agent) ApprovedTools() []string {
	ids := make([]string, len(a.Approve))
	for i, entry := range a.Approve {
		ids[i] = entry.Tool.ID
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

// DecidedByRoles returns the entries of the step about whose calls only people with a role may decide.
func (p *StepPlan) DecidedByRoles() []*Approval {
	s, ok := p.Step.(interface{ decidedByRoles() []*Approval })
	if !ok {
		return nil
	}
	return s.decidedByRoles()
}

// decidedByRoles returns the entries that name roles only.
func (a *Agent) decidedByRoles() []*Approval {
	return slices.DeleteFunc(slices.Clone(a.Approve), func(e *Approval) bool { return len(e.By) == 0 || slices.Contains(e.By, ByCaller) })
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
