package langgraph

import (
	"cmp"

	"github.com/qtype-dev/qtype/internal/convert/assistant"
	"github.com/qtype-dev/qtype/internal/convert/code"
	"github.com/qtype-dev/qtype/internal/convert/input"
	"github.com/qtype-dev/qtype/spec/source"
)

// graphNode is a node of a graph.
type graphNode struct {
	name string
	run  *code.Expr // what it runs
	at   source.Span
}

// graph adds the flow of a graph over messages: a node that calls a model, and perhaps one that
// runs its tools. Other nodes are reported.
func (c *conversion) graph(e *code.Expr, name string) {
	if len(e.Links) == 0 {
		return
	}
	at := e.Links[0].Span
	calls := c.calls(e, name)
	a := assistant.Answer{Name: cmp.Or(name, "graph"), At: at}
	answered := false
	for _, call := range calls {
		switch call.Name {
		case "add_node":
			n := graphNode{run: call.Arg("action", 1), at: call.Span}
			if n.run == nil {
				n.run = call.Arg("node", 0)
			}
			n.name, _, _ = c.text(call.Arg("node", 0))
			n.name = cmp.Or(n.name, n.run.Last())
			answered = c.node(n, &a, answered) || answered
		case "add_conditional_edges":
			if condition := call.Arg("path", 1); condition.Last() != "tools_condition" && len(a.Tools) == 0 {
				c.Add(input.Unsupported.At(call.Span, "the condition %s is not converted", cmp.Or(condition.Last(), "of the edges")))
			}
		case "compile":
			for _, key := range []string{"interrupt_before", "interrupt_after", "store"} {
				if value := call.Arg(key, -1); value != nil {
					c.Add(input.Unsupported.At(value.Span, "%s is not converted", key))
				}
			}
			if c.checkpointer(&call) {
				a.Memory = c.conversation()
			}
		}
	}
	if !answered {
		c.Add(input.Unsupported.At(at, "the graph has no node that calls a model; it is not converted"))
		return
	}
	if a.Memory == "" && (c.hosted || c.window != nil) {
		a.Memory = c.conversation()
	}
	c.Answer(a)
}

// calls returns the calls of methods of a graph: in the chain that makes it, and of its variable.
func (c *conversion) calls(e *code.Expr, name string) []code.Link {
	calls := e.Links[1:]
	if name == "" {
		return calls
	}
	for i, t := range c.source.Tokens {
		if t.Is(name) && i+1 < len(c.source.Tokens) && c.source.Token(i+1).Is(".") && (i == 0 || !c.source.Token(i-1).Is(".")) {
			if more, _ := c.source.Expr(i); more.Kind == code.Chain {
				calls = append(calls, more.Links[1:]...)
			}
		}
	}
	return calls
}

// node converts a node and reports whether it calls a model.
func (c *conversion) node(n graphNode, a *assistant.Answer, answered bool) bool {
	made := c.value(n.run)
	if made != nil && len(made.Links) > 0 && made.Links[0].Name == "ToolNode" {
		if len(a.Tools) == 0 {
			a.Tools = c.tools(made.Links[0].Arg("tools", 0), n.at)
		}
		return false
	}
	f := c.functions[n.run.Last()]
	if f == nil {
		c.Add(input.Unsupported.At(n.at, "the node %s is not converted: what it runs is not in the file", n.name))
		return false
	}
	model, tools, calls := c.invoked(f)
	switch {
	case !calls:
		c.Add(input.Unsupported.At(n.at, "the node %s runs Python; it is not converted", n.name))
		return false
	case answered:
		c.Add(input.Unsupported.At(n.at, "the node %s calls a model after another one did; it is not converted", n.name))
		return false
	}
	a.Model = model
	if len(tools) > 0 {
		a.Tools = tools
	}
	if i := c.source.Index(f.from, "SystemMessage"); i >= 0 && i < f.to {
		e, _ := c.source.Expr(i)
		a.System = c.prompt(e, "the system message", c.source.Span(c.source.Token(i)))
	} else {
		a.System = c.systemPair(f)
	}
	return true
}

// systemPair returns the text of {"role": "system", "content": …} or ("system", …) in a function.
func (c *conversion) systemPair(f *function) string {
	for i := f.from; i < f.to; i++ {
		if t := c.source.Token(i); !t.Is("{") && !t.Is("(") {
			continue
		}
		e, _ := c.source.Expr(i)
		for k, key := range e.Keys {
			if role := e.Items[k]; key.Text == "role" && role.Text == "system" {
				for j, other := range e.Keys {
					if other.Text == "content" {
						return c.prompt(e.Items[j], "the system message", other.Span)
					}
				}
			}
		}
		if e.Kind == code.List && len(e.Items) == 2 && e.Items[0].Kind == code.Text && e.Items[0].Text == "system" {
			return c.prompt(e.Items[1], "the system message", e.Items[1].Span)
		}
	}
	return ""
}

// invoked returns the model that a function calls, with the tools that are bound to it.
func (c *conversion) invoked(f *function) (model string, tools []string, calls bool) {
	tokens := c.source.Tokens
	for i := f.from; i < f.to; i++ {
		t := c.source.Token(i)
		if !t.IsWord() || c.source.Token(i-1).Is(".") || i+1 >= len(tokens) || !c.source.Token(i+1).Is(".") && !isModel(t.Text) {
			continue
		}
		e, _ := c.source.Expr(i)
		if e.Link("invoke", "ainvoke", "stream", "astream") == nil {
			continue
		}
		if id := c.models[t.Text]; id != "" || isModel(t.Text) {
			model, tools = c.model(e, e.Span)
			if call := e.Link("bind_tools"); call != nil {
				tools = c.tools(call.Arg("tools", 0), call.Span)
			}
			return model, tools, true
		}
	}
	return "", nil, false
}
