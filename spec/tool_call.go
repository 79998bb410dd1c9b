package spec

import (
	"slices"
	"strings"
)

// Arguments returns what a caller of the tool may give.
func (t *ToolBase) Arguments() []*Variable { return t.Inputs }

// Results returns the parts of the tool's result; declared reports whether the
// document declares them.
func (t *ToolBase) Results() (vars []*Variable, declared bool) { return t.Outputs, true }

// Arguments returns the inputs and the parameters.
func (t *APITool) Arguments() []*Variable {
	return slices.Concat(t.Inputs, t.Parameters, t.HeaderParameters)
}

// Arguments returns the inputs of the flow.
func (t *FlowTool) Arguments() []*Variable {
	if t.Flow.To == nil {
		return nil
	}
	return linkedVariables(t.Flow.To.Inputs)
}

// Results returns the outputs of the flow.
func (t *FlowTool) Results() (vars []*Variable, declared bool) {
	if t.Flow.To == nil {
		return nil, false
	}
	return linkedVariables(t.Flow.To.Outputs), true
}

// Results returns nothing: what a server's tools return is not declared.
func (t *MCPTool) Results() (vars []*Variable, declared bool) { return nil, false }

// UsesTools reports whether tools of the server may be called.
func (t *MCPTool) UsesTools() bool {
	return len(t.Tools) > 0 || len(t.Resources)+len(t.Prompts) == 0
}

// Allows reports whether the tool of a name may be called.
func (t *MCPTool) Allows(name string) bool {
	return slices.Contains(t.Tools, name) || len(t.Tools) == 0 && t.UsesTools()
}

// Single reports whether the document allows exactly one tool, resource or prompt.
func (t *MCPTool) Single() bool { return len(t.Tools)+len(t.Resources)+len(t.Prompts) == 1 }

// NeedsCaller reports whether calls of a tool may need an answer of the program that runs
// the flow, or of its user.
func NeedsCaller(t Tool) bool {
	switch t := t.(type) {
	case *ClientTool:
		return true
	case *MCPTool:
		return t.Elicitation
	}
	return false
}

func linkedVariables(refs []Ref[*Variable]) []*Variable {
	var vars []*Variable
	for i := range refs {
		if refs[i].To != nil {
			vars = append(vars, refs[i].To)
		}
	}
	return vars
}

// HasEffects reports whether a call may change something outside of the conversation, which
// undoing its turn does not undo: every call whose declaration does not say otherwise.
func (t *ToolBase) HasEffects() bool { return true }

// HasEffects reports whether the method may change something.
func (t *APITool) HasEffects() bool {
	return !slices.Contains([]string{"GET", "HEAD", "OPTIONS"}, strings.ToUpper(t.Method))
}

// HasEffects returns false for the functions of StandardModule, which compute.
func (t *PythonFunctionTool) HasEffects() bool { return t.ModulePath != StandardModule }

// HasEffects returns false: an IndexTool searches.
func (t *IndexTool) HasEffects() bool { return false }

// HasEffects reports whether other conversations see the values that the tool sets.
func (t *MemoryTool) HasEffects() bool {
	return !t.Search && !t.Read && t.Scope != ScopeSession && t.Scope != ""
}
