package provider

import (
	"cmp"
	"net/http"
	"strings"
	"time"

	"github.com/qtype-dev/qtype/internal/awsauth"
	"github.com/qtype-dev/qtype/internal/azureauth"
	"github.com/qtype-dev/qtype/internal/googleauth"
	"github.com/qtype-dev/qtype/internal/model/anthropic"
	"github.com/qtype-dev/qtype/internal/model/googleai"
	"github.com/qtype-dev/qtype/internal/model/openai"
	"github.com/qtype-dev/qtype/internal/model/wire"
	"github.com/qtype-dev/qtype/internal/modelparams"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec"
)

// accountFinder completes the configuration of a model of a cloud: its address, where
// that has parts to replace, and the credentials of calls. It calls nothing. missing is an
// instruction where the document and the environment have not enough for a call.
type accountFinder func(m *spec.Model, c *wire.Config, opts Options) (missing string, err error)

// awsAccount signs calls with an AWS identity, unless there is an API key of Bedrock.
func awsAccount(m *spec.Model, c *wire.Config, opts Options) (missing string, err error) {
	identity, _ := m.Auth.To.(*spec.AWSAuth)
	getenv, policy := opts.identity(m)
	signer, err := awsauth.New(identity, awsauth.Options{Getenv: getenv, Secret: opts.Secret, Policy: policy})
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
	if c.Key == "" {
		c.Credential = signer.Name()
		c.Authorize = func(req *http.Request, body []byte) error { return signer.Sign(req, body, "bedrock") }
	}
	return "", nil
}

// googleAccount adds a token of a Google identity to calls. The address gets the region.
func googleAccount(m *spec.Model, c *wire.Config, opts Options) (missing string, err error) {
	account, _ := m.Auth.To.(*spec.VertexAuth)
	getenv, policy := opts.identity(m)
	if err := googleauth.Allowed(policy, account); err != nil {
		return "", err
	}
	id, err := googleauth.New(account, getenv)
	if err != nil {
		return "", err
	}
	project, err := id.Project()
	if err != nil {
		return err.Error(), nil //nolint:nilerr // an instruction, so that an offline mock can replace the model
	}
	region := id.Region()
	c.BaseURL = strings.Replace(c.BaseURL, "REGION-", strings.TrimPrefix(region+"-", "global-"), 1)
	c.Account = wire.Account{Project: project, Region: region}
	if c.Key == "" {
		c.Credential = id.Name()
		c.Authorize = func(req *http.Request, _ []byte) error { return id.Authorize(req) }
	}
	return "", nil
}

func vertexConfig(_ spec.Model, c wire.Config) googleai.VertexConfig {
	return googleai.VertexConfig{Config: c, Project: c.Account.Project, Location: c.Account.Region}
}

// vertexChat makes a model of Google or of Anthropic, by its name.
func vertexChat(m spec.Model, c wire.Config, _ time.Duration) (model.Chat, error) {
	config := vertexConfig(m, c)
	if modelparams.VertexChat(m.Name()) == modelparams.VertexMessages {
		return anthropic.NewVertex(anthropic.Config{Config: c, Cache: m.PromptCache}, config.Path("anthropic"))
	}
	return googleai.NewVertex(config)
}

// azureAccount adds a token of a Microsoft identity to calls, unless there is an API key.
func azureAccount(m *spec.Model, c *wire.Config, opts Options) (missing string, err error) {
	if strings.Contains(c.BaseURL, "RESOURCE") {
		return "set AZURE_OPENAI_ENDPOINT, or base_url to the endpoint of the resource", nil
	}
	if c.Key != "" {
		return "", nil
	}
	account, _ := m.Auth.To.(*spec.AzureAuth)
	getenv, policy := opts.identity(m)
	id, err := azureauth.New(account, azureauth.Options{Getenv: getenv, Secret: opts.Secret, Policy: policy})
	if err != nil {
		return "", err
	}
	c.Credential = id.Name()
	c.Authorize = func(req *http.Request, _ []byte) error {
		return id.Authorize(req, azureResource(req.URL.Hostname()))
	}
	return "", nil
}

// azureResource returns the resource of tokens for a host: endpoints of projects in Azure AI Foundry
// have another one than Azure OpenAI.
func azureResource(host string) string {
	if strings.HasSuffix(strings.ToLower(host), ".services.ai.azure.com") {
		return "https://ai.azure.com"
	}
	return "https://cognitiveservices.azure.com"
}

func azureConfig(m spec.Model, c wire.Config) openai.AzureConfig {
	return openai.AzureConfig{Config: c, Bearer: isToken(m), Deployment: cmp.Or(m.Deployment, m.Name()), Version: m.APIVersion}
}

func azureChat(m spec.Model, c wire.Config, _ time.Duration) (model.Chat, error) {
	if m.UsesResponses() {
		return openai.NewAzureResponses(azureConfig(m, c))
	}
	return openai.NewAzure(azureConfig(m, c))
}

// openaiChat makes a model of the API that the document declares, or that the model needs.
func openaiChat(m spec.Model, c wire.Config, _ time.Duration) (model.Chat, error) {
	if m.UsesResponses() {
		return openai.NewResponses(c)
	}
	return openai.New(c)
}
