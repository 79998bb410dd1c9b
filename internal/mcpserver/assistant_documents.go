package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/diagram"
	"github.com/qtype-dev/qtype/internal/lint"
	"github.com/qtype-dev/qtype/internal/parts"
	"github.com/qtype-dev/qtype/internal/semdiff"
	"github.com/qtype-dev/qtype/loader"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/diag"
	"github.com/qtype-dev/qtype/validate"
)

// unsetVariable is the code of warnings about environment variables that are not set.
// It does not apply: documents are checked without an environment.
const unsetVariable = "QT005"

// check checks the text of a document. The document has no environment and reads no
// files, neither local nor remote. name is its name in diagnostics.
func check(ctx context.Context, name, yaml string) (*spec.Document, diag.List) {
	loaded, list := loader.LoadBytes(ctx, name, []byte(yaml), loader.Options{
		Lookup: func(string) (string, bool) { return "", false }, NoDotEnv: true, Offline: true,
	})
	list = append(list, validate.CheckFor(loaded.Document, parts.From(ctx))...)
	list = lint.ApplyIgnores(loaded.Files, list)
	list = slices.DeleteFunc(list, func(d diag.Diagnostic) bool { return d.Code == unsetVariable })
	list.Sort()
	return loaded.Document, list
}

// diagnostic is a diagnostic as structured content.
type diagnostic struct {
	Code       string `json:"code"`
	Severity   string `json:"severity"`
	Message    string `json:"message"`
	Line       int    `json:"line,omitempty"`
	Column     int    `json:"column,omitempty"`
	EndLine    int    `json:"end_line,omitempty"`
	EndColumn  int    `json:"end_column,omitempty"`
	Hint       string `json:"hint,omitempty"`
	Suggestion string `json:"suggestion,omitempty"`
}

// diagnostics converts a list to structured content.
func diagnostics(list diag.List) []diagnostic {
	all := []diagnostic{}
	for _, d := range list {
		all = append(all, diagnostic{d.Code, string(d.Severity), d.Message,
			d.Span.Start.Line, d.Span.Start.Column, d.Span.End.Line, d.Span.End.Column, d.Hint, d.Suggestion})
	}
	return all
}

// lines returns a line for each diagnostic, with code, position and suggestion.
func lines(list diag.List) string {
	var all []string
	for _, d := range list {
		line := d.Error()
		if d.Severity == diag.Warning {
			line = "warning: " + line
		}
		all = append(all, line)
	}
	return strings.Join(all, "\n")
}

// validateDocument is the tool validate_qtype_yaml.
func validateDocument(ctx context.Context, args arguments) (*answer, error) {
	given, err := args.texts("yaml_content")
	if err != nil {
		return nil, err
	}
	_, list := check(ctx, "document", given[0])
	result := "✅ Valid QType Code"
	switch {
	case list.Errors() > 0:
		result = "❌ Validation Error: " + lines(list)
	case len(list) > 0:
		result += "\n" + lines(list)
	}
	return &answer{[]string{result}, map[string]any{"result": result, "diagnostics": diagnostics(list)}}, nil
}

// mermaid is the result of visualize_qtype_architecture.
type mermaid struct {
	Code     string      `json:"mermaid_code"`
	Markdown string      `json:"mermaid_markdown"`
	Next     string      `json:"suggested_next_tool"`
	Preview  mermaidCode `json:"mermaid_diagram_preview_input"`
	Guidance string      `json:"preview_instructions"`
}

// mermaidCode are the arguments of the previewing tool of VS Code.
type mermaidCode struct {
	Code string `json:"code"`
}

// visualize is the tool visualize_qtype_architecture.
func visualize(ctx context.Context, args arguments) (*answer, error) {
	given, err := args.texts("yaml_content")
	if err != nil {
		return nil, err
	}
	document, list := check(ctx, "document", given[0])
	if list.Errors() > 0 {
		return nil, errors.New("visualization failed: " + lines(list))
	}
	var b strings.Builder
	if err := diagram.Write(&b, document, diagram.Mermaid); err != nil {
		return nil, fmt.Errorf("visualization failed: %w", err)
	}
	code := strings.TrimRight(b.String(), "\n")
	return object(mermaid{
		Code: code, Markdown: "```mermaid\n" + code + "\n```", Next: "mermaid-diagram-preview", Preview: mermaidCode{code},
		Guidance: "Call the mermaid-diagram-preview tool with mermaid_diagram_preview_input if it is available; otherwise show mermaid_markdown.",
	}), nil
}

