package openai

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"sync"

	"github.com/qtype-dev/qtype/internal/server/runs"
	"github.com/qtype-dev/qtype/internal/server/schema"
)

// maxTools is the largest number of tools of a request, as in OpenAI's API.
const maxTools = 128

var toolName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`) })

// function is the declaration of a tool.
type function struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
}

// wireTool is a tool of chat completions, whose declaration is in Function, or of
// responses.
type wireTool struct {
	Type     string    `json:"type"`
	Function *function `json:"function"`
	function
}

// parseTools returns the tools that the client offers. nested reports that they have the
// form of chat completions. The error is a *problem.Problem.
func (p params) parseTools(flow *schema.Flow, nested bool) ([]runs.CallerTool, error) {
	var list []wireTool
	if err := p.decode("tools", &list); err != nil {
		return nil, err
	}
	if len(list) > maxTools {
		return nil, bad("/tools", "too_many_tools", "there are %d tools; at most %d are allowed", len(list), maxTools)
	}
	taken := serverTools(flow)
	var tools []runs.CallerTool
	for i, t := range list {
		pointer := pointerTo("/tools", i)
		if t.Type != "function" {
			return nil, bad(pointer+"/type", "unsupported_value", "tools of type %q are not available: %s", t.Type, toolRefusal)
		}
		f := &t.function
		if nested {
			if f = t.Function; f == nil {
				return nil, bad(pointer+"/function", "missing_required_parameter", "the parameter is missing")
			}
			pointer += "/function"
		}
		if !toolName().MatchString(f.Name) {
			return nil, bad(pointer+"/name", "invalid_value", "the name must have 1 to 64 letters, digits, _ and -")
		}
		if taken[f.Name] {
			return nil, bad(pointer+"/name", "invalid_value", "a tool of the application or another tool of the request has the name %s", f.Name)
		}
		taken[f.Name] = true
		parameters, err := parameterSchema(pointer, f.Parameters)
		if err != nil {
			return nil, err
		}
		tools = append(tools, runs.CallerTool{Name: f.Name, Description: f.Description, Parameters: parameters})
	}
	return tools, nil
}

// parameterSchema checks that the arguments of a tool are an object.
func parameterSchema(pointer string, raw json.RawMessage) ([]byte, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	var s struct {
		Type string `json:"type"`
	}
	if json.Unmarshal(raw, &s) != nil || s.Type != "object" {
		return nil, bad(pointer+"/parameters", "invalid_function_parameters", `the schema must have "type": "object"`)
	}
	var compact bytes.Buffer
	err := json.Compact(&compact, raw)
	return compact.Bytes(), err
}

// serverTools returns the names of the tools that the flow has itself.
func serverTools(flow *schema.Flow) map[string]bool {
	names := map[string]bool{}
	for s := range flow.Spec.Plan().All() {
		for _, t := range s.Tools() {
			names[t.Common().Name] = true
		}
	}
	return names
}

// offersTools reports whether the flow has a step that can offer tools of the client: an Agent, or
// a model that writes the answer.
func offersTools(flow *schema.Flow) bool {
	if len(flow.Answering()) > 0 {
		return true
	}
	for s := range flow.Spec.Plan().All() {
		if s.OffersCallerTools() {
			return true
		}
	}
	return false
}

// toolChoice is the parameter tool_choice as an object.
type toolChoice struct {
	wireTool
	Mode    string     `json:"mode"`
	Tools   []wireTool `json:"tools"`
	Allowed *struct {
		Mode  string     `json:"mode"`
		Tools []wireTool `json:"tools"`
	} `json:"allowed_tools"` // chat completions
}

// choose applies the parameter tool_choice to the tools. must reports that the model must call one
// of them. The error is a *problem.Problem.
func (p params) choose(tools []runs.CallerTool) (chosen []runs.CallerTool, must bool, err error) {
	if !p.has("tool_choice") {
		return tools, false, nil
	}
	var mode string
	if json.Unmarshal(p["tool_choice"], &mode) == nil {
		switch mode {
		case "auto", "required":
			return tools, mode == "required", nil
		case "none":
			return nil, false, nil
		}
		return nil, false, bad("/tool_choice", "invalid_value", "unknown choice %q: expected none, auto, required or a function", mode)
	}
	var c toolChoice
	if err := p.decode("tool_choice", &c); err != nil {
		return nil, false, err
	}
	switch {
	case c.Type == "function":
		c.Mode, c.Tools = "required", []wireTool{c.wireTool}
	case c.Allowed != nil:
		c.Mode, c.Tools = c.Allowed.Mode, c.Allowed.Tools
	case c.Type != "allowed_tools":
		return nil, false, bad("/tool_choice/type", "unsupported_value", "unknown choice %q: expected function or allowed_tools", c.Type)
	}
	tools = slices.DeleteFunc(tools, func(t runs.CallerTool) bool {
		return !slices.ContainsFunc(c.Tools, func(allowed wireTool) bool {
			return allowed.Name == t.Name || allowed.Function != nil && allowed.Function.Name == t.Name
		})
	})
	return tools, c.Mode == "required", nil
}

// clientTools returns the tools that the flow may call, whether a response has at most one call,
// and whether the model must call one.
func (p params) clientTools(flow *schema.Flow, nested bool) (tools []runs.CallerTool, single, must bool, err error) {
	if tools, err = p.parseTools(flow, nested); err != nil {
		return nil, false, false, err
	}
	if tools, must, err = p.choose(tools); err != nil {
		return nil, false, false, err
	}
	if must && len(tools) == 0 {
		return nil, false, false, bad("/tool_choice", "invalid_value", "there is no tool that could be called")
	}
	if len(tools) > 0 && !offersTools(flow) {
		return nil, false, false, bad("/tools", "unsupported_value", `no step of flow %s calls a model for the answer, so it cannot call tools; send none, or "tool_choice": "none"`, flow.ID())
	}
	parallel := true
	err = p.decode("parallel_tool_calls", &parallel)
	return tools, !parallel, must, err
}
