package airefinery

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/internal/convert/document"
	"github.com/qtype-dev/qtype/internal/convert/input"
)

// orchestrator writes the Agent that calls the agents of the project. One agent alone
// needs none.
func (p *project) orchestrator() {
	o := p.Map(p.root, "orchestrator")
	if o == nil {
		return
	}
	p.CheckKeys(o, "orchestrator", "agent_list", "brand_name", "system_prompt", "system_prompt_prefix", "system_prompt_suffix", "enable_routing", "decompose", "rai_config", "config",
		"self_reflection_config", "selfreflection_config", "contexts", "llm_config", "memory_config", "output_style")
	for _, key := range []string{"rai_config", "config"} {
		if v := o.Get(key); v != nil && len(v.Items)+len(v.Pairs)+len(v.Text) > 0 {
			p.Add(input.Unsupported.At(o.KeySpan(key), "orchestrator: %s has no counterpart", key))
		}
	}
	input.NormalizeKeys(o, "self_reflection_config")
	p.reflection(o, "orchestrator")
	if o.Get("agent_list") == nil && len(p.agents) > 0 {
		p.Malformed(o, `orchestrator has no "agent_list"`)
	}
	list := p.members(o, nil)
	for _, m := range list {
		p.routed = append(p.routed, m.agent)
	}
	switch len(list) {
	case 0:
		return
	case 1:
		p.unrouted(o)
		return
	}
	if o.Has("enable_routing") && !p.Bool(o, "enable_routing") {
		p.Add(input.Unsupported.At(o.KeySpan("enable_routing"), "enable_routing: false has no counterpart: the model chooses the agents; run the flow of an agent by its name"))
	}
	p.routing(o, list)
}

// unrouted reports the settings of an orchestrator that is not converted, as it has one agent.
func (p *project) unrouted(o *input.Node) {
	for _, key := range []string{"brand_name", "system_prompt", "system_prompt_prefix", "system_prompt_suffix"} {
		if o.Get(key) != nil {
			p.Add(input.Unsupported.At(o.KeySpan(key), "orchestrator: %s has no counterpart, as its only agent answers the user", key))
		}
	}
	for _, key := range []string{"enable_routing", "decompose", "contexts", "llm_config", "output_style"} {
		if o.Get(key) != nil {
			p.Ignored(o.KeySpan(key), "orchestrator: %s is ignored, as its only agent answers the user", key)
		}
	}
}

// routing writes the flow of the orchestrator.
func (p *project) routing(o *input.Node, list []*member) {
	text := "You assign the user's requests to agents, which are your tools; their descriptions say what they do. " +
		"An agent does not see this conversation: pass on what it must know. Answer with the results of the agents."
	if o.Has("decompose") && !p.Bool(o, "decompose") {
		text += " Call one agent for each request, with the whole request."
	} else {
		text += " Divide a request that needs several agents into parts, one for each."
	}
	if brand := p.Text(o, "brand_name"); brand != "" {
		text += " You speak for " + brand + "."
	}
	text = strings.TrimSpace(p.Text(o, "system_prompt_prefix") + "\n\n" + cmp.Or(p.Text(o, "system_prompt"), text) + "\n\n" + p.Text(o, "system_prompt_suffix"))
	if o.Get("system_prompt") == nil {
		p.Assumed(o.Get("agent_list"), "the instructions of AI Refinery's orchestrator are not in the file; check the system message of the Agent")
	}
	reads := p.contextsOf(o)
	if reads.values != nil {
		p.Unsupported(o.Get("contexts"), "the orchestrator does not read variables; the agents do")
	}
	memory := cmp.Or(reads.memory, p.contextMemory("chat_history"))
	if memory == "" {
		memory = p.chats()[0]
	}
	p.used[memory] = true
	f := &document.Flow{ID: p.ids.New("orchestrator", "orchestrator")}
	chatFlow(f)
	p.app.Flows = append(p.app.Flows, f)
	for _, m := range list {
		m.pooled = true
	}
	p.agentStep(f, caller{config: o, at: o, memory: memory, system: text + p.style(o), list: list})
}

// caller is an agent that calls others.
type caller struct {
	config *input.Node // with the model
	at     *input.Node // for messages
	memory string      // may be empty
	system string      // its system message
	list   []*member   // the agents that it calls
}

