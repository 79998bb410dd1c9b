package airefinery

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/qtype-dev/qtype/internal/convert/document"
	"github.com/qtype-dev/qtype/internal/convert/input"
)

// project is a project file of AI Refinery. Its memory modules become memories, and
// each agent that is a prompt becomes a flow.
type project struct {
	*input.Report
	app      *document.App
	ids      *document.IDs
	root     *input.Node
	memories map[string]string // ids by the modules' names
	sources  map[string]string // what the modules say, by their names
	order    []string          // the ids in order
	used     map[string]bool   // memories that a flow has
	models   map[string]string // ids by the models' names

	agentNames []string     // agents that were converted
	words      document.Set // variables of prompts
}

// Convert converts a project file, its memory_config, or the modules alone.
func Convert(r *input.Report, root *input.Node) *document.App {
	input.NormalizeKeys(root, "memory_modules", "memory_config", "utility_agents", "memory_class")
	if root.Kind == input.Map && root.Get("memory_class") != nil && root.Get("memory_modules") == nil {
		root = &input.Node{Kind: input.List, Span: root.Span, Items: []*input.Node{root}}
	}
	switch {
	case root.Kind == input.List:
		root = &input.Node{Kind: input.Map, Span: root.Span, Pairs: []input.Pair{{Key: "memory_modules", KeySpan: root.Mark(), Value: root}}}
		fallthrough
	case root.Kind == input.Map && root.Get("memory_modules") != nil:
		root = &input.Node{Kind: input.Map, Span: root.Span, Pairs: []input.Pair{{Key: "memory_config", KeySpan: root.Mark(), Value: root}}}
	case root.Kind != input.Map:
		r.Malformed(root, "this is no AI Refinery file: a mapping with memory_config is expected, not %s", root.Describe())
		return nil
	case root.Get("memory_config") == nil && root.Get("utility_agents") == nil && root.Get("orchestrator").Get("memory_config") == nil && root.Get("base_config").Get("memory_config") == nil:
		r.Malformed(root, `this is no AI Refinery file: there is no "memory_config" and no "utility_agents"`)
		return nil
	}
	p := &project{Report: r, root: root, app: &document.App{Id: "airefinery_app"}, ids: document.NewIDs("airefinery_app"),
		words: document.Set{}, memories: map[string]string{}, sources: map[string]string{}, used: map[string]bool{}, models: map[string]string{}}
	p.CheckKeys(root, "the file", "memory_config", "orchestrator", "utility_agents", "super_agents", "trust_agents", "base_config", "embedding_config", "project_name", "description")
	p.app.Description = p.Text(root, "description")
	if name := p.Text(root, "project_name"); name != "" {
		p.app.Comments = append(p.app.Comments, "The project's name: "+name+".")
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
		document.AddChatFlows(p.app, p.ids, rest)
	}
	if len(p.app.Flows) == 0 {
		if !r.HasErrors() {
			r.Malformed(root, "there is no memory module and no agent that can be converted")
		}
		return nil
	}
	document.AttachMock(p.app, p.ids)
	return p.app
}

// aside tells of the parts of a project that have no counterpart.
func (p *project) aside() {
	for _, key := range []string{"super_agents", "trust_agents"} {
		for _, n := range p.List(p.root, key) {
			p.Unsupported(n, "the agent %s of %s is not converted: what it plans and hands on has no counterpart", cmp.Or(n.Get("agent_name").Scalar(), "without a name"), key)
		}
	}
	if o := p.Map(p.root, "orchestrator"); o != nil {
		p.orchestrator(o)
	}
	unused := []string{"embedding_config", "vlm_config", "reranker_config", "compression_config"}
	for _, n := range []*input.Node{p.root, p.Map(p.root, "base_config")} {
		for _, key := range unused {
			if n.Get(key) != nil {
				p.Ignored(n.KeySpan(key), "nothing that is converted uses %s; it is left out", key)
			}
		}
	}
	if base := p.Map(p.root, "base_config"); base != nil {
		p.CheckKeys(base, "base_config", append(unused, "llm_config", "memory_config")...)
	}
}

// orchestrator tells of what hands the requests on to the agents; one that has a
// single agent has nothing to choose.
func (p *project) orchestrator(o *input.Node) {
	p.CheckKeys(o, "orchestrator", "agent_list", "brand_name", "system_prompt", "enable_routing", "decompose", "rai_config", "config", "self_reflection_config", "selfreflection_config", "contexts", "llm_config", "memory_config")
	for _, key := range []string{"brand_name", "system_prompt", "rai_config", "config", "self_reflection_config", "selfreflection_config"} {
		if v := o.Get(key); v != nil && len(v.Items)+len(v.Pairs)+len(v.Text) > 0 {
			p.Add(input.UnsupportedAt(o.KeySpan(key), "orchestrator: %s has no counterpart", key))
		}
	}
	list := o.Get("agent_list")
	if list != nil && len(list.Items) == 1 && slices.Contains(p.agentNames, list.Items[0].Get("agent_name").Scalar()) {
		return
	}
	p.Add(input.UnsupportedAt(p.root.KeySpan("orchestrator"), "the orchestrator chooses an agent for each request, which has no counterpart: a Switch step can, and every agent is a flow that can be run by its name"))
}

