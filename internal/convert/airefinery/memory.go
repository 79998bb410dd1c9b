package airefinery

import (
	"cmp"
	"fmt"

	"github.com/qtype-dev/qtype/internal/convert/document"
	"github.com/qtype-dev/qtype/internal/convert/input"
)

// readMemories reads the memory modules of the project, the orchestrator and the
// agents.
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

func (p *project) readModules(config *input.Node) {
	p.CheckKeys(config, "memory_config", "memory_modules", "embedding_config")
	if config.Get("embedding_config") != nil {
		p.Ignored(config.KeySpan("embedding_config"), "embedding_config is ignored: no converted memory uses embeddings")
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
			return // two agents declare the same memory
		}
		p.Malformed(n.Get("memory_name"), "duplicate memory module %s ignored", name)
		return
	}
	classes := []string{"ChatMemoryModule", "VariableMemoryModule", "MemTreeModule"}
	for _, known := range classes {
		if class != known && input.NormalizeName(class) == input.NormalizeName(known) {
			p.Assumed(n.Get("memory_class"), "class %q read as %s", class, known)
			class = known
		}
	}
	switch class {
	case "ChatMemoryModule":
	case "":
		return
	case "VariableMemoryModule":
		p.Unsupported(n.Get("memory_class"), "%s stores named values: use a memory with context: [{type: variables}] and steps that set them", owner)
		return
	case "MemTreeModule":
		p.Unsupported(n.Get("memory_class"), "%s retrieves old messages by similarity: use a memory with context: [{type: retrieval}] and an embedding model", owner)
		return
	default:
		p.Add(input.Unsupported.At(n.Get("memory_class").Mark(), "%s: unknown class %s ignored", owner, class).WithNearest(class, classes))
		return
	}
	rounds, most := defaultRounds, defaultContext
	for _, key := range []string{"kwargs", "config"} { // kwargs is the key of older versions
		if config := p.Map(n, key); config != nil {
			p.CheckKeys(config, "the "+key+" of "+owner, "n_rounds", "max_context")
			rounds = cmp.Or(p.PositiveInt(config, "n_rounds"), rounds)
			most = cmp.Or(p.PositiveInt(config, "max_context"), most)
		}
	}
	p.sources[name] = n.Fingerprint()
	p.declareMemory(name, rounds, most)
}

// AI Refinery's defaults of a memory module.
const (
	defaultRounds  = 3
	defaultContext = 10000
)

// declareMemory declares a memory.
func (p *project) declareMemory(name string, rounds, most int) *document.Block {
	id := p.ids.New(name, "memory")
	p.memories[name] = id
	p.order = append(p.order, id)
	b := new(document.Block).Set("id", id)
	if name != "" && id != name {
		b.Note("Original name: %s.", document.OneLine(name))
	}
	b.Set("policy", "round_window").Set("n_rounds", rounds).Set("max_context", most)
	p.app.Memories = append(p.app.Memories, b)
	return b
}
