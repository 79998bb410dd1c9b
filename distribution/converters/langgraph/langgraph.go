// Package langgraph converts Python programs that use LangGraph: models, checkpointers, agents and
// graphs over messages.
package langgraph

import (
	"strings"

	"github.com/qtype-dev/qtype/distribution/converters/assistant"
	"github.com/qtype-dev/qtype/distribution/converters/code"
	"github.com/qtype-dev/qtype/internal/convert/document"
	"github.com/qtype-dev/qtype/internal/convert/input"
	"github.com/qtype-dev/qtype/spec/source"
)

// Program is a Python file with its place among modules.
type Program struct {
	File   *source.File
	Module string
}

// conversion is the conversion of one program.
type conversion struct {
	*assistant.Builder
	source    *code.Source
	module    string
	hosted    bool                  // the server stores conversations
	values    map[string]*code.Expr // of variables
	functions map[string]*function
	models    map[string]string   // ids by variables
	bound     map[string][]string // ids of the tools of a model, by variables
	chains    map[source.Span]string
	window    *assistant.Memory    // of trim_messages; nil for none
	memory    string               // id; empty until it is needed
	ranges    map[string]code.Part // of the statements of values
	classes   map[string]*class
	state     string // the class of the state of the graph that is read
}

// Convert converts programs, with a flow for each agent and graph. It returns nil if nothing can
// be converted. hosted are programs of a server, which stores conversations by itself.
func Convert(r *input.Report, programs []Program, hosted bool) *document.App {
	b := assistant.NewBuilder(r, "langgraph_app")
	var rest []func()
	for _, p := range programs {
		c := &conversion{Builder: b, source: code.Scan(p.File, code.Python), module: p.Module, hosted: hosted, values: map[string]*code.Expr{},
			functions: map[string]*function{}, models: map[string]string{}, bound: map[string][]string{}, chains: map[source.Span]string{}, ranges: map[string]code.Part{}, classes: map[string]*class{}}
		c.convert()
		rest = append(rest, c.restOfProgram)
	}
	app := b.Finish("the program", input.Bytes(programs[0].File, 0, 1))
	for _, report := range rest {
		if app != nil {
			report()
		}
	}
	return app
}

// notConverted returns the calls that are reported, with the reason.
func notConverted() map[string]string {
	const (
		approval = "approvals are not converted; list the tools in approve of the Agent"
		handoff  = "handoffs are not converted; list flows in handoffs of the Agent"
		store    = "the long-term store is not converted; use a memory with scope: user"
		summary  = "the summary is not converted; use a memory with context: [{type: summary}]"
	)
	return map[string]string{
		"interrupt":                approval,
		"HumanInTheLoopMiddleware": approval,
		"Send":                     "parallel branches are not converted; use Parallel",
		"create_supervisor":        "a supervisor is not converted; use an Agent with FlowTools",
		"create_swarm":             handoff,
		"create_handoff_tool":      handoff,
		"InMemoryStore":            store,
		"PostgresStore":            store,
		"MultiServerMCPClient":     "MCP servers are not converted; declare an MCPTool",
		"SummarizationNode":        summary,
		"SummarizationMiddleware":  summary,
		"RemoveMessage":            "removing messages is not converted",
	}
}

// readNames reads the functions and the values of variables.
func (c *conversion) readNames() {
	tokens := c.source.Tokens
	for i, t := range tokens {
		switch {
		case t.Is("def") && (t.First || c.source.Token(i-1).Is("async")) && c.source.Token(i+1).IsWord():
			f := c.function(i)
			c.functions[f.name] = f
		case t.First && t.IsWord() && i+1 < len(tokens) && c.source.Token(i+1).Is("="):
			value, end := c.source.Expr(i + 2)
			c.values[t.Text], c.ranges[t.Text] = value, code.Part{From: i, To: max(end, i+1)}
		case t.Is("class") && t.First:
			c.readClass(i)
		}
	}
}

// isUse reports whether the word at a token is called, and is neither a member nor declared there.
func (c *conversion) isUse(i int) bool {
	before, after := c.source.Token(i-1), c.source.Token(i+1)
	if i > 0 && (before.Is(".") || before.Is("class") || before.Is("def") || before.Is("import")) {
		return false
	}
	return c.source.Token(i).IsWord() && (after.Is("(") || after.Is("[") || after.Is("."))
}

// maxAgents limits the agents and graphs of a program.
const maxAgents = 200

// convert reads a program. Functions and constants are read first, as they are used before.
func (c *conversion) convert() {
	c.readNames()
	c.readWindow()
	tokens := c.source.Tokens
	reasons := notConverted()
	var agents []func()
	for i, t := range tokens {
		if !c.isUse(i) {
			continue
		}
		switch reason := reasons[t.Text]; {
		case reason != "":
			c.source.UseRange(i, i+1)
			c.Add(input.Unsupported.At(c.source.Span(t), "%s: %s", t.Text, reason))
		case isModel(t.Text):
			e, _ := c.source.Expr(i)
			c.declareModel(e, c.source.AssignedTo(i))
		case t.Is("create_react_agent"), t.Is("create_agent"):
			e, _ := c.source.Expr(i)
			name := c.source.AssignedTo(i)
			agents = append(agents, func() { c.agent(e, name) })
		case t.Is("StateGraph"), t.Is("MessageGraph"):
			e, _ := c.source.Expr(i)
			name := c.source.AssignedTo(i)
			agents = append(agents, func() { c.graph(e, name) })
		}
	}
	if len(agents) > maxAgents {
		c.Add(input.Unsupported.At(c.source.Span(tokens[0]), "only the first %d agents and graphs are converted", maxAgents))
		agents = agents[:maxAgents]
	}
	c.bind()
	for _, add := range agents {
		add()
	}
	if len(agents) == 0 && (c.window != nil || c.checkpointer(nil)) {
		c.conversation()
	}
}

