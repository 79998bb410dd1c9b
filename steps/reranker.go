package steps

import (
	"context"
	"errors"
	"fmt"

	"github.com/qtype-dev/qtype/internal/rerank"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
)

// reranker sorts the search results of a row.
type reranker struct {
	id     string
	ranker rerank.Ranker
	query  *slot  // the question; nil for none
	lists  []slot // the results
	out    slot
	limit  int // maximum number of results; 0 for all
}

func buildReranker(s *spec.Reranker, env *Env) (Runner, error) {
	return env.newReranker(s, s.NumResults, func(opts rerank.Options) (rerank.Ranker, error) { return rerank.New(s, opts) })
}

func buildBedrockReranker(s *spec.BedrockReranker, env *Env) (Runner, error) {
	return env.newReranker(s, s.NumResults, func(opts rerank.Options) (rerank.Ranker, error) { return rerank.NewBedrock(s, opts) })
}

// newReranker makes the runner of both types of steps.
func (e *Env) newReranker(declared spec.Step, limit *int, build func(rerank.Options) (rerank.Ranker, error)) (Runner, error) {
	base := declared.Common()
	if e.Ranker == nil {
		return nil, errors.New("the application has no rerankers")
	}
	s := &reranker{id: base.ID}
	if limit != nil {
		s.limit = *limit
	}
	inputs, err := e.slots(base.Inputs)
	if err != nil {
		return nil, err
	}
	for _, in := range inputs {
		switch {
		case in.of.Type.IsList():
			s.lists = append(s.lists, in)
		case s.query == nil:
			s.query = &in
		}
	}
	if len(s.lists) == 0 {
		return nil, errors.New("none of the inputs is a list of search results")
	}
	if s.out, err = e.single("output", base.Outputs); err != nil {
		return nil, err
	}
	s.ranker, err = e.Ranker(declared, build)
	return s, err
}

// Process sorts the results. An empty list is the result of empty lists, without a call.
func (s *reranker) Process(ctx context.Context, row *Row, emit Emit) error {
	req := rerank.Request{Limit: s.limit}
	if s.query != nil {
		v, err := s.query.read(row)
		if err != nil {
			return err
		}
		req.Query = value.Text(v)
	}
	results, err := s.collect(row, &req)
	if err != nil {
		return err
	}
	choices, usage, err := rerank.Rank(ctx, s.ranker, req)
	if usage != (rerank.Usage{}) {
		Report(ctx, Event{Kind: EventUsage, Step: s.id, Session: row.Session, Row: row.Number, Input: usage.Input, Output: usage.Output, Cost: usage.Cost, Model: usage.Model})
	}
	if err != nil {
		return err
	}
	sorted := make([]any, len(choices))
	for i, c := range choices {
		sorted[i] = s.convert(results[c.Index].With("score", c.Score))
	}
	s.out.write(row, sorted)
	return emit(row)
}

// collect returns the results of all lists, each once, and adds them to the request.
func (s *reranker) collect(row *Row, req *rerank.Request) ([]*value.Record, error) {
	var results []*value.Record
	seen := map[string]int{}
	for n, list := range s.lists {
		v, err := list.read(row)
		if err != nil {
			return nil, err
		}
		items, ok := v.([]any)
		if !ok && v != nil {
			return nil, fmt.Errorf("%s is not a list of search results", list.of.ID)
		}
		for place, item := range items {
			r, ok := item.(*value.Record)
			if !ok {
				return nil, fmt.Errorf("item %d of %s is not a search result", place+1, list.of.ID)
			}
			id, made := resultItem(r)
			if made.Text == "" {
				return nil, fmt.Errorf("result %d of %s has no content to compare", place+1, list.of.ID)
			}
			at, known := seen[id]
			if !known {
				at = len(results)
				made.Ranks = make([]int, len(s.lists))
				results, req.Items = append(results, r), append(req.Items, made)
				if id != "" {
					seen[id] = at
				}
			}
			if ranks := req.Items[at].Ranks; ranks[n] == 0 {
				ranks[n] = place + 1
			}
		}
	}
	return results, nil
}

