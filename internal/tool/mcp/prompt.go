package mcp

import (
	"context"
	"encoding/json"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
)

// addPrompts adds the prompts of the document.
func (s *Server) addPrompts(ctx context.Context, session *sdk.ClientSession, caps *sdk.ServerCapabilities, found *offers) error {
	if len(s.declared.Prompts) == 0 {
		return nil
	}
	var listed []*sdk.Prompt
	if caps.Prompts != nil {
		var err error
		if listed, err = collect(session.Prompts(ctx, nil)); err != nil {
			return err
		}
	}
	known := map[string]*sdk.Prompt{}
	var names []string
	for _, p := range listed {
		known[p.Name], names = p, append(names, p.Name)
	}
	for _, name := range s.declared.Prompts {
		if known[name] == nil {
			return &answerError{unknown("prompt", name, names)}
		}
		found.tools = append(found.tools, s.promptOf(known[name]))
	}
	return nil
}

// promptOf makes a tool that returns the text of a prompt.
func (s *Server) promptOf(p *sdk.Prompt) *serverTool {
	r := s.newTool("prompt "+p.Name, "prompt_"+p.Name, p.Description)
	r.repeatable, r.info.ReadOnly = true, true
	properties, required := map[string]any{}, []string{}
	for _, a := range p.Arguments {
		r.info.Inputs = append(r.info.Inputs, &spec.Variable{ID: a.Name, Type: spec.Type{Name: "text"}, Optional: !a.Required})
		properties[a.Name] = map[string]any{"type": "string", "description": a.Description}
		if a.Required {
			required = append(required, a.Name)
		}
	}
	raw, err := json.Marshal(map[string]any{"type": "object", "properties": properties, "required": required})
	if err != nil { // objects, lists and texts always encode
		raw = []byte(`{"type":"object"}`)
	}
	r.info.Parameters = raw
	r.send = func(ctx context.Context, session *sdk.ClientSession, args map[string]any) (any, error) {
		given := map[string]string{}
		for name, v := range args {
			given[name] = value.Text(value.FromGo(v))
		}
		result, err := session.GetPrompt(ctx, &sdk.GetPromptParams{Name: p.Name, Arguments: given})
		if err != nil {
			return nil, err
		}
		return promptText(result.Messages), nil
	}
	return r
}

// promptText returns the texts of a prompt's messages, with an empty line between them.
func promptText(messages []*sdk.PromptMessage) string {
	lines := make([]string, 0, len(messages))
	for _, m := range messages {
		lines = append(lines, textOf(m.Content))
	}
	return strings.Join(lines, "\n\n")
}
