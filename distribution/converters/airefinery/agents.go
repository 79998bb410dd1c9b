package airefinery

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/convert/document"
	"github.com/qtype-dev/qtype/internal/convert/input"
)

// agent is an agent of the project. Each becomes a flow.
type agent struct {
	n      *input.Node // its declaration
	config *input.Node // its config, an empty mapping if it has none
	name   string
	class  string
	list   []*member      // the agents of a super agent
	flow   *document.Flow // its flow
	tools  []string       // ids of the tools of an MCPClientAgent or a ToolUseAgent
	calls  int            // the most tool calls of these; 0 for the default
	tool   string         // id of the tool that calls it; empty if none does
	pooled bool           // an orchestrator or a super agent calls it
}

// member is an agent in the list of a super agent or of the orchestrator.
type member struct {
	*agent
	entry *input.Node // the entry of the list
}

// isSuper reports whether the agent calls other agents.
func (a *agent) isSuper() bool { return a.class == "SuperAgent" || a.class == "FlowSuperAgent" }

// readAgents reads the names and classes of all agents, and the lists of super agents.
func (p *project) readAgents() {
	for _, key := range []string{"utility_agents", "super_agents"} {
		kind := strings.ReplaceAll(strings.TrimSuffix(key, "s"), "_", " ")
		for i, n := range p.List(p.root, key) {
			if m := p.AsMap(n, fmt.Sprintf("%s %d", kind, i+1)); m != nil {
				p.declare(m, fmt.Sprintf("%s %d", kind, i+1))
			}
		}
	}
	for _, a := range p.agents {
		if a.isSuper() {
			a.list = p.members(a.config, a)
		}
	}
}

// declare adds an agent.
func (p *project) declare(n *input.Node, what string) {
	name := p.RequiredText(n, "agent_name", what)
	if p.named(name) != nil && name != "" {
		p.Malformed(n.Get("agent_name"), "duplicate agent %s ignored", name)
		return
	}
	p.CheckKeys(n, "an agent", "agent_class", "agent_name", "agent_description", "config", "memory_config", "self_reflection_config", "llm_config", "requirements")
	a := &agent{n: n, name: name, class: p.Text(n, "agent_class"), config: p.Map(n, "config")}
	if a.config == nil {
		a.config = &input.Node{Kind: input.Map, Span: n.Span}
	}
	if a.class == "BaseSuperAgent" {
		a.class = "SuperAgent"
	}
	a.flow = &document.Flow{ID: p.ids.New(name, "agent"), Description: strings.TrimSpace(p.Text(n, "agent_description"))}
	p.agents = append(p.agents, a)
}

// named returns an agent by its name, nil if there is none.
func (p *project) named(name string) *agent {
	for _, a := range p.agents {
		if a.name == name {
			return a
		}
	}
	return nil
}

// members reads an agent_list; owner is the super agent that has it, nil for the orchestrator.
func (p *project) members(n *input.Node, owner *agent) []*member {
	var all []*member
	for _, item := range p.List(n, "agent_list") {
		name := item
		if item.Kind == input.Map {
			name = item.Get("agent_name")
		}
		if name == nil || name.Kind >= input.List {
			p.Malformed(item, `an entry of agent_list has no "agent_name"`)
			continue
		}
		m := p.resolve(name)
		switch {
		case m == nil:
		case owner != nil && p.calls(m, owner):
			p.Malformed(name, "agent %s would call itself", owner.name)
		case slices.ContainsFunc(all, func(other *member) bool { return other.agent == m }):
			p.Malformed(name, "agent %s is in the list twice", m.name)
		default:
			m.pooled = m.pooled || owner != nil
			all = append(all, &member{agent: m, entry: item})
		}
	}
	return all
}

// resolve returns the agent that a name refers to, and reports unknown names.
func (p *project) resolve(name *input.Node) *agent {
	if a := p.named(name.Text); a != nil && name.Text != "" {
		return a
	}
	var names []string
	for _, a := range p.agents {
		names = append(names, a.name)
	}
	p.Add(input.Malformed.At(name.Mark(), "unknown agent %s", name.Describe()).WithNearest(name.Text, names))
	return nil
}

// calls reports whether an agent calls another one, also through others.
func (p *project) calls(a, other *agent) bool {
	seen := map[*agent]bool{}
	var visit func(a *agent) bool
	visit = func(a *agent) bool {
		if a == other || seen[a] {
			return a == other
		}
		seen[a] = true
		return slices.ContainsFunc(a.list, func(m *member) bool { return visit(m.agent) })
	}
	return visit(a)
}

