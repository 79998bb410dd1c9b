// Package providers has the table of the clients of all providers of models.
package providers

import (
	"time"

	"github.com/qtype-dev/qtype/distribution/model/langchain"
	"github.com/qtype-dev/qtype/internal/model/bedrock"
	"github.com/qtype-dev/qtype/internal/model/provider"
	"github.com/qtype-dev/qtype/internal/model/wire"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec"
)

// Clients returns the table of the core and of all others. The caller may change it.
func Clients() provider.Clients {
	all := provider.Core()
	all["aws-bedrock"] = bedrock.Part()
	all["langchaingo:huggingface"] = bridge(langchain.NewHuggingFace)
	all["langchaingo:mistral"] = bridge(langchain.NewMistral)
	all["langchaingo:ollama"] = bridge(langchain.NewOllama)
	return all
}

// bridge adapts a client of langchaingo, which needs the time limit of a call.
func bridge(open func(langchain.Config) (*langchain.Model, error)) provider.Client {
	return provider.Client{Chat: func(_ spec.Model, c wire.Config, timeout time.Duration) (model.Chat, error) {
		return open(langchain.Config{Config: c, Timeout: timeout})
	}}
}
