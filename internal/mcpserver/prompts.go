package mcpserver

import (
	"context"
	"fmt"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
)

// flowPrompt is the first step of a flow, a PromptTemplate, as a prompt. The client gets
// the text for its own model; nothing else of the flow runs.
type flowPrompt struct {
	flow      *spec.Flow
	declared  *sdk.Prompt
	templates *runtime.App
}

// addPrompts adds a prompt for each flow that begins with a template of its inputs.
func (a *application) addPrompts(s *sdk.Server) error {
	for name, t := range a.flows {
		first := templateOf(t.flow)
		if first == nil {
			continue
		}
		// A document with the template as its only step fills it exactly as the flow does.
		alone := &spec.Flow{ID: t.flow.ID, Variables: t.flow.Variables, Inputs: first.Inputs, Outputs: first.Outputs, Steps: t.flow.Steps[:1]}
		alone.SetPlan()
		app, err := runtime.New(&spec.Application{ID: a.app.Spec().ID, Flows: []*spec.Flow{alone}}, runtime.Options{})
		if err != nil {
			return err
		}
		p := &flowPrompt{flow: t.flow, templates: app, declared: &sdk.Prompt{Name: name, Description: t.flow.Description}}
		for _, ref := range first.Inputs {
			p.declared.Arguments = append(p.declared.Arguments, &sdk.PromptArgument{
				Name: ref.ID, Description: ref.To.Type.String(), Required: !ref.To.IsOptional()})
		}
		a.prompts[name] = p
		s.AddPrompt(p.declared, func(ctx context.Context, req *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
			if !a.opts.Allowed(ctx, p.flow) {
				return nil, invalid("unknown prompt %q", req.Params.Name)
			}
			return p.get(ctx, req.Params.Arguments)
		})
	}
	return nil
}

// templateOf returns the first step of a flow if it is a template of the flow's inputs.
func templateOf(f *spec.Flow) *spec.StepBase {
	if len(f.Steps) == 0 {
		return nil
	}
	step, ok := f.Steps[0].Step.(interface {
		PromptText() string
		Common() *spec.StepBase
	})
	if !ok {
		return nil
	}
	first := step.Common()
	for _, ref := range first.Inputs {
		if !slices.ContainsFunc(f.Inputs, func(in spec.Ref[*spec.Variable]) bool { return in.To == ref.To }) {
			return nil
		}
	}
	return first
}

// get fills the template.
func (p *flowPrompt) get(ctx context.Context, args map[string]string) (*sdk.GetPromptResult, error) {
	values := map[string]any{}
	for _, declared := range p.declared.Arguments {
		if given, ok := args[declared.Name]; ok {
			values[declared.Name] = value.ParseCell(given)
		} else if !declared.Required {
			values[declared.Name] = nil
		}
	}
	for name := range args {
		if !slices.ContainsFunc(p.declared.Arguments, func(a *sdk.PromptArgument) bool { return a.Name == name }) {
			return nil, invalid("the prompt has no argument %q", name)
		}
	}
	for row, err := range p.templates.Run(ctx, p.flow.ID, slices.Values([]runtime.Input{runtime.Row(values)})) {
		switch {
		case err != nil:
			return nil, err
		case row.Err != nil:
			return nil, invalid("%s", row.Err)
		}
		for _, x := range row.Outputs() {
			message := &sdk.PromptMessage{Role: "user", Content: &sdk.TextContent{Text: value.Text(x)}}
			return &sdk.GetPromptResult{Description: p.declared.Description, Messages: []*sdk.PromptMessage{message}}, nil
		}
	}
	return nil, context.Cause(ctx)
}

// invalid returns the protocol's error for invalid parameters.
func invalid(format string, args ...any) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf(format, args...)}
}
