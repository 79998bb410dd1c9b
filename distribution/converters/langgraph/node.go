package langgraph

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/qtype-dev/qtype/distribution/converters/assistant"
	"github.com/qtype-dev/qtype/distribution/converters/code"
	"github.com/qtype-dev/qtype/internal/convert/document"
	"github.com/qtype-dev/qtype/internal/convert/input"
)

// call is the call of a model in a function.
type call struct {
	e    *code.Expr
	send *code.Link // invoke
}

// invokers are the methods that call a model.
var invokers = []string{"invoke", "ainvoke", "stream", "astream"}

// invoked returns the call of a model in a function; nil for none.
func (c *conversion) invoked(f *function) *call {
	for i := f.from; i < f.to; i++ {
		t := c.source.Token(i)
		if !t.IsWord() || c.source.Token(i-1).Is(".") || !c.source.Token(i+1).Is(".") && !isModel(t.Text) {
			continue
		}
		if c.models[t.Text] == "" && !isModel(t.Text) {
			continue
		}
		e, _ := c.source.Expr(i)
		if send := e.Link(invokers...); send != nil {
			return &call{e, send}
		}
	}
	return nil
}

// answerNode reads a node that calls a model.
func (c *conversion) answerNode(f *function, n *call, a *assistant.Answer) {
	c.source.UseRange(f.start, f.from)
	c.source.Claim(n.e, "the node "+f.name)
	var tools []string
	a.Model, tools = c.model(n.e, n.e.Span)
	if l := n.e.Link("bind_tools"); l != nil {
		tools = c.tools(l.Arg("tools", 0), l.Span)
	}
	if len(tools) > 0 {
		a.Tools = tools
	}
	if l := n.e.Link("with_structured_output"); l != nil {
		a.Result = c.structured(l.Arg("schema", 0), l)
	}
	m := &messages{conversion: c, f: f, a: a}
	m.add(n.send.Arg("input", 0))
	if !m.conversation {
		c.returned(f, a)
	}
	c.restOfNode(f)
}

// structured returns the type of an answer by its class; nil if it is not in the file.
func (c *conversion) structured(e *code.Expr, at *code.Link) *document.Type {
	if of := c.record(e.Name()); of != nil {
		return of
	}
	c.Add(input.Unsupported.At(at.Span, "the type of the structured answer, %s, is not in the file; the answer is a text", strings.TrimSpace(e.Name()+" ")))
	return nil
}

// messages are what a node sends to a model.
type messages struct {
	*conversion
	f            *function
	a            *assistant.Answer
	conversation bool // the messages of the state are among them
	depth        int
}

// add adds what an expression sends: a text, a message, the messages of the state, or a list of them.
func (m *messages) add(e *code.Expr) {
	e = m.local(e)
	if e == nil {
		return
	}
	if m.depth++; m.depth > maxNested {
		m.Add(input.Unsupported.At(e.Span, "what the node %s sends to the model is made by the program; it is not converted", m.f.name))
		return
	}
	defer func() { m.depth-- }()
	switch text, filled, ok := m.text(e); {
	case e.Kind == code.List && !isPair(e), e.Kind == code.Sum:
		for _, item := range e.Items {
			m.add(item)
		}
	case isState(e), e.Link("trim_messages") != nil && e.Kind == code.Chain:
		m.conversation = true
	case ok && e.Link("SystemMessage") == nil:
		m.user(text, filled, e)
	default:
		m.message(e)
	}
}

// maxNested limits lists in lists, and variables that contain themselves.
const maxNested = 20

// isPair reports whether a list is a message such as ("system", "Be brief.").
func isPair(e *code.Expr) bool {
	return len(e.Items) == 2 && e.Items[0].Kind == code.Text && slices.Contains([]string{"system", "user", "human", "assistant", "ai"}, e.Items[0].Text)
}

// isState reports whether an expression is the messages of a state.
func isState(e *code.Expr) bool {
	if len(e.Links) == 0 {
		return false
	}
	last := e.Links[len(e.Links)-1]
	return last.Index != nil && last.Index.Text == "messages" || len(e.Links) == 2 && last.Name == "messages" && !last.Called ||
		last.Name == "get" && last.Called && len(last.Args) > 0 && last.Args[0].Value.Text == "messages"
}

// local returns the value of a variable, which is read.
func (c *conversion) local(e *code.Expr) *code.Expr {
	if v := c.value(e); v != nil {
		return v
	}
	return e
}

