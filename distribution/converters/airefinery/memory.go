package airefinery

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/qtype-dev/qtype/internal/convert/document"
	"github.com/qtype-dev/qtype/internal/convert/input"
)

// readMemories reads the memory modules of the project, the orchestrator and the
// agents.
func (p *project) readMemories() {
	owners := []*input.Node{p.root, p.root.Get("base_config"), p.root.Get("orchestrator")}
	for _, key := range []string{"utility_agents", "super_agents"} {
		if list := p.root.Get(key); list != nil {
			for _, agent := range list.Elements() {
				owners = append(owners, agent, agent.Get("config"))
			}
		}
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

func (p *project) readModules(config *input.Node) {
	p.CheckKeys(config, "memory_config", "memory_modules", "embedding_config", "save_config")
	if config.Get("save_config") != nil {
		p.Ignored(config.KeySpan("save_config"), "save_config is ignored: memories store each session")
	}
	if config.Get("memory_modules") == nil && config.Get("save_config") == nil {
		p.Malformed(config, `memory_config has no "memory_modules"`)
	}
	for i, n := range p.List(config, "memory_modules") {
		if m := p.AsMap(n, fmt.Sprintf("memory module %d", i+1)); m != nil {
			p.module(m, i+1)
		}
	}
}

func (p *project) module(n *input.Node, number int) {
	p.CheckKeys(n, "a memory module", "memory_name", "memory_class", "config", "kwargs")
	owner := fmt.Sprintf("memory module %d", number)
	name := p.RequiredText(n, "memory_name", owner)
	class := p.RequiredText(n, "memory_class", owner)
	if name != "" {
		owner = "memory module " + name
	}
	if had, twice := p.sources[name]; twice && name != "" {
		n.Use()
		if had == n.Fingerprint() {
			return // two agents declare the same memory
		}
		p.Malformed(n, "duplicate memory module %s ignored", name)
		return
	}
	classes := []string{"ChatMemoryModule", "VariableMemoryModule", "MemTreeModule"}
	for _, known := range classes {
		if class != known && input.NormalizeName(class) == input.NormalizeName(known) {
			p.Assumed(n.Get("memory_class"), "class %q read as %s", class, known)
			class = known
		}
	}
	if !slices.Contains(classes, class) {
		if class != "" {
			p.Add(input.Unsupported.At(n.Get("memory_class").Mark(), "%s: unknown class %s ignored", owner, class).WithNearest(class, classes))
		}
		return
	}
	p.sources[name] = n.Fingerprint()
	switch class {
	case "ChatMemoryModule":
		p.chatModule(n, name, owner)
	case "VariableMemoryModule":
		p.variableModule(n, name, owner)
	default:
		p.treeModule(n, name, owner)
	}
}

// settings calls read for each mapping with settings of a module.
func (p *project) settings(n *input.Node, owner string, read func(config *input.Node), keys ...string) {
	for _, key := range []string{"kwargs", "config"} { // kwargs is the key of older versions
		if config := p.Map(n, key); config != nil {
			p.CheckKeys(config, "the "+key+" of "+owner, keys...)
			read(config)
		}
	}
}

// chatModule declares a memory with the last rounds of the conversation.
func (p *project) chatModule(n *input.Node, name, owner string) {
	rounds, most := defaultRounds, defaultContext
	p.settings(n, owner, func(config *input.Node) {
		rounds = cmp.Or(p.PositiveInt(config, "n_rounds"), rounds)
		most = cmp.Or(p.PositiveInt(config, "max_context"), most)
	}, "n_rounds", "max_context")
	p.declareMemory(name, rounds, most)
}

// variableModule declares a memory with named values.
func (p *project) variableModule(n *input.Node, name, owner string) {
	s := &store{}
	size, most := 0, defaultContext
	var at *input.Node
	p.settings(n, owner, func(config *input.Node) {
		if config.Get("max_context") != nil {
			most, at = cmp.Or(p.PositiveInt(config, "max_context"), most), config
		}
		values := p.Map(config, "variables")
		if values == nil {
			return
		}
		s.at = config.KeySpan("variables")
		for _, pair := range values.Entries() {
			if pair.Value.Kind >= input.List {
				p.Unsupported(pair.Value, "%s: variable %s must be a single value, not %s", owner, pair.Key, pair.Value.Describe())
				continue
			}
			s.names, s.values = append(s.names, pair.Key), append(s.values, pair.Value.Text)
			s.ids = append(s.ids, p.ids.New(pair.Key, "value"))
			size += len(pair.Key) + len(pair.Value.Text)
		}
	}, "variables", "max_context")
	b := p.newMemory(name)
	b.Set("context", []*document.Block{(&document.Block{Inline: true}).Set("type", "variables")})
	s.memory = p.memories[name]
	p.values[s.memory] = s
	switch {
	case at != nil && size > most:
		p.Add(input.Unsupported.At(at.KeySpan("max_context"), "%s: all variables are sent, which are longer than max_context", owner))
	case at != nil:
		p.Ignored(at.KeySpan("max_context"), "%s: max_context is ignored, as the variables are shorter", owner)
	}
}

// treeModule declares a memory that retrieves messages by similarity.
func (p *project) treeModule(n *input.Node, name, owner string) {
	top := 3
	model := ""
	if config := p.Map(p.root.Get("memory_config"), "embedding_config"); config != nil {
		model = p.Text(config, "model")
	}
	p.settings(n, owner, func(config *input.Node) {
		top = cmp.Or(p.PositiveInt(config, "top"), top)
		if own := p.Map(config, "embedding_config"); own != nil {
			model = cmp.Or(p.Text(own, "model"), model)
		}
		for _, key := range []string{"threshold", "max_context", "max_depth"} {
			if config.Get(key) != nil && !(key == "max_depth" && config.Get(key).Text == "-1") {
				p.Add(input.Unsupported.At(config.KeySpan(key), "%s: %s has no counterpart", owner, key))
			}
		}
	}, "top", "max_depth", "threshold", "max_context", "embedding_config", "auto_add")
	p.Unsupported(n.Get("memory_class"), "%s retrieves single messages that left the window; its tree of summaries has no counterpart", owner)
	p.newMemory(name).Set("context", []*document.Block{(&document.Block{Inline: true}).Set("type", "retrieval").
		Set("embedding_model", p.embeddingModel(model)).Set("top_k", top)})
}

// embeddingModel returns the id of an embedding model.
func (p *project) embeddingModel(name string) string {
	const common = "text-embedding-3-small"
	name = cmp.Or(name, common)
	key := "embedding " + name
	if id := p.models[key]; id != "" {
		return id
	}
	dimensions := 1024 // of Qwen3-Embedding-0.6B, which AI Refinery's examples use
	if name == common {
		dimensions = 1536
	}
	id := p.ids.New(name, "embedding")
	p.models[key] = id
	p.app.Models = append(p.app.Models, new(document.Block).Set("type", "EmbeddingModel").Set("id", id).
		Set("provider", "openai").Note("Needs OPENAI_API_KEY, or set base_url for another server with its protocol.").
		Set("model_id", name).Set("dimensions", dimensions))
	return id
}

// AI Refinery's defaults of a memory module.
const (
	defaultRounds  = 3
	defaultContext = 10000
)

// declareMemory declares a memory of a conversation.
func (p *project) declareMemory(name string, rounds, most int) *document.Block {
	return p.newMemory(name).Set("policy", "round_window").Set("n_rounds", rounds).Set("max_context", most)
}

// newMemory declares a memory without a policy.
func (p *project) newMemory(name string) *document.Block {
	id := p.ids.New(name, "memory")
	p.memories[name] = id
	p.order = append(p.order, id)
	b := new(document.Block).Set("id", id)
	if name != "" && id != name {
		b.Note("Original name: %s.", document.OneLine(name))
	}
	p.app.Memories = append(p.app.Memories, b)
	return b
}