// readMemories reads the memory modules of the project, and of the parts of it
// that have a memory_config of their own.
func (p *project) readMemories() {
	owners := []*input.Node{p.root, p.root.Get("base_config"), p.root.Get("orchestrator")}
	for _, agent := range p.agents() {
		owners = append(owners, agent, agent.Get("config"))
	}
	for _, n := range owners {
		if n == nil || n.Kind != input.Map {
			continue
		}
		if config := p.Map(n, "memory_config"); config != nil {
			p.readModules(config)
		}
	}
}

// agents are the utility agents that are mappings.
func (p *project) agents() []*input.Node {
	var all []*input.Node
	if list := p.root.Get("utility_agents"); list != nil {
		for _, n := range list.Items {
			if n.Kind == input.Map {
				all = append(all, n)
			}
		}
	}
	return all
}

func (p *project) readModules(config *input.Node) {
	p.CheckKeys(config, "memory_config", "memory_modules", "embedding_config")
	if config.Get("embedding_config") != nil {
		p.Ignored(config.KeySpan("embedding_config"), "no memory that is converted uses embeddings; embedding_config is left out")
	}
	if config.Get("memory_modules") == nil {
		p.Malformed(config, `memory_config has no "memory_modules"`)
	}
	for i, n := range p.List(config, "memory_modules") {
		if m := p.AsMap(n, fmt.Sprintf("memory module %d", i+1)); m != nil {
			p.module(m, i+1)
		}
	}
}

// module converts one memory module.
func (p *project) module(n *input.Node, number int) {
	p.CheckKeys(n, "a memory module", "memory_name", "memory_class", "config", "kwargs")
	owner := fmt.Sprintf("memory module %d", number)
	name := p.RequiredText(n, "memory_name", owner)
	class := p.RequiredText(n, "memory_class", owner)
	if name != "" {
		owner = "memory module " + name
	}
	if had, twice := p.sources[name]; twice && name != "" {
		if had == n.Fingerprint() {
			return // two agents tell of one memory
		}
		p.Malformed(n.Get("memory_name"), "two memory modules have the name %s; this one is left out", name)
		return
	}
	classes := []string{"ChatMemoryModule", "VariableMemoryModule", "MemTreeModule"}
	for _, known := range classes {
		if class != known && input.FoldName(class) == input.FoldName(known) {
			p.Assumed(n.Get("memory_class"), "the class %q is taken for %s", class, known)
			class = known
		}
	}
	switch class {
	case "ChatMemoryModule":
	case "":
		return
	case "VariableMemoryModule":
		p.Unsupported(n.Get("memory_class"), "%s holds named values: a memory with context: [{type: variables}] does that here, and steps set them", owner)
		return
	case "MemTreeModule":
		p.Unsupported(n.Get("memory_class"), "%s finds old messages by their meaning: a memory with context: [{type: retrieval}] and an embedding model does that here", owner)
		return
	default:
		p.Add(input.UnsupportedAt(n.Get("memory_class").Mark(), "%s: the class %s is not known and is left out", owner, class).WithNearest(class, classes))
		return
	}
	rounds, most := usualRounds, usualContext
	for _, key := range []string{"kwargs", "config"} { // older files say kwargs
		if config := p.Map(n, key); config != nil {
			p.CheckKeys(config, "the "+key+" of "+owner, "n_rounds", "max_context")
			rounds = cmp.Or(p.PositiveInt(config, "n_rounds"), rounds)
			most = cmp.Or(p.PositiveInt(config, "max_context"), most)
		}
	}
	p.sources[name] = n.Fingerprint()
	p.remember(name, rounds, most)
}

// AI Refinery's own values for what a memory module does not say.
const (
	usualRounds  = 3
	usualContext = 10000
)

// remember declares a memory.
func (p *project) remember(name string, rounds, most int) *document.Block {
	id := p.ids.New(name, "memory")
	p.memories[name] = id
	p.order = append(p.order, id)
	b := new(document.Block).Set("id", id)
	if name != "" && id != name {
		b.Note("Its name was %s.", document.OneLine(name))
	}
	b.Set("policy", "round_window").Set("n_rounds", rounds).Set("max_context", most)
	p.app.Memories = append(p.app.Memories, b)
	return b
}

func (p *project) readAgents() {
	seen := map[string]bool{}
	for i, n := range p.List(p.root, "utility_agents") {
		m := p.AsMap(n, fmt.Sprintf("utility agent %d", i+1))
		if m == nil {
			continue
		}
		name := p.RequiredText(m, "agent_name", fmt.Sprintf("utility agent %d", i+1))
		if seen[name] && name != "" {
			p.Malformed(m.Get("agent_name"), "two agents have the name %s; this one is left out", name)
			continue
		}
		seen[name] = true
		p.agent(m, name)
	}
}

