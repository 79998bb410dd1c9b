package model

import (
	"github.com/qtype-dev/qtype/internal/tokenizer"
	"github.com/qtype-dev/qtype/spec"
)

// Describe returns the Info of a declared chat model. What the document does not
// declare is looked up by the model's name.
func Describe(m *spec.Model) Info {
	encoding, exact := tokenizer.ForModel(m.Name())
	info := Info{ID: m.ID, Provider: m.Provider, Name: m.Name(), Encoding: encoding, ExactTokens: exact,
		ContextWindow: m.ContextWindow, MaxTokens: MaxTokens(m.InferenceParams)}
	if info.Known, _ = m.Known(); info.Known != nil && info.ContextWindow == 0 {
		info.ContextWindow = window(info.Known, info.MaxTokens)
	}
	return info
}

// DescribeEmbedder returns the Info of a declared embedding model.
func DescribeEmbedder(m *spec.EmbeddingModel) Info {
	info := Describe(&m.Model)
	info.Dimensions = m.Dimensions
	return info
}
