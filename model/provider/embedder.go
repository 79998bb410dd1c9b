package provider

import (
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/model/mock"
	"github.com/qtype-dev/qtype/model/openai"
	"github.com/qtype-dev/qtype/spec"
)

// NewEmbedder makes an embedding model. As with New nothing is called yet.
func NewEmbedder(m *spec.EmbeddingModel, opts Options) (model.Embedder, error) {
	opts = opts.withDefaults()
	switch m.Provider {
	case "mock":
		return mockEmbedder(m, nil), nil
	case "openai":
		return openAIEmbedder(m, opts)
	}
	if n, ok := providers()[m.Provider]; ok {
		return nativeEmbedder(m, n, opts)
	}
	return nil, &NotAvailableError{Model: m.ID, Provider: m.Provider}
}

// mockEmbedder makes a mock, for itself or in another model's place.
func mockEmbedder(m *spec.EmbeddingModel, standsFor *spec.Model) model.Embedder {
	return model.WithBatches(mock.NewEmbedder(m, mock.Options{StandsFor: standsFor}), model.Batch{}, model.CallPolicy{Limit: callPolicy(&m.Model).Limit})
}

func openAIEmbedder(m *spec.EmbeddingModel, opts Options) (model.Embedder, error) {
	cfg, needs, err := openAIConfig(&m.Model, opts)
	if err != nil {
		return nil, err
	}
	return embedderOf(m, cfg, needs)
}

// embedderOf makes an embedding model behind a server that speaks OpenAI's
// protocol, or its stand-in where it needs something to be called.
func embedderOf(m *spec.EmbeddingModel, cfg openai.Config, needs string) (model.Embedder, error) {
	if needs != "" {
		if _, err := offline(&m.Model, needs); err != nil {
			return nil, err
		}
		return mockEmbedder(m, &m.Model), nil
	}
	cfg.Info = model.DescribeEmbedder(m)
	made, err := openai.NewEmbedder(cfg)
	if err != nil {
		return nil, err
	}
	return model.WithBatches(made, model.Batch{}, callPolicy(&m.Model)), nil
}
