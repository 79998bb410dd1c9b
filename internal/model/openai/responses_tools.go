package openai

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/qtype-dev/qtype/model"
)

// responseTool is a function, or a tool that gets a text in a grammar.
type responseTool struct {
	Type        string           `json:"type"` // function or custom
	Name        string           `json:"name"`
	Description string           `json:"description,omitempty"`
	Parameters  json.RawMessage  `json:"parameters,omitempty"`
	Strict      *bool            `json:"strict,omitempty"` // of a function: the API binds them to their schemas by default
	Format      *responseGrammar `json:"format,omitempty"`
	Deferred    bool             `json:"defer_loading,omitempty"`
}

// responseGrammar is a grammar in the form of this API.
type responseGrammar struct {
	Type       string `json:"type"` // always grammar
	Syntax     string `json:"syntax"`
	Definition string `json:"definition"`
}

// hostedTool returns a tool that OpenAI runs, without settings; nil for an unknown kind.
func hostedTool(kind string) object {
	switch kind {
	case "web_search", "file_search", "image_generation", "mcp", "tool_search":
		return object{"type": encode(kind)}
	case "code_execution":
		return object{"type": encode("code_interpreter"), "container": json.RawMessage(`{"type":"auto"}`)}
	}
	return nil
}

// responseTools declares tools. Deferred ones need a search of tools, which is added if no tool is one.
func responseTools(tools []model.Tool) ([]json.RawMessage, error) {
	var list []json.RawMessage
	for _, t := range tools {
		if t.Hosted == "" {
			list = append(list, encode(newResponseTool(t)))
			continue
		}
		tool := hostedTool(t.Hosted)
		if tool == nil {
			return nil, fmt.Errorf("tool %s: the Responses API has no hosted tool %s", t.Name, t.Hosted)
		}
		if t.Deferred {
			tool["defer_loading"] = json.RawMessage("true")
		}
		list = append(list, merged(t.Settings, tool))
	}
	deferred := slices.ContainsFunc(tools, func(t model.Tool) bool { return t.Deferred })
	if deferred && !slices.ContainsFunc(tools, func(t model.Tool) bool { return t.Hosted == "tool_search" }) {
		list = append(list, encode(hostedTool("tool_search")))
	}
	return list, nil
}

func newResponseTool(t model.Tool) responseTool {
	r := responseTool{Type: "custom", Name: t.Name, Description: t.Description, Deferred: t.Deferred}
	if t.Grammar != nil {
		r.Format = &responseGrammar{"grammar", t.Grammar.Syntax, t.Grammar.Definition}
		return r
	}
	strict := t.Strict && isStrictSchema(t.Parameters)
	r.Type, r.Parameters, r.Strict = "function", t.Parameters, &strict
	return r
}
