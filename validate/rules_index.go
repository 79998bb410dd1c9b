package validate

import (
	"errors"

	"github.com/qtype-dev/qtype/spec"
)

// indexRules returns the rules of the stores of indexes.
func indexRules() []rule { return []rule{unknownStore(), unknownEndpoint()} }

func unknownStore() rule {
	return rule{code: "QT521", title: "unknown module of an index",
		doc: "module is the store of a vector index: one of the names in [the list of stores](indexes.md#servers), or the class of LlamaIndex for it.",
		sample: sample{text: `
id: example
models:
  - {type: EmbeddingModel, id: vectors, provider: openai, model_id: text-embedding-3-small, dimensions: 1536}
indexes:
  - {type: VectorIndex, id: shop, name: shop, module: ⟦qdrnt│qdrant⟧, embedding_model: vectors}
`},
		check: on(func(p *ruleContext, x *spec.VectorIndex) { p.checkStore(x, "module", x.Module) })}
}

func unknownEndpoint() rule {
	return rule{code: "QT522", title: "unknown endpoint of an index",
		doc: "endpoint is the URL of the server of a document index, or embedded for an index in a file, which needs no server.",
		sample: sample{text: `
id: example
indexes:
  - {type: DocumentIndex, id: books, name: books, endpoint: "⟦localhost:9200│http://localhost:9200⟧"}
`},
		check: on(func(p *ruleContext, x *spec.DocumentIndex) { p.checkStore(x, "endpoint", x.Endpoint) })}
}

// checkStore reports an index whose store is not known.
func (p *ruleContext) checkStore(x spec.Index, key, value string) {
	_, err := spec.StoreOf(x)
	unknown, ok := errors.AsType[*spec.StoreError](err)
	if !ok || value == "" || !isDecided(value) { // a missing key is reported by the loader
		return
	}
	p.list.Add(p.reportAt(placeOf(x, key), "unknown %s %q", key, unknown.Value).WithHint("%s", unknown.Hint()))
}