// text returns the text of an expression, also of a variable or of a message.
func (c *conversion) text(e *code.Expr) (text string, filled, ok bool) {
	for range 5 { // of variables that name variables
		if v := c.values[e.Name()]; v != nil && e.Name() != "" {
			e = c.value(e)
			continue
		}
		break
	}
	switch {
	case e == nil:
		return "", false, false
	case e.Kind == code.Text:
		return strings.TrimSpace(e.Text), e.Filled, true
	case e.Link("SystemMessage") != nil:
		return c.text(e.Link("SystemMessage").Arg("content", 0))
	}
	return "", false, false
}

// prompt returns the text of the prompt of an agent or a node.
func (c *conversion) prompt(e *code.Expr, what string, at source.Span) string {
	text, filled, ok := c.text(e)
	switch {
	case e == nil || e.Kind == code.Null:
	case !ok:
		c.Add(input.Unsupported.At(at, "%s is made by the program; it is not converted", what))
	case filled:
		c.Add(input.Unsupported.At(at, "%s contains values of the program; they stay in the text", what))
	}
	return text
}

// checkpointers are the classes that store conversations.
var checkpointers = []string{"InMemorySaver", "MemorySaver", "SqliteSaver", "AsyncSqliteSaver", "PostgresSaver", "AsyncPostgresSaver", "RedisSaver", "AsyncRedisSaver", "ShallowRedisSaver", "MongoDBSaver"}

// checkpointer reports whether conversations are stored: there is an argument, or without a call
// to have one, the program has a checkpointer.
func (c *conversion) checkpointer(call *code.Link) bool {
	if call != nil {
		value := call.Arg("checkpointer", -1)
		return c.hosted || value != nil && value.Kind != code.Null && value.Text != "false"
	}
	return c.source.Index(0, checkpointers...) >= 0
}

// conversation returns the id of the memory of the program.
func (c *conversion) conversation() string {
	if c.memory != "" {
		return c.memory
	}
	m := assistant.Memory{Name: "messages", Note: "LangGraph sends all messages; a limit such as `policy: token_window` bounds them."}
	if c.window != nil {
		m = *c.window
	}
	for i := c.source.Index(0, checkpointers...); i >= 0; i = c.source.Index(i+1, checkpointers...) {
		t := c.source.Token(i)
		if !strings.Contains(t.Text, "Memory") && !c.source.Token(i-min(i, 1)).Is("import") && i+1 < len(c.source.Tokens) && (c.source.Token(i+1).Is("(") || c.source.Token(i+1).Is(".")) {
			c.Add(input.Ignored.At(c.source.Span(t), "%s is ignored: memories store each session, in the store of --store or of the document", t.Text))
			break
		}
	}
	for i := c.source.Index(0, checkpointers...); i >= 0; i = c.source.Index(i+1, checkpointers...) {
		c.source.UseRange(i, i+1)
	}
	c.memory = c.Memory(m)
	return c.memory
}

// readWindow reads trim_messages, which limits what a model gets.
func (c *conversion) readWindow() {
	for i := c.source.Index(0, "trim_messages"); i >= 0; i = c.source.Index(i+1, "trim_messages") {
		if i+1 >= len(c.source.Tokens) || !c.source.Token(i+1).Is("(") {
			continue
		}
		e, _ := c.source.Expr(i)
		call := e.Link("trim_messages")
		if call == nil {
			continue
		}
		if c.window != nil {
			c.Add(input.Unsupported.At(call.Span, "only the first trim_messages is converted"))
			continue
		}
		c.source.Claim(e, "the messages")
		c.window = c.trim(call)
	}
}

// trim returns the memory of a call of trim_messages.
func (c *conversion) trim(call *code.Link) *assistant.Memory {
	m := &assistant.Memory{Name: "messages"}
	limit, ok := c.value(call.Arg("max_tokens", -1)).Int()
	if !ok {
		limit = 4000
		c.Add(input.Assumed.At(call.Span, "the value of max_tokens is not in the file; using %d", limit))
	}
	switch counter := call.Arg("token_counter", -1); {
	case counter.Name() == "len":
		m.MaxMessages = limit
	default:
		m.MaxTokens = limit
	}
	if s := call.Arg("strategy", -1); s != nil && s.Text != "last" {
		c.Add(input.Unsupported.At(s.Span, "the strategy %s has no counterpart; the last messages are sent", s.Text))
	}
	if s := call.Arg("include_system", -1); s == nil || s.Text != "true" {
		c.Add(input.Assumed.At(call.Span, "without include_system the system message is trimmed too; here it is always sent"))
	}
	for _, key := range []string{"messages", "start_on", "end_on", "text_splitter"} { // which say what is trimmed, and where
		call.Arg(key, map[bool]int{true: 0, false: -1}[key == "messages"])
	}
	if partial := call.Arg("allow_partial", -1); partial != nil && partial.Text == "true" {
		c.Add(input.Unsupported.At(partial.Span, "parts of messages are not sent: allow_partial has no counterpart"))
	}
	return m
}

// value returns the value of a variable, or the expression itself.
func (c *conversion) value(e *code.Expr) *code.Expr {
	if v := c.values[e.Name()]; v != nil && e.Name() != "" {
		c.source.UseRange(c.ranges[e.Name()].From, c.ranges[e.Name()].To)
		return v
	}
	return e
}
