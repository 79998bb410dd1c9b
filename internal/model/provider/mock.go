package provider

import (
	"fmt"
	"slices"

	"github.com/qtype-dev/qtype/internal/model/mock"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec"
)

// newMock makes a mock, for itself or in place of the model replaced. It answers
// repeated calls alike, so it is retried only where the document configures retries.
func newMock(m, replaced *spec.Model, opts Options) (model.Chat, error) {
	made, err := mock.New(m, mock.Options{Replaces: replaced})
	if err != nil {
		return nil, err
	}
	isSlow := slices.ContainsFunc(m.Rules, func(r *spec.MockRule) bool { return r != nil && r.Delay > 0 }) // it may exceed the timeout
	if m.Retry == nil && m.RateLimit == nil && m.CircuitBreaker == nil && !isSlow {
		return WithAnswers(m, opts.Wrap(made), opts), nil
	}
	p := withMockBreaker(callPolicy(m, mockServer(m), opts), m, opts)
	if m.Retry == nil {
		p.MaxAttempts = 1
	}
	return WithAnswers(m, model.WithRetry(opts.Wrap(made), p), opts), nil
}

// mockServer identifies the server that a mock replaces: each mock has another one.
func mockServer(m *spec.Model) string { return "mock " + m.ID }

// withMockBreaker adds the circuit breaker that a mock declares. Without a declaration it has none, so that a
// mock can fail as often as a test wants.
func withMockBreaker(p model.CallPolicy, m *spec.Model, opts Options) model.CallPolicy {
	if m.CircuitBreaker == nil {
		return p
	}
	return withBreaker(p, m, mockServer(m), opts)
}

// mockEmbedder makes the embedding model m of a mock, which is m itself or replaces it.
func mockEmbedder(m *spec.EmbeddingModel, by *spec.Model, opts Options) model.Embedder {
	var replaced *spec.Model
	if by != &m.Model {
		replaced = &m.Model
	}
	made := opts.WrapEmbedder(mock.NewEmbedder(m, mock.Options{Replaces: replaced, ID: by.ID}))
	p := model.CallPolicy{Limit: callPolicy(by, mockServer(by), opts).Limit}
	return withEmbeddingCost(by, model.WithBatches(made, model.Batch{}, withMockBreaker(p, by, opts)))
}

// offlineMock returns the mock that a model names by `offline`; a
// CredentialsError with the missing credentials where it names none.
func offlineMock(m *spec.Model, missing string) (*spec.Model, error) {
	other := m.OfflineMock()
	switch {
	case spec.IsEmpty(&m.Offline):
		return nil, &CredentialsError{Model: m.ID, Needs: missing}
	case other == nil:
		return nil, fmt.Errorf("model %s: offline names %s, which is not a model", m.ID, m.Offline.ID)
	case !other.IsMock():
		return nil, fmt.Errorf("model %s: offline must name a mock model; %s is of provider %s", m.ID, other.ID, other.Provider)
	}
	return other, nil
}
