package mcpserver

import (
	"context"
	_ "embed" // the declarations of the tools
	"encoding/json"
	"fmt"
	"maps"
	"os"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/qtype-dev/qtype/spec/diag"
)

// AssistantOptions configure the server for coding assistants.
type AssistantOptions struct {
	Version string      // of the program
	Schema  string      // the JSON schema of documents
	Rules   []diag.Rule // the diagnostic codes that the tool explain knows
	Folder  *os.Root    // the only folder from which the converters read; nil: they read no files. The caller closes it.
	Python  string      // the Python 3 interpreter that parses modules; empty: python3 of PATH
}

// assistantTools are the declarations of the assistant's tools: names, descriptions and
// schemas. Clients know them from the Python implementation.
//
//go:embed assistant_tools.json
var assistantTools []byte

// instructions describe to a model what the server is for.
const instructions = `Tools for writing QType documents, which declare LLM applications in YAML.
Search the documentation and the examples first, look up the schema of each component
that you use, and validate every document that you write: fix all errors that
validate_qtype_yaml reports, and call explain for a code that is not clear.`

// assistant answers the calls of the assistant's tools.
type assistant struct {
	opts    AssistantOptions
	library *library
}

// answer is the result of a tool of the assistant.
type answer struct {
	texts      []string // the content: one text for each item of a list
	structured any      // the same for programs
}

// text returns an answer of one text.
func text(result string) *answer {
	return &answer{[]string{result}, map[string]any{"result": result}}
}

// object returns an answer of one object, and its JSON as text.
func object(v any) *answer { return &answer{[]string{indented(v)}, v} }

// indented returns a value as JSON for people.
func indented(v any) string {
	raw, err := json.MarshalIndent(v, "", "  ")
	if err != nil { // answers consist of texts, numbers, lists and objects
		return fmt.Sprint(v)
	}
	return string(raw)
}

// call is a tool's function. Its error becomes the text of an error result, as models
// should see it.
type call func(ctx context.Context, args arguments) (*answer, error)

// Assistant returns the server for coding assistants. It starts quickly: documentation,
// schema and index are read by the first call that needs them. The tools read nothing
// but what is embedded, and what the converters read from the options' folder.
func Assistant(opts AssistantOptions) (*Server, error) {
	a := &assistant{opts: opts, library: newLibrary()}
	s := newServer(opts.Version, false, &sdk.ServerOptions{
		Instructions: instructions,
		Capabilities: &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{}, Prompts: &sdk.PromptCapabilities{}, Resources: &sdk.ResourceCapabilities{}},
	}, coded(func(_ context.Context, err error) string { return err.Error() }))
	var declared []*sdk.Tool
	if err := json.Unmarshal(assistantTools, &declared); err != nil {
		return nil, fmt.Errorf("the tools of the assistant: %w", err)
	}
	calls := a.calls()
	for _, t := range declared {
		run, ok := calls[t.Name]
		if !ok {
			return nil, fmt.Errorf("the tools of the assistant: %s has no function", t.Name)
		}
		closed := false
		t.Annotations = &sdk.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true, OpenWorldHint: &closed}
		s.mcp.AddTool(t, handler(t, run))
	}
	return s, nil
}

// calls is the table of the tools' functions.
func (a *assistant) calls() map[string]call {
	all := map[string]call{
		"validate_qtype_yaml": validateDocument, "visualize_qtype_architecture": visualize, "diff": compare,
		"explain": a.explain, "list_components": a.listComponents, "get_component_schema": a.componentSchema,
		"convert_api_to_tools": a.convertAPI, "convert_python_to_tools": a.convertPython,
	}
	maps.Copy(all, a.library.calls())
	return all
}

// handler adapts a function to a tool of the protocol.
func handler(t *sdk.Tool, run call) sdk.ToolHandler {
	return func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		args, err := parseArguments(req.Params.Arguments)
		var done *answer
		if err == nil {
			done, err = run(ctx, args)
		}
		if err != nil {
			return failed(fmt.Sprintf("Error executing tool %s: %s", t.Name, err)), nil
		}
		result := &sdk.CallToolResult{StructuredContent: done.structured}
		for _, s := range done.texts {
			result.Content = append(result.Content, &sdk.TextContent{Text: s})
		}
		return result, nil
	}
}

// failed returns a result with an error that the model can read.
func failed(message string) *sdk.CallToolResult {
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: message}}, IsError: true}
}