// build writes the flow of an agent.
func (p *project) build(a *agent) {
	p.app.Flows = append(p.app.Flows, a.flow)
	if a.pooled && a.flow.Description == "" {
		a.flow.Description = "Agent " + cmp.Or(a.name, "without name") + "."
	}
	role, known := builtin[a.class]
	hasPrompt := p.Text(a.config, "magic_prompt") != "" || p.Text(a.config, "system_prompt") != ""
	switch {
	case a.class == "MCPClientAgent":
		p.mcpAgent(a)
	case a.class == "ToolUseAgent":
		p.toolAgent(a)
	case a.class == "SuperAgent":
		p.superAgent(a)
	case a.class == "FlowSuperAgent":
		p.flowAgent(a)
	case hasPrompt && (known || slices.Contains([]string{"", "UtilityAgent", "CustomAgent"}, a.class)):
		p.promptAgent(a)
	case known:
		p.builtinAgent(a, role)
	default:
		p.clientAgent(a)
	}
}

// builtin are the classes of agents that only call a model, with what they do. Their
// prompts are not in project files.
var builtin = map[string]string{
	"PlanningAgent":        "You write a realistic plan for the request.",
	"AuthorAgent":          "You write the document that the request describes.",
	"CriticalThinker":      "You examine the request critically: assumptions, gaps, and consequences.",
	"CriticalThinkerAgent": "You examine the request critically: assumptions, gaps, and consequences.",
}

// builtinAgent writes the flow of an agent whose prompt the file does not have.
func (p *project) builtinAgent(a *agent, role string) {
	p.common(a, "leading_questions", "memory_attribute_key", "title")
	p.Assumed(a.n.Get("agent_class"), "agent %s: the prompt of %s is not in the file; the system message is made of its description", a.name, a.class)
	text := role
	if about := strings.TrimSpace(p.Text(a.n, "agent_description")); about != "" {
		text += "\n\n" + about
	}
	if title := p.Text(a.config, "title"); title != "" {
		text += "\n\nTitle: " + title
	}
	if a.config.Get("memory_attribute_key") != nil {
		p.Add(input.Unsupported.At(a.config.KeySpan("memory_attribute_key"), "agent %s: memory_attribute_key has no counterpart; the text is only the result of the agent", a.name))
	}
	p.writeSteps(a, text+p.leadingQuestions(a), "")
}

// leadingQuestions returns the questions that an AuthorAgent answers in its text.
func (p *project) leadingQuestions(a *agent) string {
	text := ""
	for _, n := range p.List(a.config, "leading_questions") {
		line := n.Scalar()
		if n.Kind == input.Map {
			p.CheckKeys(n, "a leading question", "question", "prompt")
			line = strings.TrimSuffix(p.Text(n, "question")+": "+p.Text(n, "prompt"), ": ")
		}
		text += "\n- " + document.OneLine(line)
	}
	if text != "" {
		text = "\n\nWrite about these points, in this order:" + text
	}
	return text
}

// common checks the keys of an agent that calls a model, and reports what has no counterpart.
func (p *project) common(a *agent, keys ...string) {
	p.CheckKeys(a.config, "the config of agent "+a.name, append(keys, "contexts", "llm_config", "output_style", "self_reflection", "self_reflection_config", "memory_config")...)
	if a.config.Get("self_reflection") != nil {
		p.Add(input.Unsupported.At(a.config.KeySpan("self_reflection"), "agent %s: self_reflection has no counterpart", a.name))
	}
	for _, from := range []*input.Node{a.n, a.config} {
		p.reflection(from, "agent "+a.name)
	}
	if a.n.Get("requirements") != nil && a.class != "SuperAgent" {
		p.Add(input.UnknownKey.At(a.n.KeySpan("requirements"), `an agent: unknown key "requirements" ignored`))
	}
}

// reflection reports an enabled self_reflection_config.
func (p *project) reflection(n *input.Node, owner string) {
	if c := p.Map(n, "self_reflection_config"); c != nil && !(c.Has("self_reflection") && !p.Bool(c, "self_reflection")) {
		p.Add(input.Unsupported.At(n.KeySpan("self_reflection_config"), "%s: self_reflection_config has no counterpart", owner))
	}
}

