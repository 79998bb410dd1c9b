package openai

import (
	"net/url"

	"github.com/qtype-dev/qtype/internal/model/wire"
)

// AzureConfig is a deployment in Azure OpenAI. BaseURL is the endpoint of the resource, before
// /openai. Requests have the Key, or the token that Authorize adds.
type AzureConfig struct {
	Config
	Bearer     bool   // the key is a token for the Authorization header, not an API key
	Deployment string // the name of the deployment
	Version    string // of the protocol, such as 2024-10-21; empty for v1
}

// azureExample is a base URL for error messages.
const azureExample = "https://my-resource.openai.azure.com"

// NewAzure makes a Client of chat completions. It calls nothing.
func NewAzure(c AzureConfig) (*Client, error) {
	s, err := wire.NewServer(c.Config, chatFormat(azureExample))
	if err != nil {
		return nil, err
	}
	return &Client{wire.NewChat(s, newProtocol(s, c.target(s, "chat/completions")), "chat")}, nil
}

// NewAzureEmbedder makes an Embedder. It calls nothing.
func NewAzureEmbedder(c AzureConfig) (*Embedder, error) {
	s, err := wire.NewServer(c.Config, embeddingFormat(azureExample))
	if err != nil {
		return nil, err
	}
	return &Embedder{server: s, target: c.target(s, "embeddings")}, nil
}

// target returns the target of a method. The deployment is the name of the model in version
// v1, and a part of the path in earlier ones.
func (c AzureConfig) target(s *wire.Server, method string) target {
	to := target{header: bearer(""), model: c.Deployment}
	switch c.Version {
	case "", "v1", "preview":
		to.endpoint = s.Base.JoinPath("openai", "v1", method).String()
	default:
		if method == "responses" { // the name of the model in all versions
			to.endpoint = s.Base.JoinPath("openai", method).String()
			break
		}
		to.endpoint = s.Base.JoinPath("openai", "deployments", c.Deployment, method).String()
	}
	if c.Version != "" && c.Version != "v1" {
		to.endpoint += "?api-version=" + url.QueryEscape(c.Version)
	}
	switch {
	case s.Key == "":
	case c.Bearer:
		to.header = bearer(s.Key)
	default:
		to.header.Set("Api-Key", s.Key)
	}
	return to
}
