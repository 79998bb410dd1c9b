package promptflow

import (
	"cmp"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"github.com/qtype-dev/qtype/distribution/converters/jq"
	"github.com/qtype-dev/qtype/internal/convert/document"
	"github.com/qtype-dev/qtype/internal/convert/input"
	"github.com/qtype-dev/qtype/spec/source"
)

// node adds the steps of a node.
func (c *conversion) node(n *input.Node) {
	name, kind := n.Get("name").Text, c.RequiredText(n, "type", "node "+n.Get("name").Text)
	c.CheckKeys(n, "node "+name, "name", "type", "source", "inputs", "connection", "api", "provider", "module", "activate", "aggregation", "use_variants", "comment", "tool")
	if c.Bool(n, "aggregation") {
		c.Unsupported(n, "node %s reads the results of all rows; metrics over rows are those of qtype eval", name)
		return
	}
	if a := n.Get("activate"); a != nil {
		c.Unsupported(a, "node %s runs only under a condition; here it always runs", name)
	}
	switch kind {
	case "":
	case "llm":
		c.callModel(n, name)
	case "prompt":
		c.fillPrompt(n, name)
	case "python":
		c.callPython(n, name)
	default:
		c.callClient(n, name, kind)
	}
}

// sourceOf returns the file that a node names.
func (c *conversion) sourceOf(n *input.Node, name string) *source.File {
	s := c.Map(n, "source")
	if kind := c.Text(s, "type"); kind != "" && kind != "code" {
		c.Malformed(s.Get("type"), "source of node %s: unknown type %q", name, kind)
	}
	if s == nil {
		c.Malformed(n.Use(), "node %s has no source", name)
		return nil
	}
	at := c.RequiredText(s, "path", "source of node "+name)
	if at == "" {
		return nil
	}
	if !filepath.IsLocal(filepath.FromSlash(at)) {
		c.Malformed(s.Get("path"), "node %s: the path is not below the folder of the flow", name)
		c.Unsupported(n.Use(), "node %s is left out", name)
		return nil
	}
	file, err := c.read(at)
	if err != nil {
		c.Malformed(s.Get("path"), "node %s: %s", name, err)
		c.Unsupported(n.Use(), "node %s is left out", name)
		return nil
	}
	return file
}

// result declares the variable of a node's result.
func (c *conversion) result(name string, of *document.Type) string {
	wanted := name + "_output"
	if c.wanted[name] != "" {
		wanted = c.wanted[name]
	}
	return c.variable(name+".output", wanted, of)
}

// value returns the variable that a parameter of a node reads; empty for a constant, and if
// it is reported.
func (c *conversion) value(n *input.Node) string {
	of, isReference := reference(n.Scalar())
	if !isReference || n.Kind != input.Text {
		return ""
	}
	if id := c.names[of]; id != "" {
		return id
	}
	if of == "inputs."+c.history {
		c.Unsupported(n, "${%s} is the conversation, which only templates of llm nodes can read", of)
		return ""
	}
	parts := strings.Split(of, ".")
	if len(parts) > 2 {
		if id := c.names[parts[0]+"."+parts[1]]; id != "" {
			c.Unsupported(n, "${%s} is a part of a result; the step gets the whole result", of)
			return id
		}
	}
	c.Malformed(n, "${%s} is no input of the flow and no result of a node", of)
	return ""
}

// addStep appends a step to the flow.
func (c *conversion) addStep(b *document.Block, reads, writes []string) {
	c.flow.Steps = append(c.flow.Steps, &document.Step{Block: b, Reads: reads, Writes: writes})
}

// fillPrompt adds the step of a prompt node.
func (c *conversion) fillPrompt(n *input.Node, name string) {
	file := c.sourceOf(n, name)
	if file == nil {
		return
	}
	t := c.parse(file, 0, "")
	var all []part
	for _, s := range t.sections {
		if s.role != "" {
			all = append(all, part{text: s.marker})
		}
		all = append(all, s.parts...)
	}
	c.unread(name, c.parameters(n), all)
	text, reads := c.bind(all, c.parameters(n), file)
	id := c.result(name, &document.Type{Kind: document.Text, Declared: true})
	c.addTemplate(name, text, reads, id)
}

// addTemplate adds a PromptTemplate.
func (c *conversion) addTemplate(name, text string, reads []string, id string) {
	b := new(document.Block).Set("type", "PromptTemplate").Set("id", c.ids.New(name+"_prompt", "prompt")).Set("template", text)
	if len(reads) > 0 {
		b.Set("inputs", document.NameList(reads))
	}
	c.addStep(b.Set("outputs", document.NameList{id}), reads, []string{id})
}

