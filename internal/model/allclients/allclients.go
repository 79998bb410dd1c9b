// Package allclients has the table of the clients of all providers that need no other module: those of the core, and those
// that a program of the core leaves out with the SDKs that they use.
package allclients

import (
	"net/http"
	"strings"
	"time"

	"github.com/qtype-dev/qtype/internal/awsauth"
	"github.com/qtype-dev/qtype/internal/awsauth/awssdk"
	"github.com/qtype-dev/qtype/internal/model/bedrock"
	"github.com/qtype-dev/qtype/internal/model/langchain"
	"github.com/qtype-dev/qtype/internal/model/provider"
	"github.com/qtype-dev/qtype/internal/model/wire"
	"github.com/qtype-dev/qtype/internal/remotefs"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec"
)

// Clients returns the table. The caller may change it.
func Clients() provider.Clients {
	all := provider.Core()
	all["aws-bedrock"] = amazon()
	all["langchaingo:huggingface"] = bridge(langchain.NewHuggingFace)
	all["langchaingo:mistral"] = bridge(langchain.NewMistral)
	all["langchaingo:ollama"] = bridge(langchain.NewOllama)
	return all
}

func amazon() provider.Client {
	return provider.Client{
		Chat: func(m spec.Model, c wire.Config, _ time.Duration) (model.Chat, error) {
			return bedrock.New(bedrock.ChatConfig{Config: c, Cache: m.PromptCache})
		},
		Embedder: func(_ spec.Model, c wire.Config) (model.Embedder, error) { return bedrock.NewEmbedder(c) },
		Batches: func(m spec.Model, c wire.Config) (wire.Batches, error) {
			row, _ := m.ProviderRow()
			return bedrock.NewBatches(bedrock.BatchConfig{Config: c, Folder: m.Batch.Bucket, Role: m.Batch.Role, Least: row.BatchBucket.LeastCalls})
		},
		Account: account,
	}
}

// bridge adapts a client of langchaingo, which needs the time limit of a call.
func bridge(open func(langchain.Config) (*langchain.Model, error)) provider.Client {
	return provider.Client{Chat: func(_ spec.Model, c wire.Config, timeout time.Duration) (model.Chat, error) {
		return open(langchain.Config{Config: c, Timeout: timeout})
	}}
}

// account signs calls with an AWS identity, unless there is an API key of Bedrock.
func account(m *spec.Model, c *wire.Config, opts provider.Options) (missing string, err error) {
	identity, _ := m.Auth.To.(*spec.AWSAuth)
	getenv, policy := opts.Identity(m)
	signer, err := awssdk.New(identity, awsauth.Options{Getenv: getenv, Secret: opts.Secret, Policy: policy})
	if err != nil {
		return "", err
	}
	region, err := signer.Region()
	if err != nil && (c.Key == "" || strings.Contains(c.BaseURL, "REGION")) {
		return err.Error(), nil
	}
	if m.BaseURL == "" {
		if own := awsauth.Endpoint("BEDROCK_RUNTIME", opts.Getenv); own != "" {
			c.BaseURL = own
		}
	}
	if strings.HasPrefix(region, "cn-") {
		c.BaseURL = strings.Replace(c.BaseURL, "REGION.amazonaws.com", "REGION.amazonaws.com.cn", 1)
	}
	c.BaseURL = strings.Replace(c.BaseURL, "REGION", region, 1)
	if identity != nil { // an API key of Bedrock opens no bucket
		c.Bucket = &remotefs.Identity{Region: region, Keys: signer.Keys}
	}
	if c.Key == "" {
		c.Credential = signer.Name()
		c.Authorize = func(req *http.Request, body []byte) error { return signer.Sign(req, body, "bedrock") }
	}
	return "", nil
}
