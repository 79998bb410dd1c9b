package validate

import (
	"github.com/qtype-dev/qtype/spec"
)

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
