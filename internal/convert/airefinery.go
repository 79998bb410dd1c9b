package convert

import (
	"fmt"
)

// project is a project file of AI Refinery. Its memory modules become memories, and
// each agent that is a prompt becomes a flow.
type project struct {
	*report
	app      *application
	ids      *names
	root     *node
	memories map[string]string // ids by the modules' names
	sources  map[string]string // what the modules say, by their names
	order    []string          // the ids in order
	used     map[string]bool   // memories that a flow has
	models   map[string]string // ids by the models' names

	agentNames []string // agents that were converted
	words      set      // variables of prompts
}

// airefinery converts a project file, its memory_config, or the modules alone.
func airefinery(r *report, root *node) *application {
	spell(root, "memory_modules", "memory_config", "utility_agents", "memory_class")
	if root.form == mapping && root.get("memory_class") != nil && root.get("memory_modules") == nil {
		root = &node{form: list, span: root.span, items: []*node{root}}
	}
	switch {
	case root.form == list:
		root = &node{form: mapping, span: root.span, pairs: []pair{{key: "memory_modules", at: root.mark(), value: root}}}
		fallthrough
	case root.form == mapping && root.get("memory_modules") != nil:
		root = &node{form: mapping, span: root.span, pairs: []pair{{key: "memory_config", at: root.mark(), value: root}}}
	case root.form != mapping:
		r.malformed(root, "this is no AI Refinery file: a mapping with memory_config is expected, not %s", root.described())
		return nil
	case root.get("memory_config") == nil && root.get("utility_agents") == nil && root.get("orchestrator").get("memory_config") == nil && root.get("base_config").get("memory_config") == nil:
		r.malformed(root, `this is no AI Refinery file: there is no "memory_config" and no "utility_agents"`)
		return nil
	}
	p := &project{report: r, root: root, app: &application{id: "airefinery_app"}, ids: reservedIDs("airefinery_app"),
		words: set{}, memories: map[string]string{}, sources: map[string]string{}, used: map[string]bool{}, models: map[string]string{}}
	p.known(root, "the file", "memory_config", "orchestrator", "utility_agents", "super_agents", "trust_agents", "base_config", "embedding_config", "project_name", "description")
	p.app.description = p.textOf(root, "description")
	if name := p.textOf(root, "project_name"); name != "" {
		p.app.head = append(p.app.head, "The project's name: "+name+".")
	}
	p.readMemories()
	p.readAgents()
	p.aside()
	var rest []string
	for _, id := range p.order {
		if !p.used[id] {
			rest = append(rest, id)
		}
	}
	if len(rest) > 0 {
		talkTo(p.app, p.ids, rest)
	}
	if len(p.app.flows) == 0 {
		if r.list.Errors() == 0 {
			r.malformed(root, "there is no memory module and no agent that can be converted")
		}
		return nil
	}
	attachMock(p.app, p.ids)
	return p.app
}

// aside tells of the parts of a project that have no counterpart.
func (p *project) aside() {
	for _, key := range []string{"super_agents", "trust_agents"} {
		for _, n := range p.listOf(p.root, key) {
			p.unsupported(n, "the agent %s of %s is not converted: what it plans and hands on has no counterpart", either(n.get("agent_name").name(), "without a name"), key)
		}
	}
	if o := p.mapOf(p.root, "orchestrator"); o != nil {
		p.orchestrator(o)
	}
	unused := []string{"embedding_config", "vlm_config", "reranker_config", "compression_config"}
	for _, n := range []*node{p.root, p.mapOf(p.root, "base_config")} {
		for _, key := range unused {
			if n.get(key) != nil {
				p.ignored(n.keyAt(key), "nothing that is converted uses %s; it is left out", key)
			}
		}
	}
	if base := p.mapOf(p.root, "base_config"); base != nil {
		p.known(base, "base_config", append(unused, "llm_config", "memory_config")...)
	}
}

// orchestrator tells of what hands the requests on to the agents; one that has a
// single agent has nothing to choose.
func (p *project) orchestrator(o *node) {
	p.known(o, "orchestrator", "agent_list", "brand_name", "system_prompt", "enable_routing", "decompose", "rai_config", "config", "self_reflection_config", "selfreflection_config", "contexts", "llm_config", "memory_config")
	for _, key := range []string{"brand_name", "system_prompt", "rai_config", "config", "self_reflection_config", "selfreflection_config"} {
		if v := o.get(key); v != nil && len(v.items)+len(v.pairs)+len(v.text) > 0 {
			p.add(ruleUnsupported.At(o.keyAt(key), "orchestrator: %s has no counterpart", key))
		}
	}
	list := o.get("agent_list")
	if list != nil && len(list.items) == 1 && contains(p.agentNames, list.items[0].get("agent_name").name()) {
		return
	}
	p.add(ruleUnsupported.At(p.root.keyAt("orchestrator"), "the orchestrator chooses an agent for each request, which has no counterpart: a Switch step can, and every agent is a flow that can be run by its name"))
}

