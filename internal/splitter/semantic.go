package splitter

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"

	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec"
)

// semantic is SemanticSplitterNodeParser: a chunk begins where the meaning of the sentences
// changes most.
type semantic struct {
	args  spec.SemanticArgs
	model model.Embedder
}

func buildSemantic(s Settings) (Splitter, error) {
	args, ok := s.Args.(*spec.SemanticArgs)
	if !ok || s.Embedder == nil {
		return nil, errors.New("the splitter needs an embedding model: set model")
	}
	return semantic{*args, s.Embedder}, nil
}

// rounding is the greatest difference of distances that count as equal, such as the
// distances of repeated sentences.
const rounding = 1e-9

// Split implements Splitter.
func (s semantic) Split(ctx context.Context, d Document) iter.Seq2[Chunk, error] {
	return func(yield func(Chunk, error) bool) {
		if strings.TrimFunc(d.Text, isTrimmed) == "" {
			return
		}
		sentences := slices.Collect(cutSentences(d.Text))
		distances, err := s.distances(ctx, sentences)
		if err != nil {
			yield(Chunk{}, err)
			return
		}
		limit := percentile(distances, float64(s.args.BreakpointPercentileThreshold))
		start, end := 0, 0
		for i, sentence := range sentences {
			end += len(sentence)
			if i < len(distances) && distances[i] <= limit+rounding {
				continue
			}
			if !yield(Chunk{Text: d.Text[start:end], Start: start, End: end}, nil) {
				return
			}
			start = end
		}
	}
}

// distances returns the cosine distances of consecutive sentences, each of which is
// embedded together with its neighbours.
func (s semantic) distances(ctx context.Context, sentences []string) ([]float64, error) {
	groups := make([]string, len(sentences))
	for i := range sentences {
		from, to := max(0, i-s.args.BufferSize), min(len(sentences), i+s.args.BufferSize+1)
		groups[i] = strings.Join(sentences[from:to], "")
	}
	vectors, _, err := s.model.Embed(ctx, groups)
	if err != nil {
		return nil, fmt.Errorf("the sentences cannot be embedded: %w", err)
	}
	distances := make([]float64, len(vectors)-1)
	for i := range distances {
		distances[i] = 1 - cosine(vectors[i], vectors[i+1])
	}
	return distances, nil
}

// cosine returns the cosine similarity of two vectors, 0 if one of them is zero.
func cosine(a, b []float32) float64 {
	var dot, aa, bb float64
	for i, x := range a {
		y := float64(b[i])
		dot += float64(x) * y
		aa += float64(x) * float64(x)
		bb += y * y
	}
	if aa == 0 || bb == 0 {
		return 0
	}
	return dot / math.Sqrt(aa) / math.Sqrt(bb)
}

// percentile returns the value below which p percent of the values are, interpolated
// linearly; 0 without values.
func percentile(values []float64, p float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	at := p / 100 * float64(len(sorted)-1)
	below := int(at)
	if below+1 == len(sorted) {
		return sorted[below]
	}
	return sorted[below] + (at-float64(below))*(sorted[below+1]-sorted[below])
}
