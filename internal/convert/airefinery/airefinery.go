// Package airefinery converts project files of AI Refinery.
package airefinery

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/qtype-dev/qtype/internal/convert/document"
	"github.com/qtype-dev/qtype/internal/convert/input"
)

// project is the conversion of a project file: memory modules become memories, and
// agents that consist of a prompt become flows.
type project struct {
	*input.Report
	app      *document.App
	ids      *document.IDs
	root     *input.Node
	memories map[string]string // ids by module name
	sources  map[string]string // fingerprints of module declarations by name
	order    []string          // memory ids in order
	used     map[string]bool   // memories that a flow uses
	models   map[string]string // ids by model name and parameters

	agentNames   []string     // converted agents
	placeholders document.Set // variables of prompts
}

// Convert converts a project file, its memory_config, or only the memory modules.
// It returns nil if nothing can be converted.
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
		r.Malformed(root, "not an AI Refinery file: expected a mapping with memory_config, not %s", root.Describe())
		return nil
	case root.Get("memory_config") == nil && root.Get("utility_agents") == nil && root.Get("orchestrator").Get("memory_config") == nil && root.Get("base_config").Get("memory_config") == nil:
		r.Malformed(root, `not an AI Refinery file: it has neither "memory_config" nor "utility_agents"`)
		return nil
	}
	p := &project{Report: r, root: root, app: &document.App{ID: "airefinery_app"}, ids: document.NewIDs("airefinery_app"),
		placeholders: document.Set{}, memories: map[string]string{}, sources: map[string]string{}, used: map[string]bool{}, models: map[string]string{}}
	p.CheckKeys(root, "the file", "memory_config", "orchestrator", "utility_agents", "super_agents", "trust_agents", "base_config", "embedding_config", "project_name", "description")
	p.app.Description = p.Text(root, "description")
	if name := p.Text(root, "project_name"); name != "" {
		p.app.Comments = append(p.app.Comments, "Project name: "+name+".")
	}
	p.readMemories()
	p.readAgents()
	p.reportRest()
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
			r.Malformed(root, "no memory module and no agent can be converted")
		}
		return nil
	}
	document.AttachMock(p.app, p.ids)
	return p.app
}

// reportRest reports the parts of a project without a counterpart.
func (p *project) reportRest() {
	for _, key := range []string{"super_agents", "trust_agents"} {
		for _, n := range p.List(p.root, key) {
			p.Unsupported(n, "agent %s of %s is not converted: its planning has no counterpart", cmp.Or(n.Get("agent_name").Scalar(), "without name"), key)
		}
	}
	if o := p.Map(p.root, "orchestrator"); o != nil {
		p.orchestrator(o)
	}
	unused := []string{"embedding_config", "vlm_config", "reranker_config", "compression_config"}
	for _, n := range []*input.Node{p.root, p.Map(p.root, "base_config")} {
		for _, key := range unused {
			if n.Get(key) != nil {
				p.Ignored(n.KeySpan(key), "%s is ignored: no converted part uses it", key)
			}
		}
	}
	if base := p.Map(p.root, "base_config"); base != nil {
		p.CheckKeys(base, "base_config", append(unused, "llm_config", "memory_config")...)
	}
}

// orchestrator reports the orchestrator, which distributes requests to agents,
// unless it has only one agent.
func (p *project) orchestrator(o *input.Node) {
	p.CheckKeys(o, "orchestrator", "agent_list", "brand_name", "system_prompt", "enable_routing", "decompose", "rai_config", "config", "self_reflection_config", "selfreflection_config", "contexts", "llm_config", "memory_config")
	for _, key := range []string{"brand_name", "system_prompt", "rai_config", "config", "self_reflection_config", "selfreflection_config"} {
		if v := o.Get(key); v != nil && len(v.Items)+len(v.Pairs)+len(v.Text) > 0 {
			p.Add(input.Unsupported.At(o.KeySpan(key), "orchestrator: %s has no counterpart", key))
		}
	}
	list := o.Get("agent_list")
	if list != nil && len(list.Items) == 1 && slices.Contains(p.agentNames, list.Items[0].Get("agent_name").Scalar()) {
		return
	}
	p.Add(input.Unsupported.At(p.root.KeySpan("orchestrator"), "the orchestrator chooses an agent for each request, which has no counterpart; use a Switch step, or run the flow of an agent by its name"))
}

