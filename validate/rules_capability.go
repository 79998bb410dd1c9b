package validate

import (
	"fmt"
	"maps"
	"slices"

	"github.com/qtype-dev/qtype/internal/catalogue"
	"github.com/qtype-dev/qtype/internal/modelparams"
	"github.com/qtype-dev/qtype/spec"
)

// reportParams reports what is doubtful about inference_params.
func (p *ruleContext) reportParams(m *spec.Model, problems []modelparams.Problem) {
	for _, problem := range problems {
		at, ok := paramAt(m, problem.Path)
		if !ok {
			continue
		}
		d := p.reportAt(at.Span(), "model %q: %s", m.ID, problem.Text)
		if problem.Limit > 0 {
			d = d.WithNumber(problem.Number, problem.Limit)
		}
		p.list.Add(d)
	}
}

func unlistedValue() rule {
	return rule{code: "QT606", warning: true, title: "value that the model does not take",
		doc:    "The catalogue lists the efforts, levels and types of thinking of the model, and the limits of its budget. The key `thinking` of a model takes the same words for all models; a word that the model does not have is sent as the next higher one that it has, which is reported.",
		sample: sample{text: "\nid: example\nmodels:\n  - {type: Model, id: writer, provider: openai, model_id: gpt-6-luna, inference_params: {reasoning_effort: ⟦highest│high⟧}}\n"},
		check: on(func(p *ruleContext, m *spec.Model) {
			if knownModel(m) != nil && m.Position().Complete("inference_params") {
				p.reportParams(m, modelparams.Unlisted(m))
			}
			if word := modelparams.SentAs(m); word != "" && isNamed(m) && isDecided(string(m.Thinking)) {
				p.report(fieldKey(m, "thinking"), "thinking: %s is sent as %s: the model %s has no %s", m.Thinking, word, m.ModelID, m.Thinking)
			}
		})}
}

func twoFormsOfSetting() rule {
	return rule{code: "QT607", warning: true, title: "two forms of one setting",
		doc:    "Some parameters set the same: max_tokens, max_completion_tokens and max_output_tokens; reasoning_effort and the effort of reasoning; thinkingLevel and thinkingBudget; a parameter beside generationConfig and inside it. Providers refuse both, or use one of them.",
		sample: sample{text: "\nid: example\nmodels:\n  - {type: Model, id: writer, provider: openai, model_id: gpt-6-luna, inference_params: {max_tokens: 500⟦, max_completion_tokens: 800│⟧}}\n"},
		check: on(func(p *ruleContext, m *spec.Model) {
			if !m.IsMock() && m.Position().Complete("inference_params") {
				p.reportParams(m, modelparams.TwoForms(m))
			}
		})}
}

func tooManyTokens() rule {
	return rule{code: "QT608", warning: true, title: "limit of an answer above that of the model",
		doc:    "A model writes a limited number of tokens in one call, its reasoning included. Providers refuse a higher limit, or one that is not above the tokens for thinking.",
		sample: sample{text: "\nid: example\nmodels:\n  - {type: Model, id: writer, provider: anthropic, model_id: claude-haiku-4-5, inference_params: {max_tokens: ⟦100000│64000⟧}}\n"},
		check: on(func(p *ruleContext, m *spec.Model) {
			if knownModel(m) != nil && m.Position().Complete("inference_params") && isDecided(string(m.Thinking)) {
				p.reportParams(m, modelparams.OverLimit(m))
			}
		})}
}

func modelWithoutTools() rule {
	return rule{code: "QT609", warning: true, title: "agent with a model that cannot call tools",
		doc: "By the catalogue the model does not call functions: the provider refuses requests with tools, or the model never calls one.",
		sample: sample{head: "models:\n  - {type: Model, id: writer, provider: mistral, model_id: ⟦open-mistral-nemo│mistral-large-4⟧}\n" + sampleTool, in: "question: text", out: "answer: text",
			steps: "- {type: Agent, id: reply, model: writer, tools: [weather], inputs: [question], outputs: [answer]}"},
		check: on(func(p *ruleContext, s *spec.Agent) {
			if s.Model.To == nil || len(s.Tools)+len(s.Handoffs) == 0 {
				return
			}
			if row := knownModel(s.Model.To.Base()); row != nil && row.Kind == catalogue.Chat && row.Tools.FunctionCalling == catalogue.No {
				p.report(s.Model.Span, "the agent %q has tools, but %s of %s does not call functions", s.ID, row.ID, row.Provider)
			}
		})}
}

func modelWithoutMedia() rule {
	return rule{code: "QT610", warning: true, title: "media for a model that does not read them",
		doc: "By the catalogue the model, or one of its fallbacks, does not read images, audio, video or documents: the provider refuses the request, or the model gets the text only. The media are inputs of the step, parts of a ChatMessage that a step of the document makes of them, or in the memory of the step because another step with this memory has read them. Messages that callers pass may have any media.",
		sample: sample{head: "models:\n  - {type: Model, id: writer, provider: mistral, model_id: ⟦codestral-latest│mistral-large-4⟧}", in: "photo: image", out: "answer: text",
			steps: "- {type: LLMInference, id: reply, model: writer, inputs: [photo], outputs: [answer]}"},
		check: on(func(p *ruleContext, s spec.Prompted) {
			if step, ok := s.(spec.Step); ok {
				p.checkMedia(step)
			}
		})}
}

