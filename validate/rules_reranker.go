package validate

import (
	"fmt"

	"github.com/qtype-dev/qtype/spec"
)

func rerankerRules() []rule { return []rule{rerankerInputs(), rerankerModel()} }

func rerankerInputs() rule {
	return rule{code: "QT544", check: on(func(p *ruleContext, s *spec.Reranker) {
		row, known := spec.LookupRankMethod(s.Method)
		texts, lists, ok := p.rerankerInputs(s)
		if !known || !ok {
			return
		}
		wanted, reason := 1, fmt.Sprintf("the method %s compares results with a question", row.Name)
		switch {
		case row.NeedsQuery == spec.QueryForbidden:
			wanted, reason = 0, fmt.Sprintf("the method %s reads no question", row.Name)
		case row.NeedsQuery == spec.QueryWithModel && spec.IsEmpty(&s.EmbeddingModel):
			wanted, reason = 0, fmt.Sprintf("the method %s reads no question without an embedding_model", row.Name)
		}
		if texts != wanted {
			p.list.Add(p.reportAt(placeOf(s, "inputs", "id"), "the step %q reads %s: %s", s.ID, counted(texts, "text"), reason).
				WithHint("make %s of the inputs", counted(wanted, "text")))
		}
		if lists < row.Lists {
			p.report(placeOf(s, "inputs", "id"), "the step %q reads %s of search results; the method %s needs at least %d", s.ID, counted(lists, "list"), row.Name, row.Lists)
		}
		p.checkWeights(s, lists)
	})}
}

// counted returns a number with a noun.
func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// rerankerInputs counts the texts and lists that a step reads; ok is false if their types
// are not known or not allowed, which other rules report.
func (p *ruleContext) rerankerInputs(s *spec.Reranker) (texts, lists int, ok bool) {
	for _, in := range s.AllInputs() {
		t, known := p.typed(in)
		switch {
		case !known:
			return 0, 0, false
		case t.Is("text"):
			texts++
		case t.IsListOf("SearchResult"), t.IsListOf("RAGSearchResult"):
			lists++
		default:
			return 0, 0, false
		}
	}
	return texts, lists, texts+lists > 0
}

// checkWeights reports weights that are not one for each list.
func (p *ruleContext) checkWeights(s *spec.Reranker, lists int) {
	weights, ok := s.Args["weights"].([]any)
	if !ok || len(weights) == 0 || len(weights) == lists {
		return
	}
	if field, found := s.Position().Field("args").Lookup("weights"); found {
		p.report(field.Span(), "there are %s for %s", counted(len(weights), "weight"), counted(lists, "list"))
	}
}

func rerankerModel() rule {
	return rule{code: "QT545", check: on(func(p *ruleContext, s *spec.Reranker) {
		row, known := spec.LookupRankMethod(s.Method)
		if !known {
			return
		}
		given := map[string]bool{"model": !spec.IsEmpty(&s.Model), "embedding_model": !spec.IsEmpty(&s.EmbeddingModel)}
		for _, key := range []string{"model", "embedding_model"} {
			switch {
			case given[key] && row.Model != key:
				p.report(fieldKey(s, key), "the method %s of step %q does not use %s", row.Name, s.ID, key)
			case !given[key] && row.Model == key && row.NeedsModel && s.Position().Complete(key):
				p.list.Add(p.reportAt(placeOf(s, "method", "id"), "the method %s of step %q needs %s", row.Name, s.ID, key).
					WithHint("add %s: with the id of a model", key))
			}
		}
	})}
}
