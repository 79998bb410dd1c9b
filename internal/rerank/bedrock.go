package rerank

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/qtype-dev/qtype/internal/awsauth"
)

// maxBedrock is the maximum number of documents of one call.
const maxBedrock = 1000

// bedrock calls the operation Rerank of Amazon Bedrock.
type bedrock struct {
	server
	arn string
}

// newBedrock makes a Ranker for a model, by its id or ARN. It calls nothing.
func newBedrock(modelID string, signer awsauth.Signer, opts Options) (Ranker, error) {
	region, err := signer.Region()
	if err != nil {
		return nil, err
	}
	b := &bedrock{arn: modelARN(modelID, region), server: server{http: opts.HTTP, policy: retries}}
	base := cmp.Or(awsauth.Endpoint("BEDROCK_AGENT_RUNTIME", opts.Getenv), "https://bedrock-agent-runtime."+region+"."+domain(region))
	b.url = strings.TrimRight(base, "/") + "/rerank"
	b.sign = func(req *http.Request, body []byte) error { return signer.Sign(req, body, "bedrock") }
	return b, nil
}

// modelARN returns the ARN of a foundation model of a region; an ARN is unchanged.
func modelARN(id, region string) string {
	if strings.HasPrefix(id, "arn:") {
		return id
	}
	partition := "aws"
	switch {
	case strings.HasPrefix(region, "us-gov-"):
		partition = "aws-us-gov"
	case strings.HasPrefix(region, "cn-"):
		partition = "aws-cn"
	}
	return fmt.Sprintf("arn:%s:bedrock:%s::foundation-model/%s", partition, region, id)
}

// domain returns the domain of the services of a region.
func domain(region string) string {
	if strings.HasPrefix(region, "cn-") {
		return "amazonaws.com.cn"
	}
	return "amazonaws.com"
}

type bedrockRequest struct {
	Queries []bedrockQuery  `json:"queries"`
	Sources []bedrockSource `json:"sources"`
	Config  bedrockConfig   `json:"rerankingConfiguration"`
}

type bedrockText struct {
	Text string `json:"text"`
}

type bedrockQuery struct {
	Type string      `json:"type"` // always TEXT
	Text bedrockText `json:"textQuery"`
}

type bedrockSource struct {
	Type   string          `json:"type"` // always INLINE
	Inline bedrockDocument `json:"inlineDocumentSource"`
}

type bedrockDocument struct {
	Type string          `json:"type"` // JSON or TEXT
	JSON json.RawMessage `json:"jsonDocument,omitempty"`
	Text *bedrockText    `json:"textDocument,omitempty"`
}

type bedrockConfig struct {
	Type    string `json:"type"` // always BEDROCK_RERANKING_MODEL
	Bedrock struct {
		Number int `json:"numberOfResults"`
		Model  struct {
			ARN string `json:"modelArn"`
		} `json:"modelConfiguration"`
	} `json:"bedrockRerankingConfiguration"`
}

// request returns the body of a call.
func (b *bedrock) request(req Request) bedrockRequest {
	body := bedrockRequest{Queries: []bedrockQuery{{"TEXT", bedrockText{req.Query}}}, Config: bedrockConfig{Type: "BEDROCK_RERANKING_MODEL"}}
	for _, item := range req.Items {
		document := bedrockDocument{Type: "TEXT", Text: &bedrockText{item.Text}}
		if item.JSON != nil {
			document = bedrockDocument{Type: "JSON", JSON: item.JSON}
		}
		body.Sources = append(body.Sources, bedrockSource{"INLINE", document})
	}
	body.Config.Bedrock.Model.ARN = b.arn
	body.Config.Bedrock.Number = len(req.Items)
	if req.Limit > 0 {
		body.Config.Bedrock.Number = min(len(req.Items), req.Limit)
	}
	return body
}

// Rank returns the results in the order of the service.
func (b *bedrock) Rank(ctx context.Context, req Request) ([]Choice, Usage, error) {
	if len(req.Items) > maxBedrock {
		return nil, Usage{}, fmt.Errorf("%d results are too many for Bedrock, which sorts at most %d: lower default_top_k of the search", len(req.Items), maxBedrock)
	}
	var answer struct {
		Results []struct {
			Index *int     `json:"index"`
			Score *float64 `json:"relevanceScore"`
		} `json:"results"`
	}
	if err := b.post(ctx, b.request(req), &answer); err != nil {
		return nil, Usage{}, err
	}
	choices := make([]Choice, len(answer.Results))
	for i, r := range answer.Results {
		if r.Index == nil || r.Score == nil {
			return nil, Usage{}, &CallError{URL: b.name(), Message: errNoRanking.Error()}
		}
		choices[i] = Choice{*r.Index, *r.Score}
	}
	if err := checked(choices, len(req.Items)); err != nil {
		return nil, Usage{}, &CallError{URL: b.name(), Message: err.Error()}
	}
	return first(choices, req.Limit), Usage{}, nil
}