// change is a change as structured content.
type change struct {
	Impact  string `json:"impact"`
	Action  string `json:"action"`
	Subject string `json:"subject"`
	Field   string `json:"field,omitempty"`
	Message string `json:"message"`
	Reason  string `json:"reason,omitempty"`
}

// compare is the tool diff.
func compare(ctx context.Context, args arguments) (*answer, error) {
	given, err := args.texts("before", "after")
	if err != nil {
		return nil, err
	}
	before, list := check(ctx, "before", given[0])
	after, more := check(ctx, "after", given[1])
	if list = append(list, more...); list.Errors() > 0 {
		return nil, errors.New("documents with errors cannot be compared: " + lines(list))
	}
	changes := semdiff.Documents(before, after)
	var b strings.Builder
	if err := semdiff.Text(&b, changes, false); err != nil {
		return nil, err
	}
	all := []change{}
	for _, c := range changes {
		all = append(all, change{string(c.Impact), string(c.Action), c.Subject(), c.Field, c.Message, c.Reason})
	}
	result := strings.TrimLeft(b.String()+"\n"+semdiff.Summary(changes), "\n")
	return &answer{[]string{result}, map[string]any{"result": result, "changes": all}}, nil
}

// explain is the tool explain.
func (a *assistant) explain(_ context.Context, args arguments) (*answer, error) {
	given, err := args.texts("code")
	if err != nil {
		return nil, err
	}
	code := strings.ToUpper(strings.TrimSpace(given[0]))
	var codes []string
	for _, r := range a.opts.Rules {
		if r.Code == code {
			return text(explanation(r)), nil
		}
		codes = append(codes, r.Code)
	}
	return nil, fmt.Errorf("no diagnostic has the code %q%s", given[0], diag.DidYouMean(code, codes))
}

// explanation returns the text about a rule, with its examples.
func explanation(r diag.Rule) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s (%s): %s\n\n%s\n", r.Code, r.Severity, r.Title, strings.TrimSpace(r.Doc))
	for _, example := range []struct{ name, text string }{{"Wrong", r.Wrong}, {"Right", r.Right}} {
		if text := strings.Trim(example.text, "\n"); text != "" {
			fmt.Fprintf(&b, "\n%s:\n\n```yaml\n%s\n```\n", example.name, text)
		}
	}
	return b.String()
}

// definitions returns the definitions of the schema by name.
func (a *assistant) definitions() (map[string]json.RawMessage, error) {
	var schema struct {
		Definitions map[string]json.RawMessage `json:"definitions"`
	}
	if err := json.Unmarshal([]byte(a.opts.Schema), &schema); err != nil {
		return nil, fmt.Errorf("the schema cannot be read: %w", err)
	}
	return schema.Definitions, nil
}

// listComponents is the tool list_components.
func (a *assistant) listComponents(_ context.Context, args arguments) (*answer, error) {
	if err := args.only(); err != nil {
		return nil, err
	}
	all, err := a.definitions()
	if err != nil {
		return nil, err
	}
	return list(slices.Sorted(maps.Keys(all))), nil
}

// list returns an answer of several texts.
func list(items []string) *answer { return &answer{items, map[string]any{"result": items}} }

// componentSchema is the tool get_component_schema.
func (a *assistant) componentSchema(_ context.Context, args arguments) (*answer, error) {
	given, err := args.texts("component_name")
	if err != nil {
		return nil, err
	}
	all, err := a.definitions()
	if err != nil {
		return nil, err
	}
	found, ok := all[given[0]]
	if !ok {
		return nil, fmt.Errorf("Component '%s' not found in schema. Available components: %s", //nolint:staticcheck // clients know this text
			given[0], strings.Join(slices.Sorted(maps.Keys(all)), ", "))
	}
	return object(found), nil
}
