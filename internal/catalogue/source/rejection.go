package source

import (
	"fmt"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/catalogue"
)

// referenceRejection is a refused parameter in words.
type referenceRejection struct {
	Name       string `json:"name"`
	When       string `json:"when"`
	Error      string `json:"error"`
	Status     int    `json:"status"`
	Code       string `json:"code"`
	Param      string `json:"param"`
	Type       string `json:"type"`
	ThirdParty bool   `json:"third_party"`
	Note       string `json:"note"`
	Source     string `json:"source"`
}

// phrase is how the reference list names parameters or conditions, and what it means.
type phrase struct {
	text string
	rule catalogue.Rejection
}

// names are the ways in which the list names parameters and their values. Two rules for one
// name are two rejections.
var names = []phrase{
	{"temperature", catalogue.Rejection{Parameters: list("temperature")}},
	{"top_p, presence_penalty, frequency_penalty, logprobs, top_logprobs, logit_bias", catalogue.Rejection{Parameters: list("top_p, presence_penalty, frequency_penalty, logprobs, top_logprobs, logit_bias")}},
	{"max_tokens", catalogue.Rejection{Parameters: list("max_tokens")}},
	{"stop", catalogue.Rejection{Parameters: list("stop")}},
	{"reasoning_effort: minimal", catalogue.Rejection{Parameters: list("reasoning_effort"), Values: list("minimal")}},
	{"reasoning_effort: none", catalogue.Rejection{Parameters: list("reasoning_effort"), Values: list("none")}},
	{"reasoning_effort none", catalogue.Rejection{Parameters: list("reasoning_effort"), Values: list("none")}},
	{"reasoning_effort low/medium", catalogue.Rejection{Parameters: list("reasoning_effort"), Values: list("low, medium")}},
	{"prefill (last message of the assistant)", catalogue.Rejection{Parameters: list("prefill")}},
	{"tool_choice any or tool", catalogue.Rejection{Parameters: list("tool_choice"), Values: list("any, tool")}},
	{"tool_choice required or named", catalogue.Rejection{Parameters: list("tool_choice"), Values: list("required, named")}},
	{"temperature, top_p, top_k", catalogue.Rejection{Parameters: list("temperature, top_p, top_k")}},
	{"temperature, topP, maxTokens", catalogue.Rejection{Parameters: list("temperature, topP, maxTokens")}},
	{"thinking.type enabled, budget_tokens", catalogue.Rejection{Parameters: list("thinking.type"), Values: list("enabled")}},
	{"thinking.type enabled, budget_tokens", catalogue.Rejection{Parameters: list("thinking.budget_tokens")}},
	{"thinking.type adaptive", catalogue.Rejection{Parameters: list("thinking.type"), Values: list("adaptive")}},
	{"thinking.type disabled", catalogue.Rejection{Parameters: list("thinking.type"), Values: list("disabled")}},
	{"thinking.type disabled with effort xhigh or max", catalogue.Rejection{Parameters: list("thinking.type"), Values: list("disabled"), When: catalogue.AtEfforts, Efforts: list("xhigh, max")}},
	{"prompt_cache_options.ttl '12h' in Chat Completions", catalogue.Rejection{Parameters: list("prompt_cache_options.ttl"), Values: list("12h"), API: catalogue.ChatCompletions}},
	{"presence_penalty, frequency_penalty, stop", catalogue.Rejection{Parameters: list("presence_penalty, frequency_penalty, stop")}},
	{"functionCall without thoughtSignature", catalogue.Rejection{Parameters: list("functionCall.thoughtSignature"), Missing: true}},
	{"a tool call of the current turn without reasoning_content", catalogue.Rejection{Parameters: list("reasoning_content"), Missing: true}},
	{"thinkingLevel minimal", catalogue.Rejection{Parameters: list("thinkingLevel"), Values: list("minimal")}},
	{"thinkingBudget", catalogue.Rejection{Parameters: list("thinkingBudget")}},
	{"thinkingBudget 0", catalogue.Rejection{Parameters: list("thinkingBudget"), Values: list("0")}},
	{"response_format json_schema in Chat Completions", catalogue.Rejection{Parameters: list("response_format"), Values: list("json_schema"), API: catalogue.ChatCompletions}},
	{"tools (function tools) in /v1/chat/completions", catalogue.Rejection{Parameters: list("tools"), API: catalogue.ChatCompletions}},
}