// message adds one message with its role.
func (m *messages) message(e *code.Expr) {
	role, content := "", (*code.Expr)(nil)
	switch {
	case isPair(e):
		role, content = e.Items[0].Text, e.Items[1]
	case e.Kind == code.Map:
		for i, key := range e.Keys {
			switch key.Text {
			case "role":
				role = e.Items[i].Text
			case "content":
				content = e.Items[i]
			default:
				m.Add(input.Unsupported.At(key.Span, "%s of the message is not converted", key.Text))
			}
		}
	case e.Kind == code.Chain:
		l := e.Link("SystemMessage", "HumanMessage", "AIMessage")
		if l != nil {
			m.source.Claim(e, "the message")
			role, content = map[string]string{"SystemMessage": "system", "HumanMessage": "user", "AIMessage": "assistant"}[l.Name], l.Arg("content", 0)
		}
	}
	switch text, filled, ok := m.text(content); {
	case role == "system" || role == "developer":
		if m.a.System != "" {
			m.a.System += "\n\n"
		}
		m.a.System += m.prompt(content, "the system message", e.Span)
	case ok && (role == "user" || role == "human"):
		m.user(text, filled, e)
	case role != "":
		m.Add(input.Unsupported.At(e.Span, "a message of the role %s is not converted", role))
	default:
		m.Add(input.Unsupported.At(e.Span, "what the node %s sends to the model is made by the program; it is not converted", m.f.name))
	}
}

// user adds the message of the user: the prompt of a node without a conversation.
func (m *messages) user(text string, filled bool, e *code.Expr) {
	if m.conversation || m.a.Prompt != "" {
		m.Add(input.Unsupported.At(e.Span, "the node %s adds a message in the name of the user; it is not converted", m.f.name))
		return
	}
	m.a.Prompt = text
	if filled {
		m.a.Prompt = m.fill(text, e)
	}
}

var formatted = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\{\{|\}\}|\{[^{}]*\}`) })

// stateValue matches a value of the state in a formatted string.
var stateValue = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^\{\s*\w+(?:\[["'](\w+)["']\]|\.get\(["'](\w+)["']\)|\.(\w+))\s*\}$`)
})

// fill returns a formatted string as a prompt, and declares its values.
func (m *messages) fill(text string, e *code.Expr) string {
	return formatted().ReplaceAllStringFunc(text, func(part string) string {
		if part == "{{" || part == "}}" {
			return part[:1]
		}
		found := stateValue().FindStringSubmatch(part)
		if found == nil {
			m.Add(input.Unsupported.At(e.Span, "%s in the prompt is a value of the program; it stays in the text", part))
			return part
		}
		name := strings.Join(found[1:], "")
		if !slices.ContainsFunc(m.a.Values, func(v assistant.Variable) bool { return v.Name == name }) {
			m.a.Values = append(m.a.Values, assistant.Variable{Name: name, Kind: m.stateKind(name)})
		}
		return "{{" + name + "}}"
	})
}

// stateKind returns the type of a value of the state; text if it is not simple.
func (c *conversion) stateKind(name string) document.Kind {
	if class := c.classes[c.state]; class != nil {
		for _, f := range c.fields(class) {
			if of := c.typeOf(f.of); f.name == name && of != nil && of.Kind != document.List && of.Kind != document.Record {
				return of.Kind
			}
		}
	}
	return document.Text
}

// returned reads what a node without a conversation returns: {"name": response.content}.
func (c *conversion) returned(f *function, a *assistant.Answer) {
	at := c.source.Index(f.from, "return")
	if at < 0 || at >= f.to {
		return
	}
	e, _ := c.source.Expr(at + 1)
	for i, key := range e.Keys {
		if i == 0 && key.Kind == code.Text {
			a.Output = key.Text
			continue
		}
		c.Add(input.Unsupported.At(key.Span, "the node %s returns %s too; it is not converted", f.name, key.Text))
	}
}

// restOfNode reports the statements of a node other than the call of the model.
func (c *conversion) restOfNode(f *function) {
	for _, p := range c.source.Statements(f.from, f.to) {
		first := c.source.Token(p.From)
		if e, _ := c.source.Expr(p.From); first.Is("return") || e.Kind == code.Text || c.source.IsRead(p.From, p.To) {
			c.source.UseRange(p.From, p.To)
			continue
		}
		c.source.UseRange(p.From, p.To)
		c.Add(input.Unsupported.At(c.source.SpanOf(p), "the node %s runs more than the call of a model: %s is not converted", f.name, first.Text))
	}
}

// restOfProgram reports what nothing has read.
func (c *conversion) restOfProgram() {
	c.source.Rest(c.Report)
	c.restOf(0, len(c.source.Tokens)-1)
}

// restOf reports the statements of a block that nothing has read.
func (c *conversion) restOf(from, to int) {
	s := c.source
	for _, p := range s.Statements(from, to) {
		first := s.Token(p.From)
		if first.Is("import") || first.Is("from") || first.Is("pass") || first.Is("return") {
			continue
		}
		if e, _ := s.Expr(p.From); e.Kind == code.Text { // documentation
			continue
		}
		if s.IsRead(p.From, p.To) {
			if body := s.Body(p); body < p.To {
				c.restOf(body, p.To)
			}
			continue
		}
		name := first.Text
		if next := s.Token(p.From + 1); first.Is("def") || first.Is("class") || first.Is("async") {
			name = next.Text
		}
		c.Add(input.Ignored.At(s.SpanOf(p), "the statement is ignored: no agent, graph, model or memory reads %s", name))
	}
}
