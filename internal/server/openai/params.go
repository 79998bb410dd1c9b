package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
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