// toolFunction matches the function that prompt flow calls: the one below @tool. The result
// type is its second group.
var toolFunction = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?m)^@tool\b[^\n]*\n(?:@[^\n]*\n)*(?:async[ \t]+)?def[ \t]+(\w+)[ \t]*\((?:[^()]|\([^()]*\))*\)[ \t]*(?:->[ \t]*([^:\n]+))?:`)
})

// results are the types of Python that results of functions have.
var results = map[string]document.Kind{"str": document.Text, "int": document.Int, "float": document.Float, "bool": document.Bool}

// callPython adds the call of a function of Python.
func (c *conversion) callPython(n *input.Node, name string) {
	if t := n.Get("source").Get("type"); t.Scalar() == "package" {
		c.callClient(n, name, n.Get("source").Get("tool").Scalar())
		return
	}
	file := c.sourceOf(n, name)
	if file == nil {
		return
	}
	m := toolFunction().FindSubmatch(file.Text)
	if m == nil {
		c.Unsupported(n.Get("source"), "node %s: the file has no function below @tool", name)
		return
	}
	kind, known := results[strings.TrimSpace(string(m[2]))]
	if !known {
		kind = document.Any
	}
	at := n.Get("source").Get("path").Text
	at = path.Clean(cmp.Or(c.moved[at], at))
	module := strings.ReplaceAll(strings.TrimSuffix(at, ".py"), "/", ".")
	c.callTool(n, name, &document.Type{Kind: kind, Declared: true}, func(id string) *document.Block {
		return new(document.Block).Set("type", "PythonFunctionTool").Set("id", id).Set("name", string(m[1])).
			Set("description", "Node "+name+" of the flow.").Set("function_name", string(m[1])).Set("module_path", module)
	})
}

// callClient adds the call of a tool that has no counterpart.
func (c *conversion) callClient(n *input.Node, name, kind string) {
	c.Unsupported(n, "node %s: the tool %s has no counterpart; a ClientTool is in its place", name, kind)
	c.callTool(n, name, &document.Type{Kind: document.Any, Declared: true}, func(id string) *document.Block {
		return new(document.Block).Set("type", "ClientTool").Note("Answered at the terminal, or by --client-tool %s=COMMAND.", document.OneLine(id)).
			Set("id", id).Set("name", id).Set("description", "Node "+name+" of the flow: "+kind+".")
	})
}

// callTool adds a tool and the step that calls it. Constants become variables, which a step
// before it sets.
func (c *conversion) callTool(n *input.Node, name string, result *document.Type, declare func(id string) *document.Block) {
	tool := declare(c.ids.New(name+"_tool", "tool"))
	given, set := &document.Block{Inline: true}, new(document.Block)
	var inputs []*document.Block
	var reads, constants []string
	for _, p := range c.parameters(n) {
		id := c.value(p.Value)
		if id == "" {
			expression, kind, ok := constant(p.Value)
			if !ok {
				c.Unsupported(p.Value, "node %s: the input %s is not converted", name, p.Key)
				continue
			}
			id = c.variable(name+" "+p.Key, name+"_"+p.Key, &document.Type{Kind: kind, Declared: true})
			set.Set(id, expression)
			constants = append(constants, id)
		}
		reads = append(reads, id)
		inputs = append(inputs, (&document.Block{Inline: true}).Set("id", p.Key).Set("type", c.types[id].VariableType()))
		given.Set(p.Key, id)
	}
	if len(constants) > 0 {
		c.addStep(new(document.Block).Set("type", "Transform").Set("id", c.ids.New(name+"_constants", "constants")).Set("set", set), nil, constants)
	}
	if len(inputs) > 0 {
		tool.Set("inputs", inputs)
	}
	id := c.result(name, result)
	output := (&document.Block{Inline: true}).Set("id", "result").Set("type", result.VariableType())
	c.app.Tools = append(c.app.Tools, tool.Set("outputs", []*document.Block{output}))
	call := new(document.Block).Set("type", "InvokeTool").Set("id", c.ids.New(name, "call")).Set("tool", tool.Entries[1].Value)
	if len(inputs) > 0 {
		call.Set("input_bindings", given)
	}
	c.addStep(call.Set("output_bindings", (&document.Block{Inline: true}).Set("result", id)), reads, []string{id})
}

// constant returns the expression and the type of a constant.
func constant(n *input.Node) (document.Expression, document.Kind, bool) {
	if _, isReference := reference(n.Scalar()); isReference {
		return "", 0, false
	}
	switch n.Kind {
	case input.Text:
		return document.Expression(jq.Quote(n.Text)), document.Text, true
	case input.Bool:
		return document.Expression(strings.ToLower(n.Text)), document.Bool, true
	case input.Int:
		return document.Expression(n.Text), document.Int, true
	case input.Float:
		return document.Expression(n.Text), document.Float, true
	case input.List, input.Map:
		var parts []string
		for _, item := range n.Elements() {
			text, _, ok := constant(item)
			if !ok {
				return "", 0, false
			}
			parts = append(parts, string(text))
		}
		if n.Kind == input.List {
			return document.Expression("[" + strings.Join(parts, ", ") + "]"), document.Any, true
		}
		for _, p := range n.Entries() {
			text, _, ok := constant(p.Value)
			if !ok {
				return "", 0, false
			}
			parts = append(parts, jq.Quote(p.Key)+": "+string(text))
		}
		return document.Expression("{" + strings.Join(parts, ", ") + "}"), document.Any, true
	}
	return "", 0, false
}
