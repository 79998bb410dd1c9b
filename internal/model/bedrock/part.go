package bedrock

import (
	"net/http"
	"strings"
	"time"

	"github.com/qtype-dev/qtype/internal/awsauth"
	"github.com/qtype-dev/qtype/internal/model/provider"
	"github.com/qtype-dev/qtype/internal/model/wire"
	"github.com/qtype-dev/qtype/internal/remotefs"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec"
)

// Part returns the row of the provider in the table of parts.
func Part() provider.Client {
	return provider.Client{
		Chat: func(m spec.Model, c wire.Config, _ time.Duration) (model.Chat, error) {
			return New(ChatConfig{Config: c, Cache: m.PromptCache})
		},
		Embedder: func(_ spec.Model, c wire.Config) (model.Embedder, error) { return NewEmbedder(c) },
		Batches: func(m spec.Model, c wire.Config) (wire.Batches, error) {
			row, _ := m.ProviderRow()
			return NewBatches(BatchConfig{Config: c, Folder: m.Batch.Bucket, Role: m.Batch.Role, Least: row.BatchBucket.LeastCalls})
		},
		Account: account,
	}
}

// account signs calls with an AWS identity, unless there is an API key of Bedrock.
func account(m *spec.Model, c *wire.Config, opts provider.Options) (missing string, err error) {
	identity, _ := m.Auth.To.(*spec.AWSAuth)
	getenv, policy := opts.Identity(m)
	signer, err := opts.AWS.Signer(identity, awsauth.Options{Getenv: getenv, Secret: opts.Secret, Policy: policy})
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
