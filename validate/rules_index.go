package validate

import (
	"errors"

	"github.com/qtype-dev/qtype/internal/filter"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/source"
)

// indexRules returns the rules of searches.
func indexRules() []rule { return []rule{modeWithoutText()} }

func modeWithoutText() rule {
	return rule{code: "QT523", checksSides: true,
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

// filterRules returns the rules of filters.
func filterRules() []rule { return []rule{invalidFilter()} }

func invalidFilter() rule {
	return rule{code: "QT520", check: on(func(p *ruleContext, s spec.Filtering) {
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

// splitterRules returns the rules of DocumentSplitter that do not apply to everything that
// has arguments.
func splitterRules() []rule { return []rule{chunkSize(), splitterModel(), unusedChunkSize()} }

func chunkSize() rule {
	return rule{code: "QT510", check: on(func(p *ruleContext, s *spec.DocumentSplitter) {
		selected, ok := selectionOf(s)
		args, problems := s.Arguments()
		sized, isSized := args.(spec.Sized)
		if !ok || !selected.Known || !isSized || len(problems) > 0 || isUndecided(s.Args) {
			return
		}
		if key, message := sized.Size().Check(); message != "" {
			at := placeOf(s, key, "splitter_name", "id")
			if field, ok := s.Position().Field("args").Lookup(key); ok {
				at = field.Span()
			}
			p.report(at, "%s", message)
		}
	})}
}

func splitterModel() rule {
	return rule{code: "QT511", check: on(func(p *ruleContext, s *spec.DocumentSplitter) {
		row, known := spec.LookupSplitter(s.SplitterName)
		switch {
		case !known || !s.Position().Complete("model"):
		case row.Semantic && spec.IsEmpty(&s.Model):
			p.list.Add(p.reportAt(placeOf(s, "splitter_name", "id"), "the splitter %q needs an embedding model", s.SplitterName).
				WithHint("add model: with the id of an embedding model"))
		case !row.Semantic && !spec.IsEmpty(&s.Model):
			p.list.Add(p.reportAt(fieldKey(s, "model"), "the splitter %q uses no model", s.SplitterName).
				WithHint("remove model, or set splitter_name: SemanticSplitterNodeParser"))
		}
	})}
}

func unusedChunkSize() rule {
	return rule{code: "QT512", warning: true, check: on(func(p *ruleContext, s *spec.DocumentSplitter) {
		row, known := spec.LookupSplitter(s.SplitterName)
		if !known || row.Sized {
			return
		}
		for _, key := range []string{"chunk_size", "chunk_overlap"} {
			if _, written := s.Position().Lookup(key); written {
				p.report(fieldKey(s, key), "%s has no effect: the splitter %q makes chunks of any size", key, s.SplitterName)
			}
		}
	})}
}
