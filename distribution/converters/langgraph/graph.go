package langgraph

import (
	"cmp"

	"github.com/qtype-dev/qtype/distribution/converters/assistant"
	"github.com/qtype-dev/qtype/distribution/converters/code"
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
	c.state = calls[0].Arg("state_schema", 0).Name()
	if class := c.classes[c.state]; class != nil {
		c.source.UseRange(class.at, class.to)
	}
	for _, call := range calls {
		switch call.Name {
		case "add_edge", "set_entry_point", "set_finish_point":
			call.UseAll()
		case "add_node":
			call.Use()
			n := graphNode{run: call.Arg("action", 1), at: call.Span}
			if n.run == nil {
				n.run = call.Arg("node", 0)
			}
			n.name, _, _ = c.text(call.Arg("node", 0))
			n.name = cmp.Or(n.name, n.run.Last())
			answered = c.node(n, &a, answered) || answered
		case "add_conditional_edges":
			call.UseAll()
			if condition := call.Arg("path", 1); condition.Last() != "tools_condition" && len(a.Tools) == 0 {
				c.Add(input.Unsupported.At(call.Span, "the condition %s is not converted", cmp.Or(condition.Last(), "of the edges")))
			}
		case "compile":
			call.Use()
			if c.checkpointer(&call) && a.Prompt == "" {
				a.Memory = c.conversation()
			}
		}
	}
	if !answered {
		c.Add(input.Unsupported.At(at, "the graph has no node that calls a model; it is not converted"))
		return
	}
	if a.Memory == "" && (c.hosted || c.window != nil) && a.Prompt == "" {
		a.Memory = c.conversation()
	}
	c.Answer(a)
}

// calls returns the calls of methods of a graph, after that which makes it: in the same chain, and of
// its variable.
func (c *conversion) calls(e *code.Expr, name string) []code.Link {
	calls := e.Links
	c.source.Claim(e, "the graph")
	for i, t := range c.source.Tokens {
		if name != "" && t.Is(name) && c.source.Token(i+1).Is(".") && (i == 0 || !c.source.Token(i-1).Is(".")) {
			if more, _ := c.source.Expr(i); more.Kind == code.Chain {
				c.source.Claim(more, "the graph")
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
	switch call := c.invoked(f); {
	case call == nil:
		c.source.UseRange(f.start, f.to)
		c.Add(input.Unsupported.At(n.at, "the node %s runs Python; it is not converted", n.name))
		return false
	case answered:
		c.source.UseRange(f.start, f.to)
		c.Add(input.Unsupported.At(n.at, "the node %s calls a model after another one did; it is not converted", n.name))
		return false
	default:
		c.answerNode(f, call, a)
		return true
	}
}
