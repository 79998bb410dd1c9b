package splitter_test

import (
	"context"
	"strings"

	"github.com/qtype-dev/qtype/model"
)

var background = context.Background()

// Embed implements model.Embedder.
func (letterModel) Embed(_ context.Context, texts []string) ([][]float32, model.Usage, error) {
	vectors := [][]float32{}
	for _, text := range texts {
		vectors = append(vectors, []float32{float32(strings.Count(text, "a")), float32(strings.Count(text, "b"))})
	}
	return vectors, model.Usage{}, nil
}