// agents returns the utility agents that are mappings.
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

func (p *project) readAgents() {
	seen := map[string]bool{}
	for i, n := range p.List(p.root, "utility_agents") {
		m := p.AsMap(n, fmt.Sprintf("utility agent %d", i+1))
		if m == nil {
			continue
		}
		name := p.RequiredText(m, "agent_name", fmt.Sprintf("utility agent %d", i+1))
		if seen[name] && name != "" {
			p.Malformed(m.Get("agent_name"), "duplicate agent %s ignored", name)
			continue
		}
		seen[name] = true
		p.agent(m, name)
	}
}

// agent converts an agent that consists of a prompt and reports others.
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
		p.Unsupported(at, "agent %s (%s) is not converted: only agents that consist of a magic_prompt are", cmp.Or(name, "without name"), cmp.Or(class, "no class"))
		return
	}
	p.agentNames = append(p.agentNames, name)
	p.CheckKeys(config, "the config of agent "+name, "magic_prompt", "contexts", "llm_config", "output_style", "self_reflection", "self_reflection_config", "memory_config")
	for _, key := range []string{"output_style", "self_reflection"} {
		if config.Get(key) != nil {
			p.Add(input.Unsupported.At(config.KeySpan(key), "agent %s: %s has no counterpart", name, key))
		}
	}
	for _, from := range []*input.Node{n, config} {
		if c := p.Map(from, "self_reflection_config"); c != nil && !(c.Has("self_reflection") && !p.Bool(c, "self_reflection")) {
			p.Add(input.Unsupported.At(from.KeySpan("self_reflection_config"), "agent %s: self_reflection_config has no counterpart", name))
		}
	}
	f := &document.Flow{ID: p.ids.New(name, "agent"), Description: p.Text(n, "agent_description")}
	p.app.Flows = append(p.app.Flows, f)
	answer := new(document.Block).Set("type", "LLMInference").Set("id", p.ids.New(f.ID+"_answer", "answer")).Set("model", p.model(config, n))
	if memory := p.memoryOf(config); memory != "" {
		answer.Set("memory", memory)
	}
	p.writeSteps(f, answer, prompt, config)
}

// memoryOf returns the memory that an agent's contexts refer to.
func (p *project) memoryOf(config *input.Node) (found string) {
	all := config.Get("contexts")
	if all == nil {
		return ""
	}
	items := all.Items
	if all.Kind == input.Text {
		p.Assumed(all, "contexts must be a list; using %s as its only entry", all.Describe())
		items = []*input.Node{all}
	} else {
		p.List(config, "contexts")
	}
	for _, n := range items {
		name := n
		if len(n.Pairs) == 1 { // a part of a memory
			name = &input.Node{Kind: input.Text, Text: n.Pairs[0].Key, Span: n.Pairs[0].KeySpan}
			if v := n.Pairs[0].Value; len(v.Pairs) > 0 {
				p.Unsupported(v, "selecting a part of context %s has no counterpart; all of it is sent", name.Text)
			}
		}
		id := p.memories[name.Text]
		if id == "" && name.Text == "chat_history" && len(p.order) == 0 {
			p.declareMemory(name.Text, defaultRounds, defaultContext).Note("AI Refinery's default if a file declares no memory.")
		}
		if id == "" && name.Text == "chat_history" && len(p.order) == 1 {
			id = p.order[0]
		}
		if id == "" || found != "" && found != id {
			p.Unsupported(name, "context %s has no counterpart", name.Describe())
			continue
		}
		p.used[id], found = true, id
	}
	return found
}

// params copies the numeric parameters of a model.
func (p *project) params(llm *input.Node, to *document.Block) {
	for _, pair := range llm.Pairs {
		switch {
		case pair.Key == "model":
		case pair.Value.Kind == input.Int || pair.Value.Kind == input.Float:
			to.Set(pair.Key, document.Number(pair.Value.Text))
		default:
			p.Ignored(pair.KeySpan, "%s of llm_config is ignored; set parameters of the provider in inference_params", pair.Key)
		}
	}
}

// model returns the id of the model of an agent or, by default, of the project.
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
		p.Assumed(agent, "no model for the agent; using %s", name)
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
		p.Add(input.Assumed.At(agent.Mark(), "unknown provider of model %s; using openai, set base_url for another server with its protocol", name))
	}
	p.app.Models = append(p.app.Models, made)
	return id
}