// resultItem returns the id of a search result and what is compared: the text of a chunk,
// the JSON of other objects.
func resultItem(r *value.Record) (id string, item rerank.Item) {
	score, _ := r.Get("score")
	item.Score, _ = score.(float64)
	if n, ok := score.(int64); ok {
		item.Score = float64(n)
	}
	v, _ := r.Get("doc_id")
	id = value.Text(v)
	content, _ := r.Get("content")
	object, ok := content.(*value.Record)
	switch {
	case ok && object.Type() == chunkType:
		v, _ := object.Get("chunk_id")
		id = value.Text(v)
		text, _ := object.Get("content")
		item.Text = value.Text(text)
		vector, _ := object.Get("vector")
		item.Vector = vectorNumbers(vector)
	case ok:
		item.JSON = value.JSON(object)
		item.Text = string(item.JSON)
	default:
		item.Text = value.Text(content)
	}
	return id, item
}

// The types of search results, and of the content of those of vector indexes.
const (
	resultType      = "SearchResult"
	chunkResultType = "RAGSearchResult"
	chunkType       = "RAGChunk"
)

// vectorNumbers returns the numbers of a vector, nil if it is none.
func vectorNumbers(v any) []float32 {
	items, _ := v.([]any)
	var vector []float32
	for _, item := range items {
		switch x := item.(type) {
		case float64:
			vector = append(vector, float32(x))
		case int64:
			vector = append(vector, float32(x))
		}
	}
	return vector
}

// convert returns a result as a record of the type of the output: what a full-text index
// has found is a chunk for an output of chunks.
func (s *reranker) convert(r *value.Record) *value.Record {
	elem := s.out.of.Type.Elem
	if elem == nil || r.Type() == elem.Name {
		return r
	}
	content, _ := r.Get("content")
	id, _ := r.Get("doc_id")
	score, _ := r.Get("score")
	if elem.Name == chunkResultType {
		content = chunkOf(content, id)
	}
	return value.NewRecord(elem.Name, value.Field{Name: "content", Value: content}, value.Field{Name: "doc_id", Value: id}, value.Field{Name: "score", Value: score})
}

// chunkOf returns the content of a SearchResult as a chunk. A chunk from a full-text index
// has its own fields; other fields are metadata.
func chunkOf(content, id any) *value.Record {
	object, ok := content.(*value.Record)
	if ok && object.Type() == chunkType {
		return object
	}
	chunk := map[string]any{"content": content, "metadata": value.NewRecord(""), "chunk_id": id, "document_id": id}
	if ok {
		var rest []value.Field
		text := false
		for name, v := range object.All() {
			switch name {
			case "chunk_id", "document_id":
				chunk[name] = v
			case "metadata":
				if m, isRecord := v.(*value.Record); isRecord {
					for name, v := range m.All() {
						rest = append(rest, value.Field{Name: name, Value: v})
					}
				}
			case "content":
				chunk[name], text = v, true
			default:
				rest = append(rest, value.Field{Name: name, Value: v})
			}
		}
		if !text {
			chunk["content"], rest = string(value.JSON(object)), nil
		}
		chunk["metadata"] = value.NewRecord("", uniqueFields(rest)...)
	}
	return value.NewRecord(chunkType, value.Field{Name: "vector"}, value.Field{Name: "content", Value: chunk["content"]}, value.Field{Name: "metadata", Value: chunk["metadata"]},
		value.Field{Name: "chunk_id", Value: chunk["chunk_id"]}, value.Field{Name: "document_id", Value: chunk["document_id"]})
}

// uniqueFields returns the first field of each name.
func uniqueFields(fields []value.Field) []value.Field {
	seen := map[string]bool{}
	var unique []value.Field
	for _, f := range fields {
		if !seen[f.Name] {
			seen[f.Name] = true
			unique = append(unique, f)
		}
	}
	return unique
}
