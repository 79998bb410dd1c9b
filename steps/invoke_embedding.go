package steps

import (
	"context"
	"errors"
	"fmt"

	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
)

// invokeEmbedding converts a text to a vector.
type invokeEmbedding struct {
	id      string
	model   model.Embedder
	in, out slot
}

func buildInvokeEmbedding(s *spec.InvokeEmbedding, env *Env) (Runner, error) {
	in, out, err := env.inOut(&s.StepBase)
	if err != nil {
		return nil, err
	}
	m, err := env.embedder(s.Model)
	if err != nil {
		return nil, err
	}
	return &invokeEmbedding{id: s.ID, model: m, in: in, out: out}, nil
}

// Process calls the model for one vector.
func (s *invokeEmbedding) Process(ctx context.Context, row *Row, emit Emit) error {
	content, err := s.in.read(row)
	if err != nil {
		return err
	}
	text, err := s.text(content)
	if err != nil {
		return err
	}
	vectors, usage, err := s.model.Embed(ctx, []string{text})
	if usage != (model.Usage{}) {
		Report(ctx, Event{Kind: EventUsage, Step: s.id, Session: row.Session, Row: row.Number, Input: usage.Input, Output: usage.Output, Cached: usage.Cached, Cost: usage.Cost, Saved: usage.Saved, Model: usage.Model})
	}
	if err != nil {
		return err
	}
	s.out.write(row, vectorRecord(vectors[0], content))
	return emit(row)
}

// text returns the text to embed: the text form of a value other than media.
func (s *invokeEmbedding) text(content any) (string, error) {
	if s.in.of.Type.IsMedia() {
		return "", fmt.Errorf("the model %s embeds texts only; %s is of type %s", s.model.Info().ID, s.in.of.ID, s.in.of.Type)
	}
	switch content.(type) {
	case nil:
		return "", fmt.Errorf("%s is null: there is nothing to embed", s.in.of.ID)
	case []byte:
		return "", fmt.Errorf("the model %s embeds texts only; %s holds bytes", s.model.Info().ID, s.in.of.ID)
	}
	return value.Text(content), nil
}

// vectorRecord makes an Embedding of a vector and the value it was made from.
func vectorRecord(vector []float32, content any) *value.Record {
	numbers := make([]any, len(vector))
	for i, x := range vector {
		numbers[i] = float64(x)
	}
	return value.NewRecord("Embedding", value.Field{Name: "vector", Value: numbers},
		value.Field{Name: "content", Value: content}, value.Field{Name: "metadata", Value: value.NewRecord("")})
}

// embedder returns the embedding model of a step.
func (e *Env) embedder(declared spec.Ref[*spec.EmbeddingModel]) (model.Embedder, error) {
	if declared.To == nil || e.Embedder == nil {
		return nil, errors.New("the model is not linked")
	}
	return e.Embedder(declared.To)
}