// conditions are the ways in which the list describes when a parameter is refused.
var conditions = []phrase{
	{"always", catalogue.Rejection{When: catalogue.Always}},
	{"Chat Completions, always", catalogue.Rejection{When: catalogue.Always, API: catalogue.ChatCompletions}},
	{"Chat Completions; the SDK names only o3 and o4-mini, reports name GPT-5 too", catalogue.Rejection{When: catalogue.Always, API: catalogue.ChatCompletions}},
	{"always, for any value but 1", catalogue.Rejection{When: catalogue.Always, Except: list("1")}},
	{"any value but the default", catalogue.Rejection{When: catalogue.Always, Except: list("default")}},
	{"while reasoning is on, for any value but 1", catalogue.Rejection{When: catalogue.ReasoningOn, Except: list("1")}},
	{"while reasoning is on", catalogue.Rejection{When: catalogue.ReasoningOn}},
	{"while thinking is on", catalogue.Rejection{When: catalogue.ReasoningOn}},
	{"reasoning models", catalogue.Rejection{When: catalogue.ReasoningOn}},
	{"with thinking.type enabled", catalogue.Rejection{When: catalogue.ThinkingEnabled}},
	{"maxReasoningEffort high", catalogue.Rejection{When: catalogue.AtEfforts, Efforts: list("high")}},
	{"first functionCall of each step of the current turn", catalogue.Rejection{When: catalogue.InToolTurn}},
	{"always (Argon: official statement by way of LiteLLM)", catalogue.Rejection{When: catalogue.Always}},
	{"gemini-2.5-pro", catalogue.Rejection{When: catalogue.Always}},
	{"never: reasoning cannot be turned off", catalogue.Rejection{When: catalogue.Always}},
	{"only with reasoning_effort 'none' sent explicitly", catalogue.Rejection{When: catalogue.ReasoningOn}},
	{"yes while reasoning_effort is omitted or none", catalogue.Rejection{When: catalogue.ReasoningOn}},
}

// list splits names.
func list(names string) []string { return strings.Split(names, ", ") }

// rejections converts the refused parameters.
func (r *referenceRow) rejections() ([]catalogue.Rejection, error) {
	var made []catalogue.Rejection
	for _, one := range r.Rejected {
		at := slices.IndexFunc(conditions, func(p phrase) bool { return p.text == one.When })
		if at < 0 {
			return nil, fmt.Errorf("the condition %q of %q is not in the table", one.When, one.Name)
		}
		known := false
		for _, name := range names {
			if name.text == one.Name {
				known = true
				made = append(made, one.rule(name.rule, conditions[at].rule))
			}
		}
		if !known {
			return nil, fmt.Errorf("the refused parameter %q is not in the table", one.Name)
		}
	}
	return made, nil
}

// rule joins what the name and the condition say with the rest of the row.
func (one referenceRejection) rule(name, condition catalogue.Rejection) catalogue.Rejection {
	name.Except = condition.Except
	if name.When == "" {
		name.When, name.Efforts = condition.When, condition.Efforts
	}
	if name.API == "" {
		name.API = condition.API
	}
	name.Status, name.Code, name.Param, name.Type, name.Error = one.Status, one.Code, one.Param, one.Type, one.Error
	name.Text, name.Note, name.ThirdParty = one.Name+": "+one.When, one.Note, one.ThirdParty
	if one.Source != "" {
		name.Sources = list(one.Source)
	}
	return name
}