// checkMedia reports media that the models of a step get and do not read.
func (p *ruleContext) checkMedia(s spec.Step) {
	plan, reach := p.stepPlan(s), p.mediaReach()
	if plan.Model() == nil {
		return
	}
	models := modelAndFallbacks(plan.Model().Base())
	reported := map[string]bool{} // by the kind of media
	inputs := s.Common().Inputs
	for i := range inputs {
		v := inputs[i].To
		if v == nil {
			continue
		}
		for _, kind := range slices.Sorted(maps.Keys(reach[v])) {
			row := blindTo(models, kind)
			if row == nil {
				continue
			}
			has := fmt.Sprintf("has the type %s", v.Type)
			if from := reach[v][kind]; from != v {
				has = fmt.Sprintf("has those of the variable %q", from.ID)
			}
			reported[kind] = true
			p.report(inputs[i].Span, "%s of %s does not read %s: the input %q of step %q %s", row.ID, row.Provider, mediaName(kind), v.ID, s.EntityID(), has)
		}
	}
	memory := plan.Conversation()
	if memory == nil {
		return
	}
	for _, kind := range slices.Sorted(maps.Keys(reach[memory])) {
		if row := blindTo(models, kind); row != nil && !reported[kind] {
			p.report(placeOf(s, "memory", "id"), "%s of %s does not read %s: the memory %q of step %q has those of the variable %q", row.ID, row.Provider, mediaName(kind), memory.ID, s.EntityID(), reach[memory][kind].ID)
		}
	}
}

// modelAndFallbacks returns a model and its fallbacks.
func modelAndFallbacks(m *spec.Model) []*spec.Model {
	models := []*spec.Model{m}
	for _, ref := range m.Fallbacks {
		if ref.To != nil {
			models = append(models, ref.To.Base())
		}
	}
	return models
}

// blindTo returns what the catalogue has of the first of some models that does not read a kind of media, nil if
// all may.
func blindTo(models []*spec.Model, kind string) *catalogue.Model {
	for _, m := range models {
		row := knownModel(m)
		if row == nil || row.Kind != catalogue.Chat || len(row.Input) == 0 {
			continue
		}
		if !slices.ContainsFunc(row.Input, func(in string) bool { return slices.Contains(modalitiesOf(kind), in) }) {
			return row
		}
	}
	return nil
}

// modalitiesOf returns the modalities of the catalogue that a media type may be; nil for a type
// that is none, or that can be a text.
func modalitiesOf(name string) []string {
	switch name {
	case "image", "audio", "video":
		return []string{name}
	case "file":
		return []string{"pdf", "image", "audio", "video"}
	}
	return nil
}

// mediaName names the values of a media type.
func mediaName(name string) string {
	return map[string]string{"image": "images", "audio": "audio", "video": "videos", "file": "documents"}[name]
}

func modelWithoutSchema() rule {
	return rule{code: "QT611", warning: true, title: "JSON schema for a model that has no structured output",
		doc:    "By the catalogue the model takes no JSON schema. With structured_output: auto the request falls back to a JSON object, or to the schema in the system message.",
		sample: sample{text: "\nid: example\nmodels:\n  - {type: Model, id: writer, provider: openai, model_id: ⟦gpt-5.5-pro│gpt-6-luna⟧, structured_output: schema}\n"},
		check: on(func(p *ruleContext, m *spec.Model) {
			row := knownModel(m)
			if row == nil || m.StructuredOutput != "schema" || !m.Position().Complete("structured_output") {
				return
			}
			if s := row.Structured; s.JSONSchema == catalogue.No && s.ForcedTool != catalogue.Yes && s.By == "" {
				p.list.Add(p.reportAt(placeOf(m, "structured_output", "id"), "%s of %s takes no JSON schema", row.ID, row.Provider).WithHint("write structured_output: auto"))
			}
		})}
}

