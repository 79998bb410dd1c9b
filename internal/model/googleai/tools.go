package googleai

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/model"
)

// function is a tool in Gemini's format.
type function struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parametersJsonSchema,omitempty"`
}

// hostedTools are the names of Google's tools by their kind in documents.
var hostedTools = map[string]string{
	"google_search": "googleSearch", "web_search": "googleSearch", "grounding": "googleSearch",
	"url_context": "urlContext", "web_fetch": "urlContext",
	"code_execution": "codeExecution", "google_maps": "googleMaps", "file_search": "fileSearch", "computer_use": "computerUse",
	"enterprise_web_search": "enterpriseWebSearch", "retrieval": "retrieval",
}

// serviceOnly are the tools that only one of Google's services has.
var serviceOnly = map[string]string{"fileSearch": geminiAPI, "enterpriseWebSearch": vertexAPI, "retrieval": vertexAPI}

// addTools adds the tools to a request: functions, and those that Google runs.
func (p *protocol) addTools(fields map[string]any, req model.Request) error {
	var functions []function
	var list []map[string]any
	for _, t := range req.Tools {
		switch {
		case t.Hosted != "":
			own, err := p.hosted(t)
			if err != nil {
				return err
			}
			list = append(list, own)
		default:
			functions = append(functions, function{Name: t.Name, Description: t.Description, Parameters: t.Parameters})
		}
	}
	if len(functions) > 0 {
		bound := !req.NoCalls && !slices.ContainsFunc(req.Tools, func(t model.Tool) bool { return t.Hosted == "" && !t.Strict })
		if _, set := fields["toolConfig"]; bound && !set {
			fields["toolConfig"] = json.RawMessage(`{"functionCallingConfig":{"mode":"VALIDATED"}}`)
		}
		if err := setToolConfig(fields, len(list) > 0 && p.api == geminiAPI, req.NoCalls); err != nil {
			return err
		}
		list = append(list, map[string]any{"functionDeclarations": functions})
	}
	if len(list) > 0 {
		fields["tools"] = list
	}
	return nil
}

// hosted encodes a tool that Google runs.
func (p *protocol) hosted(t model.Tool) (map[string]any, error) {
	name := hostedTools[t.Hosted]
	if only := serviceOnly[name]; name == "" || only != "" && only != p.api {
		kinds := slices.DeleteFunc(slices.Sorted(maps.Keys(hostedTools)), func(kind string) bool {
			only := serviceOnly[hostedTools[kind]]
			return only != "" && only != p.api
		})
		return nil, fmt.Errorf("%s has no hosted tool %s; it has %s", p.Info.Provider, t.Hosted, strings.Join(kinds, ", "))
	}
	settings := json.RawMessage("{}")
	if len(t.Settings) > 0 {
		settings = camelNames(name, t.Settings)
	}
	return map[string]any{name: settings}, nil
}

// setToolConfig sets the toolConfig of a request with functions. If hosted tools are next to them, the
// model may use both in one turn, and the calls of hosted tools are parts of the answer.
func setToolConfig(fields map[string]any, mixed, noCalls bool) error {
	if !mixed && !noCalls {
		return nil
	}
	config := map[string]json.RawMessage{}
	if raw, ok := fields["toolConfig"].(json.RawMessage); ok && json.Unmarshal(raw, &config) != nil {
		return errors.New("inference_params: toolConfig must be a map")
	}
	if _, set := config["includeServerSideToolInvocations"]; mixed && !set {
		config["includeServerSideToolInvocations"] = json.RawMessage("true")
	}
	if noCalls {
		config["functionCallingConfig"] = json.RawMessage(`{"mode":"NONE"}`)
	}
	fields["toolConfig"] = config
	return nil
}
