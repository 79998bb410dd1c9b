package airefinery

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/convert/document"
	"github.com/qtype-dev/qtype/internal/convert/input"
)

// function is the definition of a tool of a ToolUseAgent, which the file has as JSON in a text.
type function struct {
	Name        string
	Description string
	Parameters  struct {
		Properties map[string]property
		Required   []string
	}
}

// property is the schema of an argument.
type property struct {
	Type        any // a name or a list of names
	Description string
	Enum        []any
	Items       *property
}

// toolAgent writes the flow of a ToolUseAgent: an Agent whose tools are functions of the program,
// which client tools call.
func (p *project) toolAgent(a *agent) {
	p.common(a, "magic_prompt", "system_prompt", "builtin_tools", "custom_tools", "wait_time", "enable_interpreter")
	p.ignoreKeys(a, "enable_interpreter", "the model reads the results")
	for _, n := range p.List(a.config, "builtin_tools") {
		p.Unsupported(n, "agent %s: the tool %s of AI Refinery has no counterpart; declare a tool and list it in tools of the Agent", a.name, n.Describe())
	}
	wait := p.PositiveInt(a.config, "wait_time")
	for _, n := range p.List(a.config, "custom_tools") {
		if f := p.function(n); f != nil {
			p.clientFunction(a, n, f, wait)
		}
	}
	system, prompt := p.Text(a.config, "system_prompt"), p.Text(a.config, "magic_prompt")
	if system == "" && prompt == "" {
		system = a.flow.Description
	}
	p.writeSteps(a, system, prompt)
}

// function reads the definition of a tool; nil if it is not one.
func (p *project) function(n *input.Node) *function {
	var definition struct {
		Function *function
		function
	}
	if n.Kind >= input.List || json.Unmarshal([]byte(n.Text), &definition) != nil {
		p.Malformed(n, "an entry of custom_tools must be a text with the definition of a function as JSON")
		return nil
	}
	f := definition.Function
	if f == nil {
		f = &definition.function
	}
	if f.Name == "" {
		p.Malformed(n, "the function of custom_tools has no name")
		return nil
	}
	return f
}

// clientFunction declares the client tool of a function.
func (p *project) clientFunction(a *agent, n *input.Node, f *function, wait int) {
	id := p.ids.New(f.Name, "tool")
	about := strings.TrimSpace(f.Description)
	var inputs []*document.Block
	for _, name := range slices.Sorted(maps.Keys(f.Parameters.Properties)) {
		if !document.IsIdentifier(name) {
			p.Unsupported(n, "tool %s: the argument %q is left out, as its name is not an id", f.Name, name)
			continue
		}
		one := f.Parameters.Properties[name]
		kind := one.kind()
		if !slices.Contains(f.Parameters.Required, name) {
			kind += "?"
		}
		inputs = append(inputs, (&document.Block{Inline: true}).Set("id", name).Set("type", kind))
		if text := one.about(); text != "" {
			about += "\n" + name + ": " + text
		}
	}
	p.Assumed(n, "tool %s is a function of your program; answer the client tool %s", f.Name, id)
	tool := new(document.Block).Set("type", "ClientTool").Note("Answered at the terminal, or by --client-tool %s=COMMAND.", toolName(id)).
		Set("id", id).Set("name", toolName(id)).Set("description", strings.TrimSpace(about))
	if about == "" {
		tool.Entries[len(tool.Entries)-1].Value = "Function " + f.Name + "."
	}
	if wait > 0 {
		tool.Set("timeout", fmt.Sprintf("%ds", wait))
	}
	if len(inputs) > 0 {
		tool.Set("inputs", inputs)
	}
	tool.Set("outputs", []*document.Block{(&document.Block{Inline: true}).Set("id", "result").Set("type", "any")})
	p.app.Tools = append(p.app.Tools, tool)
	a.tools = append(a.tools, id)
}

// kind returns the type of an argument; values of several types, and objects, are any.
func (s property) kind() string {
	name, _ := s.Type.(string)
	if name == "" && len(s.Enum) > 0 {
		if _, isText := s.Enum[0].(string); isText {
			name = "string"
		}
	}
	switch name {
	case "string":
		return "text"
	case "integer":
		return "int"
	case "number":
		return "float"
	case "boolean":
		return "boolean"
	case "array":
		if s.Items != nil && !strings.HasPrefix(s.Items.kind(), "list[") {
			return "list[" + s.Items.kind() + "]"
		}
		return "list[any]"
	}
	return "any"
}

// about describes an argument for the model.
func (s property) about() string {
	text := document.OneLine(s.Description)
	if len(s.Enum) == 0 {
		return text
	}
	var values []string
	for _, v := range s.Enum {
		values = append(values, fmt.Sprint(v))
	}
	return strings.TrimSpace(text + " (one of " + strings.Join(values, ", ") + ")")
}
