package rerank_test

import (
	"io"
	"math"
	"net/http"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/awsauth/awsauthtest"
	"github.com/qtype-dev/qtype/internal/catalogue"
	"github.com/qtype-dev/qtype/internal/rerank"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/spec"
)

// answering answers every request with a text.
type answering string

func (a answering) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(string(a))), Request: r}, nil
}

// TestCost compares the costs of calls with the price lists: of queries, which have up to 100 texts, and of tokens.
func TestCost(t *testing.T) {
	const price = 9.0
	own := catalogue.New([]catalogue.Model{{Provider: "jina", ID: "ours", Kind: catalogue.Rerank, BaseURL: "https://rank.example", Prices: &catalogue.Prices{TierRates: catalogue.TierRates{Rates: catalogue.Rates{Queries: new(price)}}}}}, nil)
	ranking := func(rest string) string { return `{"results":[{"index":0,"relevance_score":1}]` + rest + `}` }
	for name, c := range map[string]struct {
		step   spec.ChargedRanker
		answer string
		texts  int
		want   float64
		priced bool
	}{
		"cohere, as billed":       {&spec.Reranker{Method: "cohere"}, ranking(`,"meta":{"billed_units":{"search_units":3},"tokens":{"input_tokens":500}}`), 5, 0.006, true},
		"cohere, not billed":      {&spec.Reranker{Method: "cohere"}, ranking(``), 101, 0.004, true},
		"cohere, another":         {&spec.Reranker{Method: "cohere", Args: map[string]any{"model_id": "rerank-v4.0-pro"}}, ranking(``), 100, 0.0025, true},
		"cohere, tokens":          {&spec.Reranker{Method: "cohere", Args: map[string]any{"model_id": "rerank-v5.0-pro"}}, ranking(`,"meta":{"billed_units":{"input_tokens":2000}}`), 5, 0.0001, true},
		"jina":                    {&spec.Reranker{Method: "jina"}, ranking(`,"usage":{"total_tokens":3000}`), 5, 0.00015, true},
		"jina, unknown":           {&spec.Reranker{Method: "jina", Args: map[string]any{"model_id": "next"}}, ranking(`,"usage":{"total_tokens":3000}`), 5, 0, false},
		"another server":          {&spec.Reranker{Method: "jina", Args: map[string]any{"base_url": "https://other.example"}}, ranking(``), 5, 0, false},
		"a server of models.yaml": {&spec.Reranker{Method: "jina", Args: map[string]any{"base_url": "https://rank.example", "model_id": "ours"}}, ranking(``), 5, 0.009, true},
		"bedrock":                 {&spec.BedrockReranker{ModelID: "amazon.rerank-v1:0"}, `{"results":[{"index":0,"relevanceScore":1}]}`, 250, 0.003, true},
		"bedrock, an ARN":         {&spec.Reranker{Method: "bedrock", Args: map[string]any{"model_id": "arn:aws:bedrock:us-east-1::foundation-model/cohere.rerank-v3-5:0"}}, `{"results":[{"index":0,"relevanceScore":1}]}`, 1, 0.002, true},
	} {
		c.step.SetCatalogue(own)
		opts := rerank.Options{AWS: awsauthtest.Builder, HTTP: &http.Client{Transport: answering(c.answer)}, Getenv: environment(map[string]string{"COHERE_API_KEY": "k", "JINA_API_KEY": "k", "AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"})}
		var r rerank.Ranker
		var err error
		switch s := c.step.(type) {
		case *spec.Reranker:
			r, err = rerank.New(s, opts)
		case *spec.BedrockReranker:
			r, err = rerank.NewBedrock(s, opts)
		}
		testkit.Must(t, err)
		_, usage, err := rerank.Rank(t.Context(), r, rerank.Request{Query: "q", Items: texts(strings.Split(strings.Repeat("x ", c.texts-1)+"x", " ")...), Limit: 1})
		testkit.Must(t, err)
		if m, charged := c.step.RankModel(); math.Abs(usage.Cost-c.want) > 1e-12 || !charged || (m.Prices != nil) != c.priced {
			t.Errorf("%s: %+v, %+v", name, usage, m)
		}
	}
	for name, s := range map[string]*spec.Reranker{"tei": {Method: "tei"}, "rrf": {Method: "rrf"}, "local": {Method: "jina", Args: map[string]any{"base_url": "http://localhost:8080"}}} {
		if m, charged := s.RankModel(); charged {
			t.Errorf("%s: %+v", name, m)
		}
	}
}
