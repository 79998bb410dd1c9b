// Package airefinery converts project files of AI Refinery.
package airefinery

import (
	"cmp"

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
	values   map[string]*store // named values by the id of their memory
	models   map[string]string // ids by model name and parameters

	agents       []*agent     // all agents in order
	routed       []*agent     // the agents of the orchestrator
	placeholders document.Set // variables of prompts
}

// Convert converts a project file, its memory_config, or only the memory modules.
// It returns nil if nothing can be converted.
func Convert(r *input.Report, root *input.Node) *document.App { //nolint:cyclop // one case for each part of a file
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
	case root.Get("memory_config") == nil && root.Get("utility_agents") == nil && root.Get("super_agents") == nil && root.Get("orchestrator").Get("memory_config") == nil && root.Get("base_config").Get("memory_config") == nil:
		r.Malformed(root, `not an AI Refinery file: it has neither "memory_config" nor "utility_agents"`)
		return nil
	}
	p := &project{Report: r, root: root, app: &document.App{ID: "airefinery_app"}, ids: document.NewIDs("airefinery_app"),
		placeholders: document.Set{}, memories: map[string]string{}, sources: map[string]string{}, used: map[string]bool{}, models: map[string]string{},
		values: map[string]*store{}}
	p.CheckKeys(root, "the file", "memory_config", "orchestrator", "utility_agents", "super_agents", "trust_agents", "base_config", "embedding_config", "project_name", "description")
	p.app.Description = p.Text(root, "description")
	if name := p.Text(root, "project_name"); name != "" {
		p.app.Comments = append(p.app.Comments, "Project name: "+name+".")
	}
	p.readMemories()
	p.readAgents()
	p.orchestrator()
	for _, a := range p.agents {
		p.build(a)
	}
	p.mainFirst()
	p.reportRest()
	var rest []string
	for _, id := range p.order {
		if !p.used[id] {
			if s := p.values[id]; s != nil && len(s.names) > 0 {
				p.Ignored(s.at, "the variables are ignored: no agent reads them")
			}
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
	for _, n := range p.List(p.root, "trust_agents") {
		p.Unsupported(n, "agent %s of trust_agents is not converted: it has no counterpart", cmp.Or(n.Get("agent_name").Scalar(), "without name"))
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
