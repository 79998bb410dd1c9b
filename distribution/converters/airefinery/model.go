package airefinery

import (
	"fmt"

	"github.com/qtype-dev/qtype/internal/convert/document"
	"github.com/qtype-dev/qtype/internal/convert/input"
)

// params copies the numeric parameters of a model.
func (p *project) params(llm *input.Node, to *document.Block) {
	for _, pair := range llm.Entries() {
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
	for _, n := range []*input.Node{config, agent, p.root.Get("base_config")} {
		if n == nil || n.Kind != input.Map || name != "" {
			continue
		}
		if llm := p.Map(n, "llm_config"); llm != nil {
			name = p.Text(llm, "model")
			p.params(llm, params)
		}
	}
	if name == "" {
		name = document.SuggestedModel("openai")
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
