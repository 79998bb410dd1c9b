package openai

import (
	"encoding/json"
	"fmt"

	"github.com/qtype-dev/qtype/internal/model/wire"
	"github.com/qtype-dev/qtype/model"
)

// customTool is a tool that gets a text in a grammar.
type customTool struct {
	Type   string `json:"type"` // always custom
	Custom struct {
		Name        string `json:"name"`
		Description string `json:"description,omitempty"`
		Format      struct {
			Type    string        `json:"type"` // always grammar
			Grammar grammarOfChat `json:"grammar"`
		} `json:"format"`
	} `json:"custom"`
}

// grammarOfChat is a grammar in the form of chat completions.
type grammarOfChat struct {
	Syntax     string `json:"syntax"`
	Definition string `json:"definition"`
}

// setTools declares tools. The protocol has no search of tools, so that deferred ones are declared
// as all others. Only OpenAI's own service has grammars; elsewhere the tool is a function.
func (p *protocol) setTools(fields map[string]any, req model.Request) error {
	var list []json.RawMessage
	for _, t := range req.Tools {
		switch {
		case t.Hosted == "web_search" && !p.mistral:
			if _, set := fields["web_search_options"]; !set {
				fields["web_search_options"] = settingsOf(t)
			}
		case t.Hosted != "":
			return fmt.Errorf("tool %s: chat completions have no hosted tool %s", t.Name, t.Hosted)
		case t.Grammar != nil && p.Own && !p.mistral:
			list = append(list, encode(newCustomTool(t)))
		default:
			f := wire.Functions([]model.Tool{t})[0]
			f.Function.Strict = t.Strict && isStrictSchema(t.Parameters)
			list = append(list, encode(f))
		}
	}
	if len(list) > 0 {
		fields["tools"] = list
		if req.NoCalls {
			fields["tool_choice"] = "none"
		}
	}
	return nil
}

func newCustomTool(t model.Tool) (c customTool) {
	c.Type, c.Custom.Name, c.Custom.Description = "custom", t.Name, t.Description
	c.Custom.Format.Type = "grammar"
	c.Custom.Format.Grammar = grammarOfChat{t.Grammar.Syntax, t.Grammar.Definition}
	return c
}

// settingsOf returns the settings of a hosted tool, an empty object for none.
func settingsOf(t model.Tool) json.RawMessage {
	if len(t.Settings) == 0 {
		return json.RawMessage("{}")
	}
	return t.Settings
}