// agent converts an agent that is a prompt; others do something of their own.
func (p *project) agent(n *input.Node, name string) {
	p.CheckKeys(n, "an agent", "agent_class", "agent_name", "agent_description", "config", "memory_config", "self_reflection_config")
	config := p.Map(n, "config")
	prompt := ""
	if config != nil {
		prompt = p.Text(config, "magic_prompt")
	}
	if prompt == "" {
		class := p.Text(n, "agent_class")
		at := n
		if c := n.Get("agent_class"); c != nil {
			at = c
		}
		p.Unsupported(at, "the agent %s (%s) is not converted: only an agent with a magic_prompt is a prompt and nothing more", cmp.Or(name, "without a name"), cmp.Or(class, "of no class"))
		return
	}
	p.agentNames = append(p.agentNames, name)
	p.CheckKeys(config, "the config of agent "+name, "magic_prompt", "contexts", "llm_config", "output_style", "self_reflection", "self_reflection_config", "memory_config")
	for _, key := range []string{"output_style", "self_reflection"} {
		if config.Get(key) != nil {
			p.Add(input.UnsupportedAt(config.KeySpan(key), "agent %s: %s has no counterpart", name, key))
		}
	}
	for _, from := range []*input.Node{n, config} {
		if c := p.Map(from, "self_reflection_config"); c != nil && !(c.Has("self_reflection") && !p.Bool(c, "self_reflection")) {
			p.Add(input.UnsupportedAt(from.KeySpan("self_reflection_config"), "agent %s: self_reflection_config has no counterpart", name))
		}
	}
	f := &document.Flow{Id: p.ids.New(name, "agent"), Description: p.Text(n, "agent_description")}
	p.app.Flows = append(p.app.Flows, f)
	answer := new(document.Block).Set("type", "LLMInference").Set("id", p.ids.New(f.Id+"_answer", "answer")).Set("model", p.model(config, n))
	if memory := p.memoryOf(config); memory != "" {
		answer.Set("memory", memory)
	}
	p.say(f, answer, prompt, config)
}

// memoryOf is the memory that an agent's contexts name.
func (p *project) memoryOf(config *input.Node) (found string) {
	all := config.Get("contexts")
	if all == nil {
		return ""
	}
	items := all.Items
	if all.Kind == input.Text {
		p.Assumed(all, "contexts is a list; %s is taken as its only entry", all.Describe())
		items = []*input.Node{all}
	} else {
		p.List(config, "contexts")
	}
	for _, n := range items {
		name := n
		if len(n.Pairs) == 1 { // a part of a memory
			name = &input.Node{Kind: input.Text, Text: n.Pairs[0].Key, Span: n.Pairs[0].KeySpan}
			if v := n.Pairs[0].Value; len(v.Pairs) > 0 {
				p.Unsupported(v, "only a part of the context %s is meant, which has no counterpart; all of it is sent", name.Text)
			}
		}
		id := p.memories[name.Text]
		if id == "" && name.Text == "chat_history" && len(p.order) == 0 {
			p.remember(name.Text, usualRounds, usualContext).Note("AI Refinery's own, where a file declares no memory.")
		}
		if id == "" && name.Text == "chat_history" && len(p.order) == 1 {
			id = p.order[0]
		}
		if id == "" || found != "" && found != id {
			p.Unsupported(name, "the context %s has no counterpart", name.Describe())
			continue
		}
		p.used[id], found = true, id
	}
	return found
}

// params reads what a provider is told beside the model's name.
func (p *project) params(llm *input.Node, to *document.Block) {
	for _, pair := range llm.Pairs {
		switch {
		case pair.Key == "model":
		case pair.Value.Kind == input.Int || pair.Value.Kind == input.Float:
			to.Set(pair.Key, document.Number(pair.Value.Text))
		default:
			p.Ignored(pair.KeySpan, "%s of llm_config is left out; a model takes what its provider knows in inference_params", pair.Key)
		}
	}
}

// model is the id of the model of an agent: its own, or the project's.
func (p *project) model(config, agent *input.Node) string {
	name := ""
	params := &document.Block{Inline: true}
	for _, n := range []*input.Node{config, p.root.Get("base_config")} {
		if n == nil || n.Kind != input.Map || name != "" {
			continue
		}
		if llm := p.Map(n, "llm_config"); llm != nil {
			name = p.Text(llm, "model")
			p.params(llm, params)
		}
	}
	if name == "" {
		name = "gpt-4o-mini"
		p.Assumed(agent, "the file names no model for the agent; %s was chosen", name)
	}
	key := fmt.Sprint(name, params.Entries)
	if id := p.models[key]; id != "" {
		return id
	}
	id := p.ids.New(name, "model")
	p.models[key] = id
	made, known := document.NewModel(id, name)
	if len(params.Entries) > 0 {
		made.Set("inference_params", params)
	}
	if !known {
		p.Add(input.AssumedAt(agent.Mark(), "it is not known who runs the model %s; openai was chosen, and base_url can name any server that speaks its protocol", name))
	}
	p.app.Models = append(p.app.Models, made)
	return id
}
