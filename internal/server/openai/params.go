package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/qtype-dev/qtype/internal/server/runs"
	"github.com/qtype-dev/qtype/internal/server/schema"
)

// params are the parameters of a request by their names.
type params map[string]json.RawMessage

// has reports whether a parameter is given and not null.
func (p params) has(name string) bool {
	raw, ok := p[name]
	return ok && string(bytes.TrimSpace(raw)) != "null"
}

// decode sets *to if the parameter is given. The error is a *problem.Problem.
func (p params) decode(name string, to any) error {
	if !p.has(name) {
		return nil
	}
	return decodeAt("/"+name, p[name], to)
}

// decodeAt decodes a value of the body. The error is a *problem.Problem.
func decodeAt(pointer string, raw json.RawMessage, to any) error {
	if err := json.Unmarshal(raw, to); err != nil {
		var wrong *json.UnmarshalTypeError
		if errors.As(err, &wrong) {
			if wrong.Field != "" {
				pointer += "/" + strings.ReplaceAll(wrong.Field, ".", "/")
			}
			return bad(pointer, "invalid_type", "expected %s, not a JSON %s", kindName(wrong), wrong.Value)
		}
		return bad(pointer, "invalid_type", "it has the wrong type")
	}
	return nil
}

// kindName returns the name of the JSON type that was expected.
func kindName(e *json.UnmarshalTypeError) string {
	switch e.Type.Kind().String() {
	case "string":
		return "a string"
	case "bool":
		return "a boolean"
	case "slice", "array":
		return "an array"
	case "int", "int64", "float64":
		return "a number"
	}
	return "an object"
}

// rule is the effect of a parameter that is not read elsewhere.
type rule struct {
	ignored bool                       // it has no effect: the document decides
	allow   func(json.RawMessage) bool // the values that change nothing
	refuse  string                     // why other values are refused
}

// noEffect are parameters that clients send habitually and for which the document decides.
var noEffect = rule{ignored: true}

// is allows one JSON value, and null.
func is(text string) func(json.RawMessage) bool {
	return func(raw json.RawMessage) bool { return string(bytes.TrimSpace(raw)) == text }
}

// oneOf allows several JSON values.
func oneOf(texts ...string) func(json.RawMessage) bool {
	return func(raw json.RawMessage) bool { return slices.Contains(texts, string(bytes.TrimSpace(raw))) }
}

// never allows no value.
func never(json.RawMessage) bool { return false }

const (
	outputRefusal = "the document declares the form of the answer"
	toolRefusal   = "use tools of type function"
)

// commonRules are those of all resources.
var commonRules = map[string]rule{
	"temperature": noEffect, "top_p": noEffect, "top_k": noEffect, "min_p": noEffect, "seed": noEffect, "user": noEffect,
	"service_tier": noEffect, "safety_identifier": noEffect, "prompt_cache_key": noEffect, "prompt_cache_retention": noEffect, "prompt_cache_options": noEffect,
	"top_logprobs": {allow: is("0"), refuse: "log probabilities are not available"},
}

// chatRules are the rules of chat completions.
var chatRules = map[string]rule{
	"max_tokens": noEffect, "max_completion_tokens": noEffect, "frequency_penalty": noEffect, "presence_penalty": noEffect,
	"repetition_penalty": noEffect, "reasoning_effort": noEffect, "verbosity": noEffect, "prediction": noEffect,
	"store":              {allow: is("false"), refuse: "chat completions are not stored; use the header X-Session-Id, or /v1/responses"},
	"n":                  {allow: is("1"), refuse: "a flow gives one answer"},
	"logprobs":           {allow: is("false"), refuse: "log probabilities are not available"},
	"logit_bias":         {allow: is("{}"), refuse: "the tokens of answers cannot be biased"},
	"modalities":         {allow: is(`["text"]`), refuse: outputRefusal},
	"audio":              {allow: never, refuse: outputRefusal},
	"web_search_options": {allow: never, refuse: "the document declares the tools of the server"},
	"functions":          {allow: is("[]"), refuse: toolRefusal},
	"function_call":      {allow: oneOf(`"none"`, `"auto"`), refuse: toolRefusal},
	"moderation":         {allow: never, refuse: "the document decides about moderation"},
}

// responseRules are the rules of responses.
var responseRules = map[string]rule{
	"max_output_tokens": noEffect, "reasoning": noEffect, "include": noEffect, "max_tool_calls": noEffect, "stream_options": noEffect,
	"background":         {allow: is("false"), refuse: "use POST /flows/{flow} with Prefer: respond-async"},
	"truncation":         {allow: is(`"disabled"`), refuse: "the policy of the memory decides which messages a model receives"},
	"prompt":             {allow: never, refuse: "the document declares the prompts"},
	"context_management": {allow: is("[]"), refuse: "the policy of the memory decides which messages a model receives"},
	"moderation":         {allow: never, refuse: "the document decides about moderation"},
}

// check refuses parameters that should change the answer but are not supported, and
// returns the names of parameters without an effect, or unknown. read are the names that the resource
// reads itself.
func (p params) check(rules map[string]rule, read ...string) (ignored []string, err error) {
	for _, name := range p.names() {
		if slices.Contains(read, name) {
			continue
		}
		r, ok := rules[name]
		if !ok {
			r, ok = commonRules[name]
		}
		switch {
		case (!ok || r.ignored) && p.has(name): // unknown ones are of other servers
			ignored = append(ignored, name)
		case ok && p.has(name) && !r.allow(p[name]):
			return nil, bad("/"+name, "unsupported_value", "the value is not supported: %s", r.refuse)
		}
	}
	return ignored, nil
}

// names returns the names of the parameters in alphabetical order.
func (p params) names() []string {
	names := make([]string, 0, len(p))
	for name := range p {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// reportIgnored names the parameters without effect in a header.
func reportIgnored(w http.ResponseWriter, ignored []string) {
	if len(ignored) > 0 {
		w.Header().Set(ignoredHeader, strings.Join(ignored, ", "))
	}
}

// pointerTo returns the pointer of an element of a list.
func pointerTo(list string, i int) string { return fmt.Sprintf("%s/%d", list, i) }

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
