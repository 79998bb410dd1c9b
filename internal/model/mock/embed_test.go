package mock_test

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/qtype-dev/qtype/internal/model/mock"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec"
)

func embedder(dimensions int) *mock.Embedder {
	return mock.NewEmbedder(&spec.EmbeddingModel{Model: spec.Model{ID: "vectors", Provider: "mock"}, Dimensions: dimensions}, mock.Options{Count: byWords})
}

func TestEmbedder_SharedWordsAreSimilar(t *testing.T) {
	texts := []string{
		"Where is my parcel? It should have come on Monday.",
		"My parcel has not come yet, where is it?",
		"Parcels arrive on Mondays.",
		"The cat sleeps near the warm stove.",
	}
	vectors, usage, err := embedder(256).Embed(t.Context(), texts)
	if err != nil {
		t.Fatal(err)
	}
	near := make([]float64, len(texts))
	for i, v := range vectors {
		near[i] = model.Similarity(vectors[0], v)
	}
	if !slices.IsSortedFunc(near, func(a, b float64) int { return int(math.Copysign(1, b-a)) }) || near[1] < 0.5 || near[2] < near[3]+0.1 {
		t.Errorf("similarities to the first text: %.3f", near)
	}
	if usage.Input != 10+9+4+7 {
		t.Errorf("usage %+v", usage)
	}
}

func TestEmbedder_UnitVectors(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		dimensions := rapid.IntRange(1, 64).Draw(t, "dimensions")
		first, _, err := embedder(dimensions).Embed(t.Context(), []string{text, "between", text})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(first[0], first[2]) {
			t.Error("the same text got two vectors")
		}
		length := 0.0
		for _, x := range first[0] {
			length += float64(x) * float64(x)
		}
		if len(first[0]) != dimensions || math.Abs(length-1) > 1e-5 {
			t.Errorf("%d numbers of length %v", len(first[0]), length)
		}
	})
}