// name is the text of a node that may be missing.
func (n *node) name() string {
	if n == nil {
		return ""
	}
	return n.text
}

// readMemories reads the memory modules of the project, and of the parts of it
// that have a memory_config of their own.
func (p *project) readMemories() {
	owners := []*node{p.root, p.root.get("base_config"), p.root.get("orchestrator")}
	for _, agent := range p.agents() {
		owners = append(owners, agent, agent.get("config"))
	}
	for _, n := range owners {
		if n == nil || n.form != mapping {
			continue
		}
		if config := p.mapOf(n, "memory_config"); config != nil {
			p.readModules(config)
		}
	}
}

// agents are the utility agents that are mappings.
func (p *project) agents() []*node {
	var all []*node
	if list := p.root.get("utility_agents"); list != nil {
		for _, n := range list.items {
			if n.form == mapping {
				all = append(all, n)
			}
		}
	}
	return all
}

func (p *project) readModules(config *node) {
	p.known(config, "memory_config", "memory_modules", "embedding_config")
	if config.get("embedding_config") != nil {
		p.ignored(config.keyAt("embedding_config"), "no memory that is converted uses embeddings; embedding_config is left out")
	}
	if config.get("memory_modules") == nil {
		p.malformed(config, `memory_config has no "memory_modules"`)
	}
	for i, n := range p.listOf(config, "memory_modules") {
		if m := p.isMap(n, fmt.Sprintf("memory module %d", i+1)); m != nil {
			p.module(m, i+1)
		}
	}
}

// module converts one memory module.
func (p *project) module(n *node, number int) {
	p.known(n, "a memory module", "memory_name", "memory_class", "config", "kwargs")
	owner := fmt.Sprintf("memory module %d", number)
	name := p.needText(n, "memory_name", owner)
	class := p.needText(n, "memory_class", owner)
	if name != "" {
		owner = "memory module " + name
	}
	if had, twice := p.sources[name]; twice && name != "" {
		if had == n.source() {
			return // two agents tell of one memory
		}
		p.malformed(n.get("memory_name"), "two memory modules have the name %s; this one is left out", name)
		return
	}
	classes := []string{"ChatMemoryModule", "VariableMemoryModule", "MemTreeModule"}
	for _, known := range classes {
		if class != known && foldCase(class) == foldCase(known) {
			p.assumed(n.get("memory_class"), "the class %q is taken for %s", class, known)
			class = known
		}
	}
	switch class {
	case "ChatMemoryModule":
	case "":
		return
	case "VariableMemoryModule":
		p.unsupported(n.get("memory_class"), "%s holds named values: a memory with context: [{type: variables}] does that here, and steps set them", owner)
		return
	case "MemTreeModule":
		p.unsupported(n.get("memory_class"), "%s finds old messages by their meaning: a memory with context: [{type: retrieval}] and an embedding model does that here", owner)
		return
	default:
		p.add(ruleUnsupported.At(n.get("memory_class").mark(), "%s: the class %s is not known and is left out", owner, class).WithNearest(class, classes))
		return
	}
	rounds, most := usualRounds, usualContext
	for _, key := range []string{"kwargs", "config"} { // older files say kwargs
		if config := p.mapOf(n, key); config != nil {
			p.known(config, "the "+key+" of "+owner, "n_rounds", "max_context")
			rounds = orDefault(p.positive(config, "n_rounds"), rounds)
			most = orDefault(p.positive(config, "max_context"), most)
		}
	}
	p.sources[name] = n.source()
	p.remember(name, rounds, most)
}

// AI Refinery's own values for what a memory module does not say.
const (
	usualRounds  = 3
	usualContext = 10000
)

// remember declares a memory.
func (p *project) remember(name string, rounds, most int) *block {
	id := p.ids.id(name, "memory")
	p.memories[name] = id
	p.order = append(p.order, id)
	b := new(block).set("id", id)
	if name != "" && id != name {
		b.note("Its name was %s.", oneLine(name))
	}
	b.set("policy", "round_window").set("n_rounds", rounds).set("max_context", most)
	p.app.memories = append(p.app.memories, b)
	return b
}

func orDefault(n, usual int) int {
	if n == 0 {
		return usual
	}
	return n
}

func (p *project) readAgents() {
	seen := map[string]bool{}
	for i, n := range p.listOf(p.root, "utility_agents") {
		m := p.isMap(n, fmt.Sprintf("utility agent %d", i+1))
		if m == nil {
			continue
		}
		name := p.needText(m, "agent_name", fmt.Sprintf("utility agent %d", i+1))
		if seen[name] && name != "" {
			p.malformed(m.get("agent_name"), "two agents have the name %s; this one is left out", name)
			continue
		}
		seen[name] = true
		p.agent(m, name)
	}
}

