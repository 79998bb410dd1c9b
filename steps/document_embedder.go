package steps

import (
	"context"
	"fmt"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
)

// documentEmbedder sets the vectors of chunks. It works on groups of rows, because one
// request of an embedding model takes many texts.
type documentEmbedder struct {
	id      string
	texts   textEmbedder
	in, out slot
}

func buildDocumentEmbedder(s *spec.DocumentEmbedder, env *Env) (Runner, error) {
	in, out, err := env.inOut(&s.StepBase)
	if err != nil {
		return nil, err
	}
	m, err := env.embedder(s.Model)
	if err != nil {
		return nil, err
	}
	texts := textEmbedder{step: s.ID, model: m, workers: max(s.Workers(), 1), size: embedTexts}
	if s.BatchConfig != nil {
		texts.size = s.BatchConfig.BatchSize
	}
	return &documentEmbedder{id: s.ID, in: in, out: out, texts: texts}, nil
}

// Size returns the maximum number of chunks in a group: one call for each worker.
func (s *documentEmbedder) Size() int { return s.texts.size * s.texts.workers }

// Batch embeds the contents of chunks. A chunk that cannot be embedded fails alone.
func (s *documentEmbedder) Batch(ctx context.Context, rows []*Row, emit Emit) error {
	chunks, texts, errs := make([]*value.Record, len(rows)), make([]string, len(rows)), make([]error, len(rows))
	for i, row := range rows {
		chunks[i], texts[i], errs[i] = s.read(row)
	}
	vectors, failed := s.texts.embed(ctx, texts)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	for i, row := range rows {
		err := errs[i]
		if err == nil {
			err = failed[i]
		}
		if err != nil {
			err = emitFailed(row, s.id, err, emit)
		} else {
			s.out.write(row, chunks[i].With(fieldVector, listOfVector(vectors[i])))
			err = emit(row)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// read returns the chunk of a row and its text.
func (s *documentEmbedder) read(row *Row) (*value.Record, string, error) {
	v, err := s.in.read(row)
	if err != nil {
		return nil, "", err
	}
	chunk, ok := v.(*value.Record)
	if !ok || chunk.Type() != "RAGChunk" {
		return nil, "", fmt.Errorf("%s: expected a RAGChunk, got %s", s.in.of.ID, valueKind(v))
	}
	text, err := ragText(chunk)
	return chunk, text, err
}
