package provider

import (
	"fmt"

	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/model/mock"
	"github.com/qtype-dev/qtype/spec"
)

// newMock makes a mock, for itself or in place of the model replaced. It answers
// repeated calls alike, so it is retried only where the document configures retries.
func newMock(m, replaced *spec.Model, opts Options) (model.Chat, error) {
	made, err := mock.New(m, mock.Options{Replaces: replaced})
	if err != nil {
		return nil, err
	}
	if m.Retry == nil && m.RateLimit == nil {
		return WithAnswers(m, opts.Wrap(made), opts), nil
	}
	p := callPolicy(m)
	if m.Retry == nil {
		p.MaxAttempts = 1
	}
	return WithAnswers(m, model.WithRetry(opts.Wrap(made), p), opts), nil
}

// mockEmbedder makes a mock, for itself or in place of the model replaced.
func mockEmbedder(m *spec.EmbeddingModel, replaced *spec.Model, opts Options) model.Embedder {
	made := opts.WrapEmbedder(mock.NewEmbedder(m, mock.Options{Replaces: replaced}))
	return model.WithBatches(made, model.Batch{}, model.CallPolicy{Limit: callPolicy(&m.Model).Limit})
}

// offlineMock returns the mock that a model names by `offline`; a
// CredentialsError with the missing credentials where it names none.
func offlineMock(m *spec.Model, missing string) (*spec.Model, error) {
	other := m.Offline.To
	switch {
	case m.Offline.IsZero():
		return nil, &CredentialsError{Model: m.ID, Needs: missing}
	case other == nil:
		return nil, fmt.Errorf("model %s: offline names %s, which is not a model", m.ID, m.Offline.ID)
	case !other.IsMock():
		return nil, fmt.Errorf("model %s: offline must name a mock model; %s is of provider %s", m.ID, other.ID, other.Provider)
	}
	return other, nil
}
