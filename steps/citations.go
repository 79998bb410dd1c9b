package steps

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/qtype-dev/qtype/internal/citation"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
	"github.com/qtype-dev/qtype/spec/value"
)

// passages are what the answer of a step on a row may cite.
type passages struct {
	set    citation.Set
	prompt string            // is sent with the request; empty for nothing
	given  []citation.Source // the passages of prompt
}

// passagesKey is the key of the passages of a step's answer.
type passagesKey struct{}

// noPassages is sent in place of passages if a search found none.
const noPassages = "No passages were found for this question. Answer that the documents do not contain the answer."

// sourcesSlot finds the variable that the key sources names; nil for none.
func (e *Env) sourcesSlot(ref *spec.Ref[*spec.Variable]) (*slot, error) {
	if ref.To == nil {
		return nil, nil
	}
	s, err := e.slot(ref.To)
	return &s, err
}

// citing returns a context for the calls of a step on a row, with the Set of the passages
// that its answer may cite.
func (s *llmStep) citing(ctx context.Context, row *Row) (context.Context, *citation.Set, error) {
	p := &passages{} // hides those of an outer step, which calls this one's flow as a tool
	set := &p.set
	ctx = context.WithValue(ctx, passagesKey{}, p)
	if s.sources == nil {
		return ctx, set, nil
	}
	v, err := s.sources.read(row)
	if err != nil {
		return ctx, nil, err
	}
	results, ok := v.([]any)
	if !ok && v != nil {
		return ctx, nil, fmt.Errorf("sources: %s is not a list of search results", s.sources.of.ID)
	}
	for i, item := range results {
		r, ok := item.(*value.Record)
		if !ok {
			return ctx, nil, fmt.Errorf("sources: item %d of %s is not a search result", i+1, s.sources.of.ID)
		}
		set.Add(citation.FromResult(r))
	}
	p.given = set.All()
	if p.prompt = set.Prompt(); p.prompt == "" {
		p.prompt = noPassages
	}
	return ctx, set, nil
}

// citedIn returns the Set of the step of a context, a new one for none.
func citedIn(ctx context.Context) *citation.Set {
	if p, _ := ctx.Value(passagesKey{}).(*passages); p != nil {
		return &p.set
	}
	return new(citation.Set)
}

// passagesIn returns the text with the passages for the step of a context, empty for none.
func passagesIn(ctx context.Context) string {
	if p, _ := ctx.Value(passagesKey{}).(*passages); p != nil {
		return p.prompt
	}
	return ""
}

// requestPassages returns the passages of a request whose window is given; nil for none.
func requestPassages(ctx context.Context, window []chat.Message) *model.Passages {
	p, _ := ctx.Value(passagesKey{}).(*passages)
	if p == nil || len(p.given) == 0 {
		return nil
	}
	for i := range slices.Backward(window) {
		if window[i].Role == chat.User {
			return &model.Passages{Text: p.prompt, Question: window[i].ID, Sources: p.given}
		}
	}
	return nil
}

// cite adds to an answer the passages that its text cites by their numbers. Those that the provider
// has found cited get the numbers of the set.
func (s *llmStep) cite(set *citation.Set, answer chat.Message) chat.Message {
	if s.schema != nil { // the brackets of JSON are not citations
		return answer
	}
	if set.Len() == 0 && !slices.ContainsFunc(answer.Blocks, chat.Block.IsCitation) {
		return answer
	}
	var blocks, sources []chat.Block
	cited := set.Cited(answer.Text())
	for _, b := range answer.Blocks {
		if !b.IsCitation() {
			blocks = append(blocks, b)
			continue
		}
		if own, ok := set.Lookup(sourceOfBlock(b).ID); ok {
			cited = slices.DeleteFunc(cited, func(s citation.Source) bool { return s.Number == own.Number })
			item := b.Item
			b = own.Excerpt().Block()
			b.Item = item
		}
		sources = append(sources, b)
	}
	for _, source := range cited {
		sources = append(sources, source.Block())
	}
	answer.Blocks = slices.Concat(blocks, sources)
	return answer
}

// reportSources reports the passages that an answer cites, as events.
func (s *llmStep) reportSources(ctx context.Context, row *Row, answer chat.Message) {
	for _, b := range answer.Blocks {
		if !b.IsCitation() {
			continue
		}
		if source := sourceOfBlock(b); source != (citation.Source{}) {
			Report(ctx, s.event(row, Event{Kind: EventSource, Source: &source}))
		}
	}
}

// sourceOfBlock returns the source in a citation, the zero value for one of another form.
func sourceOfBlock(b chat.Block) citation.Source {
	var source citation.Source
	if json.Unmarshal([]byte(b.Text), &source) != nil {
		return citation.Source{}
	}
	return source
}

// forModel returns a window as it is sent: the caller's instructions and the passages of
// the answer follow the system message, and earlier answers have no citations, which are
// for people.
func (s *llmStep) forModel(ctx context.Context, window []chat.Message) []chat.Message {
	window = withInstructions(ctx, s.id, withoutCitations(window))
	return withSystem(window, passagesIn(ctx))
}

// withoutCitations returns messages without citations, except messages with nothing else.
func withoutCitations(window []chat.Message) []chat.Message {
	var changed []chat.Message
	for i := range window {
		blocks := window[i].Blocks
		if !slices.ContainsFunc(blocks, chat.Block.IsCitation) {
			continue
		}
		kept := slices.DeleteFunc(slices.Clone(blocks), chat.Block.IsCitation)
		if len(kept) == 0 {
			continue
		}
		if changed == nil {
			changed = slices.Clone(window)
		}
		changed[i].Blocks = kept
	}
	if changed != nil {
		return changed
	}
	return window
}