// agent converts an agent that is a prompt; others do something of their own.
func (p *project) agent(n *node, name string) {
	p.known(n, "an agent", "agent_class", "agent_name", "agent_description", "config", "memory_config", "self_reflection_config")
	config := p.mapOf(n, "config")
	prompt := ""
	if config != nil {
		prompt = p.textOf(config, "magic_prompt")
	}
	if prompt == "" {
		class := p.textOf(n, "agent_class")
		at := n
		if c := n.get("agent_class"); c != nil {
			at = c
		}
		p.unsupported(at, "the agent %s (%s) is not converted: only an agent with a magic_prompt is a prompt and nothing more", either(name, "without a name"), either(class, "of no class"))
		return
	}
	p.agentNames = append(p.agentNames, name)
	p.known(config, "the config of agent "+name, "magic_prompt", "contexts", "llm_config", "output_style", "self_reflection", "self_reflection_config", "memory_config")
	for _, key := range []string{"output_style", "self_reflection"} {
		if config.get(key) != nil {
			p.add(ruleUnsupported.At(config.keyAt(key), "agent %s: %s has no counterpart", name, key))
		}
	}
	for _, from := range []*node{n, config} {
		if c := p.mapOf(from, "self_reflection_config"); c != nil && !(c.has("self_reflection") && !p.truth(c, "self_reflection")) {
			p.add(ruleUnsupported.At(from.keyAt("self_reflection_config"), "agent %s: self_reflection_config has no counterpart", name))
		}
	}
	f := &flow{id: p.ids.id(name, "agent"), description: p.textOf(n, "agent_description")}
	p.app.flows = append(p.app.flows, f)
	answer := new(block).set("type", "LLMInference").set("id", p.ids.id(f.id+"_answer", "answer")).set("model", p.model(config, n))
	if memory := p.memoryOf(config); memory != "" {
		answer.set("memory", memory)
	}
	p.say(f, answer, prompt, config)
}

// memoryOf is the memory that an agent's contexts name.
func (p *project) memoryOf(config *node) (found string) {
	all := config.get("contexts")
	if all == nil {
		return ""
	}
	items := all.items
	if all.form == textual {
		p.assumed(all, "contexts is a list; %s is taken as its only entry", all.described())
		items = []*node{all}
	} else {
		p.listOf(config, "contexts")
	}
	for _, n := range items {
		name := n
		if len(n.pairs) == 1 { // a part of a memory
			name = &node{form: textual, text: n.pairs[0].key, span: n.pairs[0].at}
			if v := n.pairs[0].value; len(v.pairs) > 0 {
				p.unsupported(v, "only a part of the context %s is meant, which has no counterpart; all of it is sent", name.text)
			}
		}
		id := p.memories[name.text]
		if id == "" && name.text == "chat_history" && len(p.order) == 0 {
			p.remember(name.text, usualRounds, usualContext).note("AI Refinery's own, where a file declares no memory.")
		}
		if id == "" && name.text == "chat_history" && len(p.order) == 1 {
			id = p.order[0]
		}
		if id == "" || found != "" && found != id {
			p.unsupported(name, "the context %s has no counterpart", name.described())
			continue
		}
		p.used[id], found = true, id
	}
	return found
}

// params reads what a provider is told beside the model's name.
func (p *project) params(llm *node, to *block) {
	for _, pair := range llm.pairs {
		switch {
		case pair.key == "model":
		case pair.value.form == integer || pair.value.form == number:
			to.set(pair.key, literal(pair.value.text))
		default:
			p.ignored(pair.at, "%s of llm_config is left out; a model takes what its provider knows in inference_params", pair.key)
		}
	}
}

// model is the id of the model of an agent: its own, or the project's.
func (p *project) model(config, agent *node) string {
	name := ""
	params := &block{inline: true}
	for _, n := range []*node{config, p.root.get("base_config")} {
		if n == nil || n.form != mapping || name != "" {
			continue
		}
		if llm := p.mapOf(n, "llm_config"); llm != nil {
			name = p.textOf(llm, "model")
			p.params(llm, params)
		}
	}
	if name == "" {
		name = "gpt-4o-mini"
		p.assumed(agent, "the file names no model for the agent; %s was chosen", name)
	}
	key := fmt.Sprint(name, params.entries)
	if id := p.models[key]; id != "" {
		return id
	}
	id := p.ids.id(name, "model")
	p.models[key] = id
	made, known := modelBlock(id, name)
	if len(params.entries) > 0 {
		made.set("inference_params", params)
	}
	if !known {
		p.add(ruleChosen.At(agent.mark(), "it is not known who runs the model %s; openai was chosen, and base_url can name any server that speaks its protocol", name))
	}
	p.app.models = append(p.app.models, made)
	return id
}
