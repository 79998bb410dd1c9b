package langgraph

import (
	"cmp"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/distribution/converters/assistant"
	"github.com/qtype-dev/qtype/distribution/converters/code"
	"github.com/qtype-dev/qtype/internal/convert/document"
	"github.com/qtype-dev/qtype/internal/convert/input"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/source"
)

// function is a function of the program.
type function struct {
	name, doc  string
	parameters []assistant.Variable
	result     document.Kind
	start      int  // the token def, or that of its first decorator
	from, to   int  // the tokens of its body
	decorated  bool // by tool, which makes an object of it
}

// maxDecorator limits the tokens of a decorator.
const maxDecorator = 50

var kinds = map[string]document.Kind{"str": document.Text, "int": document.Int, "float": document.Float, "bool": document.Bool, "date": document.Date, "datetime": document.DateTime}

// function reads the function at the token def.
func (c *conversion) function(at int) *function {
	tokens := c.source.Tokens
	f := &function{name: c.source.Token(at + 1).Text, result: document.Text, start: at}
	f.decorated = c.isTool(at)
	open := at + 2
	if open >= len(tokens) || !c.source.Token(open).Is("(") {
		f.from, f.to = at, at
		return f
	}
	closing := c.source.Close(open)
	c.parameters(f, open+1, closing)
	colon := closing + 1
	for colon < len(tokens)-1 && !c.source.Token(colon).Is(":") {
		colon++
	}
	if colon == closing+4 { // -> TYPE
		if kind, ok := kinds[c.source.Token(colon-1).Text]; ok {
			f.result = kind
		} else {
			f.result = document.Any
		}
	} else if colon > closing+1 {
		f.result = document.Any
	}
	f.from = min(colon+1, len(tokens)-1)
	if e, _ := c.source.Expr(f.from); e.Kind == code.Text {
		f.doc = strings.TrimSpace(e.Text)
		f.doc, _, _ = strings.Cut(f.doc, "\n\n")
		f.doc = strings.Join(strings.Fields(f.doc), " ")
	}
	column := c.source.Token(at).Column
	if at > 0 && c.source.Token(at-1).Is("async") {
		column = c.source.Token(at - 1).Column
	}
	for f.to = f.from; f.to < len(tokens)-1 && (!c.source.Token(f.to).First || c.source.Token(f.to).Column > column); f.to++ {
		if c.source.Token(f.to).Is("(") || c.source.Token(f.to).Is("[") || c.source.Token(f.to).Is("{") {
			f.to = c.source.Close(f.to)
		}
	}
	return f
}

// isTool reports whether the function at the token def has the decorator tool.
func (c *conversion) isTool(at int) bool {
	for before := at - 1; before >= 0 && at-before < maxDecorator; before-- {
		if t := c.source.Token(before); t.First && !t.Is("async") {
			return t.Is("@") && c.source.Token(before+1).Is("tool")
		}
	}
	return false
}

// parameters reads the parameters between two tokens. Those that LangGraph sets are left out.
func (c *conversion) parameters(f *function, i, end int) {
	for i < end {
		name, of, optional, injected := c.source.Token(i).Text, "", false, !c.source.Token(i).IsWord()
		for i++; i < end && !c.source.Token(i).Is(","); i++ {
			switch t := c.source.Token(i); {
			case t.Is("="):
				optional = true
			case t.Is("Injected"), t.Is("InjectedState"), t.Is("InjectedStore"), t.Is("InjectedToolCallId"), t.Is("RunnableConfig"), t.Is("ToolRuntime"):
				injected = true
			case t.IsWord() && of == "" && !optional:
				of = t.Text
			}
			if c.source.Token(i).Is("[") || c.source.Token(i).Is("(") || c.source.Token(i).Is("{") {
				for close := c.source.Close(i); i < close; i++ {
					injected = injected || strings.HasPrefix(c.source.Token(i).Text, "Injected")
				}
			}
		}
		i++
		if injected || name == "self" {
			continue
		}
		kind, known := kinds[of]
		if !known {
			kind = document.Any
		}
		f.parameters = append(f.parameters, assistant.Variable{Name: name, Kind: kind, Optional: optional})
	}
}

// tools returns the ids of the tools in a list.
func (c *conversion) tools(e *code.Expr, at source.Span) []string {
	e = c.value(e)
	if e == nil {
		return nil
	}
	if e.Kind != code.List {
		if e.Kind != code.Null {
			c.Add(input.Unsupported.At(at, "the tools are made by the program; they are not converted"))
		}
		return nil
	}
	var ids []string
	for _, item := range e.Items {
		name := item.Last()
		f := c.functions[name]
		switch {
		case f != nil:
			c.source.UseRange(f.start, f.to)
			if f.decorated {
				c.Add(input.Unsupported.At(item.Span, "@tool makes an object of the function %s: remove it, as qtype calls the function", f.name))
			}
			t := assistant.Tool{Name: f.name, Description: f.doc, Module: c.module, Inputs: f.parameters, Result: f.result}
			if !spec.IsPythonPath(c.module) {
				c.Add(input.Unsupported.At(item.Span, "the name of the file, %s, cannot be imported by Python; the tool %s is a ClientTool", c.module, f.name))
				t.Module = ""
			}
			ids = append(ids, c.Tool(t))
		default:
			of := c.value(item)
			if of != nil && len(of.Links) > 0 && of.Links[0].Called {
				name = of.Links[0].Name
			}
			c.Add(input.Unsupported.At(item.Span, "the tool %s is not in the file; a ClientTool is in its place", cmp.Or(name, "of an expression")))
			ids = append(ids, c.Tool(assistant.Tool{Name: cmp.Or(name, "tool"), Inputs: []assistant.Variable{{Name: "query", Kind: document.Text}}, Result: document.Text}))
		}
	}
	seen := map[string]bool{}
	return slices.DeleteFunc(ids, func(id string) bool {
		before := seen[id]
		seen[id] = true
		return before
	})
}

// agent adds the flow of create_react_agent or create_agent.
func (c *conversion) agent(e *code.Expr, name string) {
	call := e.Link("create_react_agent", "create_agent")
	if call == nil {
		return
	}
	c.source.Claim(e, "the agent")
	a := assistant.Answer{Name: cmp.Or(name, "agent"), At: call.Span}
	if text, _, ok := c.text(call.Arg("name", -1)); ok {
		a.Name = cmp.Or(text, a.Name)
	}
	a.Model, _ = c.model(call.Arg("model", 0), call.Span)
	a.Tools = c.tools(call.Arg("tools", 1), call.Span)
	for _, key := range []string{"prompt", "system_prompt", "state_modifier", "messages_modifier"} {
		if value := call.Arg(key, -1); value != nil {
			a.System = c.prompt(value, key, value.Span)
		}
	}
	if c.checkpointer(call) {
		a.Memory = c.conversation()
	} else if c.window != nil {
		c.Add(input.Assumed.At(call.Span, "%s has no checkpointer; the limit of trim_messages is that of a memory", a.Name))
		a.Memory = c.conversation()
	}
	for _, key := range []string{"debug", "version"} {
		if value := call.Arg(key, -1); value != nil {
			c.Add(input.Ignored.At(value.Span, "%s is ignored: it has no effect on the answers", key))
		}
	}
	if c.window != nil {
		call.Arg("pre_model_hook", -1)
	}
	if of := call.Arg("response_format", -1); c.classes[of.Name()] != nil {
		a.Result = c.record(of.Name())
	} else if of != nil {
		c.Add(input.Unsupported.At(of.Span, "response_format is not converted: its type is not a class of the file"))
	}
	c.Answer(a)
}
