package steps

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/qtype-dev/qtype/index"
	"github.com/qtype-dev/qtype/internal/citation"
	"github.com/qtype-dev/qtype/internal/filter"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
	"github.com/qtype-dev/qtype/tool"
)

// maxToolResults is the maximum number of passages that a model can request.
const maxToolResults = 50

// indexTool searches an index for a model.
type indexTool struct {
	info     tool.Info
	declared *spec.IndexTool
	index    index.Index
	model    model.Embedder // nil for a search by words only
	query    index.Query    // without text and vector
}

// NewIndexTool makes the tool that searches x. embedder is the embedding model of the
// index, nil where only words are compared.
func NewIndexTool(declared *spec.IndexTool, x index.Index, embedder model.Embedder) (tool.Tool, error) {
	t := &indexTool{declared: declared, index: x, model: embedder, info: tool.Describe(declared.Common(), declared.Arguments())}
	t.info.Description = strings.TrimSpace(t.info.Description + " The result is a list of passages with numbers. " + citation.ToolInstruction)
	t.info.Passages = true
	conditions, err := filter.Parse(declared.Filters)
	if err != nil {
		return nil, fmt.Errorf("tool %s: filters: %w", declared.ID, err)
	}
	t.query = index.Query{Mode: index.ByText, Limit: declared.TopK, Filter: conditions}
	if embedder != nil {
		t.query.Mode, t.query.Model = modeOf(declared.Mode), embedder.Info().Identity()
	}
	return t, nil
}

// SearchesVectors reports whether a tool needs the embedding model of its index.
func SearchesVectors(t *spec.IndexTool) (*spec.VectorIndex, bool) {
	x, ok := t.Index.To.(*spec.VectorIndex)
	return x, ok && modeOf(t.Mode) != index.ByText
}

// Info describes the tool.
func (t *indexTool) Info() tool.Info { return t.info }

// Call searches for the query and returns the passages with their numbers.
func (t *indexTool) Call(ctx context.Context, args map[string]any) (any, error) {
	given, err := tool.ConvertArgs(t.info, args, value.Assign)
	if err != nil {
		return nil, err
	}
	q, err := t.request(given)
	if err != nil {
		return nil, err
	}
	if t.model != nil && q.Mode != index.ByText {
		if q.Vector, err = t.embed(ctx, q); err != nil {
			return nil, t.failed(ctx, err)
		}
	}
	matches, err := index.Find(ctx, t.index, q)
	if err != nil {
		return nil, t.failed(ctx, err)
	}
	set := citedIn(ctx)
	passages := make([]any, 0, len(matches))
	for _, m := range matches {
		passages = append(passages, passageRecord(set.Add(sourceOf(m))))
	}
	return passages, nil
}

// embed returns the vector of a query that the index can answer.
func (t *indexTool) embed(ctx context.Context, q index.Query) ([]float32, error) {
	if err := index.Check(ctx, t.index, q); err != nil {
		return nil, err
	}
	vectors, usage, err := t.model.Embed(model.ForQueries(ctx), []string{q.Text})
	if usage != (model.Usage{}) {
		reportUsage(ctx, Event{Input: usage.Input, Output: usage.Output, Cached: usage.Cached, Cost: usage.Cost, Model: cmp.Or(usage.Model, t.model.Info().ID)})
	}
	if err != nil {
		return nil, err
	}
	return vectors[0], nil
}

// request returns the query of a call.
func (t *indexTool) request(given map[string]any) (index.Query, error) {
	q := t.query
	q.Text = value.Text(given[spec.IndexToolQuery])
	if strings.TrimSpace(q.Text) == "" {
		return q, &tool.ArgumentError{Tool: t.declared.ID, Argument: spec.IndexToolQuery, Problem: "is empty"}
	}
	if v, ok := given[spec.IndexToolTopK].(int64); ok {
		q.Limit = int(min(max(v, 1), maxToolResults))
	}
	all := []filter.Filter{}
	if q.Filter != nil {
		all = append(all, q.Filter)
	}
	for _, in := range t.declared.FilterInputs() {
		if v, ok := given[in.ID]; ok && v != nil {
			all = append(all, filter.Compare{Field: in.ID, Op: filter.Equal, Value: v})
		}
	}
	switch len(all) {
	case 0:
	case 1:
		q.Filter = all[0]
	default:
		q.Filter = filter.And{Of: all}
	}
	return q, nil
}

// failed returns the error of a call.
func (t *indexTool) failed(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return &tool.FailedError{Tool: t.declared.ID, Message: err.Error(), Err: err}
}

// sourceOf returns the source of a match.
func sourceOf(m index.Match) citation.Source {
	metadata, _ := value.FromGo(m.Metadata).(*value.Record)
	text := m.Text
	if metadata == nil {
		return citation.New(m.ID, m.Document, text, metadata)
	}
	if inner, ok := metadata.Get("metadata"); ok { // of a chunk that is a document of a full-text index
		if passage, isChunk := metadata.Get("content"); isChunk {
			text = value.Text(passage)
		}
		if r, isRecord := inner.(*value.Record); isRecord {
			metadata = r
		}
	}
	return citation.New(m.ID, m.Document, text, metadata)
}

// passageRecord returns a passage as a model reads it.
func passageRecord(s citation.Source) *value.Record {
	fields := []value.Field{{Name: "number", Value: int64(s.Number)}, {Name: "title", Value: s.Title}}
	for _, f := range []value.Field{{Name: "heading", Value: s.Heading}, {Name: "url", Value: s.URL}, {Name: "text", Value: s.Text},
		{Name: "filename", Value: s.Filename}, {Name: "media_type", Value: s.MediaType}, {Name: "source_id", Value: s.ID}} {
		if f.Value != "" {
			fields = append(fields, f)
		}
	}
	for _, f := range []value.Field{{Name: "page", Value: int64(s.Page)}, {Name: "line_start", Value: int64(s.LineStart)}, {Name: "line_end", Value: int64(s.LineEnd)}} {
		if f.Value != int64(0) {
			fields = append(fields, f)
		}
	}
	return value.NewRecord("", fields...)
}

// errNotLinked is the error of a tool whose index is unknown.
var errNotLinked = errors.New("the index is not linked")

// OpenIndexTool makes an IndexTool with the shared objects of the application.
func OpenIndexTool(declared *spec.IndexTool, env *Env) (tool.Tool, error) {
	if declared.Index.To == nil || env.Index == nil {
		return nil, errNotLinked
	}
	x, err := env.Index(declared.Index.To)
	if err != nil {
		return nil, err
	}
	var embedder model.Embedder
	if vectors, ok := SearchesVectors(declared); ok {
		if embedder, err = env.indexEmbedder(vectors); err != nil {
			return nil, err
		}
	}
	return NewIndexTool(declared, x, embedder)
}
