package validate

import "github.com/qtype-dev/qtype/spec"

// indexRules returns the rules of searches.
func indexRules() []rule { return []rule{modeWithoutText()} }

func modeWithoutText() rule {
	return rule{code: "QT523", title: "search for words in a store that has only vectors",
		doc: "The modes text and hybrid of VectorSearch need a store with full-text search: embedded, pgvector, opensearch or elasticsearch.",
		sample: sample{head: sampleVectors + "\nindexes:\n  - {type: VectorIndex, id: shop, name: shop, module: ⟦qdrant│embedded⟧, embedding_model: vectors}",
			in: "question: text", out: "found: list[RAGSearchResult]",
			steps: "- {type: VectorSearch, id: find, index: shop, mode: hybrid, inputs: [question], outputs: [found]}"},
		checksSides: true,
		check: on(func(p *ruleContext, s *spec.VectorSearch) {
			if s.Index.To == nil || s.Mode != "text" && s.Mode != "hybrid" {
				return
			}
			if row, err := spec.StoreOf(s.Index.To); err == nil && !row.Text {
				p.list.Add(p.reportAt(placeOf(s, "mode"), "the store %s of the index %q has no full-text search", row.Name, s.Index.ID).
					WithHint("use mode: vector, or another store").WithRelated(placeOf(s.Index.To, "module"), "its store"))
			}
		})}
}