func modelWithoutStream() rule {
	return rule{code: "QT612", warning: true, title: "streamed flow with a model that does not stream",
		doc: "The answer of a flow with an interface is streamed. By the catalogue the model, or one of its fallbacks, answers in one piece: the user sees nothing until the answer is complete, which may take minutes.",
		sample: sample{head: "models:\n  - {type: Model, id: writer, provider: azure-openai, model_id: ⟦gpt-5-pro│gpt-6-luna⟧, base_url: \"https://shop.openai.azure.com\"}", in: "question: text", out: "answer: text", flow: "interface: {type: Complete}",
			steps: `- {type: LLMInference, id: reply, model: writer, inputs: [question], outputs: [answer]}`},
		check: on(func(p *ruleContext, f *spec.Flow) {
			if f.Interface == nil || len(f.Steps) == 0 || !f.Position().Complete("steps") || f.Steps[len(f.Steps)-1] == nil {
				return
			}
			last := f.Steps[len(f.Steps)-1].Step
			if last == nil || !spec.Streams(last) || p.stepPlan(last).Model() == nil {
				return
			}
			for _, m := range modelAndFallbacks(p.stepPlan(last).Model().Base()) {
				if row := knownModel(m); row != nil && row.Streaming == catalogue.StreamsNever {
					p.report(placeOf(last, "model", "id"), "the answer of the flow %q is streamed, but %s of %s answers in one piece", f.ID, row.ID, row.Provider)
				}
			}
		})}
}

func citationRules() []rule { return []rule{sourcesType(), indexToolInputs(), indexToolMode()} }

func sourcesType() rule {
	return rule{code: "QT546", title: "sources that are not search results",
		doc: "The key sources of a step names a variable of type list[RAGSearchResult] or list[SearchResult], such as the output of a search or of a Reranker. A list of chunks (list[RAGChunk]) fits, too.",
		sample: sample{head: sampleModel, in: "question: text, found: ⟦text│list[RAGSearchResult]⟧", out: "answer: text",
			steps: "- {type: LLMInference, id: reply, model: writer, inputs: [question], sources: found, outputs: [answer]}"},
		check: on(func(p *ruleContext, s spec.Step) {
			for _, u := range spec.UsesOf(s) {
				ref, ok := u.Ref.(*spec.Ref[*spec.Variable])
				if !ok || u.Key != "sources" {
					continue
				}
				t, known := p.typed(ref)
				if known && !t.IsListOf("RAGSearchResult") && !t.IsListOf("SearchResult") && !t.IsListOf("RAGChunk") {
					p.report(ref.Span, "sources of step %q must be list[RAGSearchResult] or list[SearchResult]; %q is %s", s.EntityID(), ref.ID, t)
				}
			}
		})}
}

func indexToolInputs() rule {
	return rule{code: "QT547", title: "inputs of an IndexTool that it cannot use",
		doc: "The inputs of an IndexTool are query, a text, and optionally top_k, an int, and metadata fields that the model may filter by: text, int, float or boolean. Without inputs, a call has the query only.",
		sample: sample{text: `
id: example
models: [{type: EmbeddingModel, id: vectors, provider: mock, dimensions: 8}]
indexes: [{type: VectorIndex, id: shop, name: shop, module: embedded, embedding_model: vectors}]
tools:
  - {type: IndexTool, id: find, name: find, description: Finds products, index: shop, inputs: [⟦{id: question, type: text}│{id: query, type: text}⟧, {id: color, type: "text?"}]}
`},
		check: on(func(p *ruleContext, t *spec.IndexTool) {
			if len(t.Inputs) == 0 {
				return
			}
			query := spec.VariableByID(t.Inputs, spec.IndexToolQuery)
			if query == nil {
				p.list.Add(p.reportAt(placeOf(t, "inputs", "id"), "the tool %q has no input %q", t.ID, spec.IndexToolQuery).
					WithHint("add {id: query, type: text}, or remove inputs"))
			} else if !query.Type.Is("text") {
				p.report(typePlace(query.Position().Field("type")), "the input %q of tool %q must be text, is %s", query.ID, t.ID, query.Type)
			}
			if v := spec.VariableByID(t.Inputs, spec.IndexToolTopK); v != nil && !v.Type.Is("int") {
				p.report(typePlace(v.Position().Field("type")), "the input %q of tool %q must be int, is %s", v.ID, t.ID, v.Type)
			}
			for _, v := range t.FilterInputs() {
				if !v.Type.Is("text") && !v.Type.Is("int") && !v.Type.Is("float") && !v.Type.Is("boolean") {
					p.report(typePlace(v.Position().Field("type")), "the input %q of tool %q filters by metadata; it must be text, int, float or boolean, is %s", v.ID, t.ID, v.Type)
				}
			}
		})}
}

func indexToolMode() rule {
	return rule{code: "QT548", title: "IndexTool that compares vectors in an index without vectors",
		doc: "A DocumentIndex compares words: it has no other mode than text.",
		sample: sample{text: `
id: example
indexes: [{type: DocumentIndex, id: shop, name: shop, endpoint: embedded}]
tools:
  - {type: IndexTool, id: find, name: find, description: Finds products, index: shop, mode: ⟦hybrid│text⟧}
`},
		check: on(func(p *ruleContext, t *spec.IndexTool) {
			field, given := t.Position().Lookup("mode")
			if _, words := t.Index.To.(*spec.DocumentIndex); words && given && t.Mode != "text" {
				p.report(field.Span(), "the tool %q searches the DocumentIndex %q, which has no mode %s", t.ID, t.Index.ID, t.Mode)
			}
		})}
}
