package mcpserver

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/qtype-dev/qtype/internal/convert/input"
	"github.com/qtype-dev/qtype/internal/convert/openapi"
	"github.com/qtype-dev/qtype/internal/convert/pymodule"
	"github.com/qtype-dev/qtype/loader"
	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/spec/source"
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

// maxFile is the maximum size of a converted file in bytes.
const maxFile = 16 << 20

// fileError is a file that a converter does not read. Its text does not depend on what
// is outside of the folder.
type fileError struct{ path, reason string }

func (e *fileError) Error() string { return fmt.Sprintf("the file '%s' %s", e.path, e.reason) }

// read reads a regular file below the folder, symbolic links resolved. Hidden files and
// files with other extensions are not read.
func (a *assistant) read(name string, extensions ...string) ([]byte, error) {
	if a.opts.Folder == nil {
		return nil, errors.New("this server reads no files")
	}
	local, err := below(a.opts.Folder.Name(), name)
	if err != nil {
		return nil, &fileError{name, "is outside of the working directory"}
	}
	hidden := func(part string) bool { return strings.HasPrefix(part, ".") && part != "." }
	if slices.ContainsFunc(strings.Split(filepath.ToSlash(local), "/"), hidden) || !slices.Contains(extensions, strings.ToLower(filepath.Ext(local))) {
		return nil, &fileError{name, "is not read: its name must end in " + strings.Join(extensions, " or ") + " and not be hidden"}
	}
	info, err := a.opts.Folder.Stat(local)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, &fileError{name, "does not exist"}
	case err != nil:
		return nil, &fileError{name, "cannot be read"}
	case !info.Mode().IsRegular():
		return nil, &fileError{name, "is not a regular file"}
	case info.Size() > maxFile:
		return nil, &fileError{name, fmt.Sprintf("is larger than %d MiB", maxFile>>20)}
	}
	f, err := a.opts.Folder.Open(local)
	if err != nil {
		return nil, &fileError{name, "cannot be read"}
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxFile))
}

// below returns a path relative to a folder.
func below(folder, name string) (string, error) {
	if filepath.IsAbs(name) {
		base, err := filepath.Abs(folder)
		if err != nil {
			return "", err
		}
		if name, err = filepath.Rel(base, name); err != nil {
			return "", err
		}
	}
	if name = filepath.Clean(name); !filepath.IsLocal(name) {
		return "", fs.ErrInvalid
	}
	return name, nil
}

// convertAPI is the tool convert_api_to_tools.
func (a *assistant) convertAPI(ctx context.Context, args arguments) (*answer, error) {
	given, err := args.texts("api_spec")
	if err != nil {
		return nil, err
	}
	spec, name := []byte(given[0]), "api"
	switch {
	case strings.Contains(given[0], "\n") || strings.HasPrefix(strings.TrimSpace(given[0]), "{"): // the text itself
	case strings.Contains(given[0], "://"):
		return nil, errors.New("API conversion failed: the server fetches no URLs; pass the text of the specification")
	default:
		if spec, err = a.read(given[0], ".json", ".yaml", ".yml"); err != nil {
			return nil, fmt.Errorf("API conversion failed: %w", err)
		}
		name = strings.TrimSuffix(path.Base(filepath.ToSlash(given[0])), path.Ext(given[0]))
	}
	open := func(context.Context, string) (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(spec)), nil }
	parsed, _, list := loader.LoadValue(ctx, "api_spec", loader.Options{Open: open, Offline: true, Limits: loader.Limits{FileBytes: maxFile}})
	if parsed == nil || list.Errors() > 0 {
		return nil, errors.New("API conversion failed: " + lines(list))
	}
	app, err := openapi.Convert(input.NewReport(nil), input.FromValue(parsed), name, nil)
	if err != nil {
		return nil, fmt.Errorf("API conversion failed: %w", err)
	}
	return text(app.YAML()), nil
}

// convertPython is the tool convert_python_to_tools. The module is parsed, not imported.
func (a *assistant) convertPython(ctx context.Context, args arguments) (*answer, error) {
	given, err := args.texts("module_path")
	if err != nil {
		return nil, err
	}
	name := given[0]
	if !pymodule.IsPath(name) {
		return nil, fmt.Errorf("Python module conversion failed: '%s' is not the dotted path of a module", name) //nolint:staticcheck // a name
	}
	file := strings.ReplaceAll(name, ".", "/")
	program, err := a.read(file+".py", ".py")
	if missing := new(fileError); errors.As(err, &missing) {
		program, err = a.read(file+"/__init__.py", ".py")
	}
	if err != nil {
		return nil, fmt.Errorf("Python module conversion failed: no module '%s' below the working directory: %w", name, err) //nolint:staticcheck // a name
	}
	python, err := a.python()
	if err != nil {
		return nil, err
	}
	app, err := pymodule.Convert(ctx, input.NewReport(nil), python, name, &source.File{Path: file + ".py", Text: program})
	if err != nil {
		return nil, fmt.Errorf("Python module conversion failed: %w", err) //nolint:staticcheck // a name
	}
	return text(app.YAML()), nil
}

// python returns the interpreter that parses modules.
func (a *assistant) python() (string, error) {
	if a.opts.Python != "" {
		return a.opts.Python, nil
	}
	return pymodule.Interpreter()
}
