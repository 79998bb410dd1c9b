package evalrun

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/qtype-dev/qtype/internal/eval"
	"github.com/qtype-dev/qtype/internal/model/provider"
	"github.com/qtype-dev/qtype/internal/recording"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/value"
)

// judges gives metrics the models of the application without a variant.
type judges struct{ app *runtime.App }

// chat returns the chat model with an id, whose calls are recorded or replayed.
func (j *judges) chat(id string, recorded *recording.Session) (model.Chat, error) {
	declared, err := eval.ModelOf(j.app.Spec(), id)
	if err != nil {
		return nil, err
	}
	m, isChat := declared.(*spec.Model)
	switch {
	case !isChat:
		return nil, fmt.Errorf("model %s is not a chat model", id)
	case recorded != nil && recorded.Replays() && !m.IsMock():
		return recorded.Chat(m, nil), nil
	}
	made, err := j.app.Model(id)
	if err != nil || recorded == nil || m.IsMock() {
		return made, err
	}
	if made.Info().Mock {
		return nil, fmt.Errorf("model %s has no credentials, which a recording needs", id)
	}
	return recorded.Chat(m, made), nil
}

// embedder returns the embedding model with an id, whose calls are recorded or replayed.
func (j *judges) embedder(id string, recorded *recording.Session) (model.Embedder, error) {
	declared, err := eval.ModelOf(j.app.Spec(), id)
	if err != nil {
		return nil, err
	}
	m, isEmbedder := declared.(*spec.EmbeddingModel)
	switch {
	case !isEmbedder:
		return nil, fmt.Errorf("model %s is not an embedding model", id)
	case recorded != nil && recorded.Replays() && !m.IsMock():
		return recorded.Embedder(m, nil), nil
	}
	made, err := j.app.Embedder(id)
	if err != nil || recorded == nil || m.IsMock() {
		return made, err
	}
	if made.Info().Mock {
		return nil, fmt.Errorf("model %s has no credentials, which a recording needs", id)
	}
	return recorded.Embedder(m, made), nil
}

// similar makes the scorer of the similarity of embeddings.
func similar(m *spec.Metric) scorer {
	return func(ctx context.Context, s *sample) (Score, error) {
		if err := s.lacksExpected(m); err != nil {
			return Score{}, err
		}
		return s.judges.similarity(ctx, m, s)
	}
}

func (j *judges) similarity(ctx context.Context, m *spec.Metric, s *sample) (Score, error) {
	texts := []string{value.Text(s.expected), value.Text(s.output)}
	if i := slices.IndexFunc(texts, func(t string) bool { return strings.TrimSpace(t) == "" }); i >= 0 {
		return failed("the %s text is empty", []string{"expected", "output"}[i]), nil
	}
	embedder, err := j.embedder(m.Model, s.recorded)
	if err != nil {
		return Score{}, err
	}
	made, used, err := embedder.Embed(ctx, texts)
	if err != nil {
		return Score{}, err
	}
	if prices := s.metric.model.Base().CallPrices(); prices != nil {
		*s.spent += used.Charge(provider.BatchPrices(prices), time.Now())
	}
	score := max(0, cosine(made[0], made[1]))
	return decide(m, Score{Value: score}, fmt.Sprintf("similarity %.3f", score)), nil
}

// cosine returns the cosine similarity of two vectors; 0 if one of them is zero.
func cosine(a, b []float32) float64 {
	var product, lengthA, lengthB float64
	for i := range min(len(a), len(b)) {
		x, y := float64(a[i]), float64(b[i])
		product, lengthA, lengthB = product+x*y, lengthA+x*x, lengthB+y*y
	}
	if lengthA == 0 || lengthB == 0 {
		return 0
	}
	return product / math.Sqrt(lengthA*lengthB)
}

// decide applies the threshold of a metric to a score.
func decide(m *spec.Metric, s Score, reason string) Score {
	s.Value = math.Round(s.Value*1e6) / 1e6
	if m.Threshold == nil {
		return s
	}
	s.Raw = s.Value
	if s.Value >= *m.Threshold {
		s.Value = 1
		return s
	}
	s.Value = 0
	if s.Reason == "" {
		s.Reason = fmt.Sprintf("%s is below %v", reason, *m.Threshold)
	}
	return s
}
