package spec

import "slices"

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

func linkedVariables(refs []Ref[*Variable]) []*Variable {
	var vars []*Variable
	for i := range refs {
		if refs[i].To != nil {
			vars = append(vars, refs[i].To)
		}
	}
	return vars
}