// style returns the instruction for an output_style, "" without one.
func (p *project) style(config *input.Node) string {
	text := map[string]string{"markdown": "Answer in Markdown.", "html": "Answer in HTML.", "conversational": "Answer in a conversational tone."}
	name := p.Text(config, "output_style")
	switch {
	case name == "":
		return ""
	case text[name] == "":
		p.Malformed(config.Get("output_style"), "output_style must be markdown, html or conversational, not %q", name)
		return ""
	}
	p.Assumed(config.Get("output_style"), "the wording of output_style is not in the file; the prompt ends with %q", text[name])
	return "\n\n" + text[name]
}

// clientAgent writes the flow of an agent that a program or a person answers.
func (p *project) clientAgent(a *agent) {
	at := a.n
	if c := a.n.Get("agent_class"); c != nil {
		at = c
	}
	tool := p.ids.New(a.flow.ID+"_client", "client")
	switch a.class {
	case "CustomAgent":
		p.Assumed(at, "agent %s is a function of your program; answer the client tool %s", a.name, tool)
	case "HumanAgent":
		p.Assumed(at, "agent %s is a person, who answers the client tool %s", a.name, tool)
		if len(a.config.Pairs) > 0 {
			p.Ignored(a.n.KeySpan("config"), "agent %s: settings of the input are ignored: %s", a.name, strings.Join(input.Keys(a.config), ", "))
		}
	default:
		p.Unsupported(at, "agent %s (%s) has no counterpart; the document calls the client tool %s in its place", cmp.Or(a.name, "without name"), cmp.Or(a.class, "no class"), tool)
	}
	if a.class != "HumanAgent" && len(a.config.Use().Pairs) > 0 {
		p.Add(input.Unsupported.At(a.n.KeySpan("config"), "agent %s: its config (%s) is not passed to the client tool", a.name, strings.Join(input.Keys(a.config), ", ")))
	}
	p.reflection(a.n, "agent "+a.name)
	var sides []*document.Block
	for _, id := range []string{"query", "answer"} {
		sides = append(sides, (&document.Block{Inline: true}).Set("id", id).Set("type", "text"))
	}
	p.app.Tools = append(p.app.Tools, new(document.Block).Set("type", "ClientTool").Note("Answered at the terminal, or by --client-tool %s=COMMAND.", toolName(tool)).
		Set("id", tool).Set("name", toolName(tool)).Set("description", cmp.Or(a.flow.Description, "Agent "+a.name+".")).
		Set("inputs", sides[:1]).Set("outputs", sides[1:]))
	b := new(document.Block).Set("type", "InvokeTool").Set("id", p.ids.New(a.flow.ID+"_ask", "ask")).Set("tool", tool).
		Set("input_bindings", (&document.Block{Inline: true}).Set("query", "query")).
		Set("output_bindings", (&document.Block{Inline: true}).Set("answer", "answer"))
	textFlow(a.flow)
	a.flow.Steps = []*document.Step{{Block: b, Reads: a.flow.Inputs, Writes: a.flow.Outputs}}
}

// textFlow makes a flow answer a text with a text.
func textFlow(f *document.Flow) {
	plain := &document.Type{Kind: document.Text, Declared: true}
	f.Inputs, f.Outputs = []string{"query"}, []string{"answer"}
	f.Types = func(string) *document.Type { return plain }
}

// chatFlow makes a flow answer messages.
func chatFlow(f *document.Flow) {
	message := &document.Type{Kind: document.Message, Declared: true}
	f.Conversational, f.Inputs, f.Outputs = true, []string{"question"}, []string{"answer"}
	f.Types = func(string) *document.Type { return message }
}

// toolOf returns the id of the tool that calls an agent.
func (p *project) toolOf(a *agent) string {
	if a.tool == "" {
		a.tool = p.ids.New(a.flow.ID+"_agent", "agent")
		p.app.Tools = append(p.app.Tools, new(document.Block).Set("type", "FlowTool").Set("id", a.tool).Set("name", toolName(a.flow.ID)).
			Set("flow", a.flow.ID).Set("session", "own"))
	}
	return a.tool
}

// toolName returns the name of a tool for models, which is at most 64 characters long.
func toolName(id string) string {
	const most, digits = 64, 8
	name := strings.ReplaceAll(id, ".", "_")
	if len(name) > most {
		sum := sha256.Sum256([]byte(id))
		name = name[:most-digits-1] + "_" + hex.EncodeToString(sum[:])[:digits]
	}
	return name
}
