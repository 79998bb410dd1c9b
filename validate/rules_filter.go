package validate

import (
	"errors"

	"github.com/qtype-dev/qtype/internal/filter"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/source"
)

// filterRules returns the rules of filters.
func filterRules() []rule { return []rule{invalidFilter()} }

func invalidFilter() rule {
	return rule{code: "QT520", title: "invalid filter",
		doc: "`filters` maps fields of the metadata to a value, to a list of values, or to operators: eq, ne, gt, gte, lt, lte, in, not_in and exists. The keys `and` and `or` have lists of such mappings, `not` has one mapping. A key of a nested mapping is written with a dot: author.name.",
		sample: sample{
			head: "models: [{type: EmbeddingModel, id: embedder, provider: mock, dimensions: 8}]\nindexes: [{type: VectorIndex, id: notes, name: notes, module: embedded, embedding_model: embedder}]",
			in:   "question: text", out: "found: list[RAGSearchResult]",
			steps: "- {type: VectorSearch, id: find, index: notes, filters: {year: {⟦gted│gte⟧: 2020}}, inputs: [question], outputs: [found]}"},
		check: on(func(p *ruleContext, s spec.Filtering) {
			key, filters := s.MetadataFilters()
			_, err := filter.Parse(filters)
			var invalid *filter.Error
			if !errors.As(err, &invalid) {
				return
			}
			d := p.reportAt(filterPlace(s, key, invalid), "the filters of %q are invalid: %s", s.EntityID(), invalid.Message)
			if invalid.Hint != "" {
				d = d.WithHint("%s", invalid.Hint)
			}
			p.list.Add(d)
		})}
}

// filterPlace returns the position of an error in the filters of a step.
func filterPlace(s spec.Filtering, key string, invalid *filter.Error) source.Span {
	at, ok := s.Position().Lookup(key)
	if !ok {
		return s.Position().Span()
	}
	for _, part := range invalid.Path {
		switch part := part.(type) {
		case string:
			at = at.Field(part)
		case int:
			at = at.Index(part)
		}
	}
	if invalid.OfKey {
		return at.Key
	}
	return at.Span()
}
