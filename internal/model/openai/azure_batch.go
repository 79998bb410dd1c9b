package openai

import (
	"net/url"
	"strings"

	"github.com/qtype-dev/qtype/internal/model/wire"
)

// NewAzureBatches makes the batch API of a deployment in Azure OpenAI, which must be one for batches. It calls nothing.
func NewAzureBatches(c AzureConfig) (wire.Batches, error) {
	s, err := wire.NewServer(c.Config, wire.Format{Answers: "batch", Example: azureExample})
	if err != nil {
		return nil, err
	}
	to := c.target(s, "responses") // its path has the version, and no deployment
	address, query, _ := strings.Cut(to.endpoint, "?")
	own := openaiDialect()
	own.limits.Calls, own.awaits = 100_000, true
	own.methods = map[string]string{"/responses": "/v1/responses", "/chat/completions": "/v1/chat/completions"} // Azure has no embeddings in batches
	switch {
	case query != "" && c.Version != "preview":
		own.methods["/chat/completions"] = "/chat/completions"
	default: // a resource keeps 500 files without a time, and 10,000 with one of 14 days or more
		own.fields = map[string]string{"expires_after[anchor]": "created_at", "expires_after[seconds]": "1209600"}
	}
	if own.query, err = url.ParseQuery(query); err != nil {
		return nil, err
	}
	return &batches{Server: s, dialect: own, root: strings.TrimSuffix(address, "/responses"), header: to.header}, nil
}