// agentStep adds a step that answers the input of a flow with the help of other agents.
func (p *project) agentStep(f *document.Flow, c caller) {
	kind := "Agent"
	if len(c.list) == 0 {
		kind = "LLMInference"
	}
	b := new(document.Block).Set("type", kind).Set("id", p.ids.New(f.ID+"_answer", "answer")).Set("model", p.model(c.config, c.at))
	if c.memory != "" {
		b.Set("memory", c.memory)
	}
	b.Set("system_message", c.system)
	if len(c.list) > 0 {
		var tools document.NameList
		for _, m := range c.list {
			tools = append(tools, p.toolOf(m.agent))
		}
		b.Set("tools", tools)
	}
	b.Set("inputs", document.NameList(f.Inputs)).Set("outputs", document.NameList(f.Outputs))
	f.Steps = append(f.Steps, &document.Step{Block: b, Reads: f.Inputs, Writes: f.Outputs})
}

// superAgent writes the flow of a SuperAgent: an Agent that calls the agents of its list.
func (p *project) superAgent(a *agent) {
	p.common(a, "goal", "agent_list", "checklist", "requirements", "system_prompt")
	text := "You complete the user's request in steps with agents, which are your tools. An agent does not see this conversation: " +
		"pass on what it must know. Keep a list of the tasks that are left, and answer when it is empty."
	if own := p.Text(a.config, "system_prompt"); own != "" {
		text = own
	} else {
		p.Assumed(cmp.Or(a.n.Get("agent_class"), a.n), "agent %s: the instructions of %s are not in the file; check the system message of the Agent", a.name, a.class)
	}
	if goal := strings.TrimSpace(p.Text(a.config, "goal")); goal != "" {
		text += "\n\nGoal: " + goal
	}
	var tasks []string
	for _, from := range []*input.Node{a.n, a.config} {
		for _, key := range []string{"requirements", "checklist"} {
			if from == a.config || key == "requirements" {
				tasks = append(tasks, p.tasks(from, key)...)
			}
		}
	}
	if len(tasks) > 0 {
		text += "\n\nComplete these tasks first, in this order:"
		for i, task := range tasks {
			text += fmt.Sprintf("\n%d. %s", i+1, task)
		}
	}
	for _, m := range a.list {
		if m.entry.Kind != input.Map {
			continue
		}
		p.CheckKeys(m.entry, "an entry of agent_list", "agent_name", "requirements")
		if needs := p.tasks(m.entry, "requirements"); len(needs) > 0 {
			text += "\n\nRequirements of " + toolName(m.flow.ID) + ":\n- " + strings.Join(needs, "\n- ")
		}
	}
	if len(a.list) == 0 {
		p.Malformed(a.n, "agent %s has no agents that it can call", a.name)
	}
	reads := p.contextsOf(a.config)
	if reads.values != nil {
		p.Unsupported(a.config.Get("contexts"), "agent %s does not read variables; its agents do", a.name)
	}
	if a.pooled {
		textFlow(a.flow)
	} else {
		chatFlow(a.flow)
	}
	p.agentStep(a.flow, caller{config: a.config, at: a.n, memory: reads.memory, system: text + p.style(a.config), list: a.list})
}

// tasks returns the entries of a checklist.
func (p *project) tasks(n *input.Node, key string) []string {
	var all []string
	for _, item := range p.List(n, key) {
		switch item.Kind {
		case input.Map:
			for _, pair := range item.Entries() {
				all = append(all, document.OneLine(pair.Key+": "+pair.Value.Text))
			}
		case input.List:
			p.Malformed(item, "an entry of %s must be a string, not %s", key, item.Describe())
		default:
			all = append(all, document.OneLine(strings.TrimSpace(item.Text)))
		}
	}
	return all
}

// mainFirst moves the flow of the only agent of an orchestrator to the front, as the
// first flow is the main one.
func (p *project) mainFirst() {
	if len(p.routed) != 1 {
		return
	}
	i := slices.Index(p.app.Flows, p.routed[0].flow)
	main := p.app.Flows[i]
	p.app.Flows = slices.Insert(slices.Delete(p.app.Flows, i, i+1), 0, main)
}
