package provider_test

import (
	"bytes"
	"encoding/json"
	"io"
	"math"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/qtype-dev/qtype/internal/awsauth/awsauthtest"
	"github.com/qtype-dev/qtype/internal/catalogue"
	"github.com/qtype-dev/qtype/internal/model/provider"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
)

// usageRow is a line of testdata/usages.jsonl, which testdata/usages.py writes: the answer of a provider, and
// what its price list says that it cost.
type usageRow struct {
	Provider string          `json:"provider"`
	Model    string          `json:"model"`
	Kind     string          `json:"kind"`
	API      string          `json:"api"`
	BaseURL  string          `json:"base_url"`
	Region   string          `json:"region"` // of Vertex AI
	On       time.Time       `json:"on"`     // when the answer ended
	Body     json.RawMessage `json:"body"`
	Dollars  string          `json:"dollars"`
}

// TestUsages compares the costs of answers, as the clients read them, with exact sums by the price lists.
func TestUsages(t *testing.T) {
	text, err := os.ReadFile("testdata/usages.jsonl")
	testkit.Must(t, err)
	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	if len(lines) < 200 {
		t.Errorf("%d usages, want 200", len(lines))
	}
	for number, line := range lines {
		var row usageRow
		testkit.Must(t, json.Unmarshal(line, &row))
		want, err := strconv.ParseFloat(row.Dollars, 64)
		testkit.Must(t, err)
		usage, prices := row.read(t)
		if prices == nil {
			t.Errorf("line %d: %s/%s has no prices", number+1, row.Provider, row.Model)
			continue
		}
		if got := usage.Charge(prices, row.On); math.Abs(got-want) > 1e-9 {
			t.Errorf("line %d: %s/%s costs %g, want %s\n%s\n%+v", number+1, row.Provider, row.Model, got, row.Dollars, row.Body, usage)
		}
		if usage.Cost == 0 && want != 0 {
			t.Errorf("line %d: no cost in the usage", number+1)
		}
	}
}

// read calls a model whose server answers with the row.
func (row *usageRow) read(t *testing.T) (model.Usage, *catalogue.Prices) {
	t.Helper()
	m := spec.Model{ID: "m", Provider: row.Provider, ModelID: row.Model, API: row.API, BaseURL: row.BaseURL, Retry: &spec.RetryPolicy{MaxAttempts: 1},
		InferenceParams: map[string]any{"max_tokens": 100},
		Auth:            spec.Ref[spec.Auth]{ID: "b", To: &spec.BearerTokenAuth{AuthBase: spec.AuthBase{ID: "b"}, Token: spec.NewSecret("token")}}}
	if row.Provider == "azure-openai" {
		m.Deployment = "prod"
	}
	client := &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(row.Body)), Request: r}, nil
	})}
	opts := provider.Options{Clients: clients(), AWS: awsauthtest.Builder, HTTP: client, Getenv: env("AWS_REGION", "us-east-1", "GOOGLE_CLOUD_PROJECT", "shop", "GOOGLE_CLOUD_LOCATION", row.Region,
		"AZURE_OPENAI_ENDPOINT", "https://shop.openai.azure.com")}
	if row.Kind == "embedding" {
		e, err := provider.NewEmbedder(&spec.EmbeddingModel{Model: m}, opts)
		testkit.Must(t, err)
		_, usage, err := e.Embed(t.Context(), []string{"x"})
		testkit.Must(t, err)
		return usage, m.CallPrices()
	}
	c, err := provider.New(&m, opts)
	testkit.Must(t, err)
	response, err := model.Call(t.Context(), c, model.Request{Messages: []chat.Message{chat.Text(chat.User, "Is it?")}}, nil)
	testkit.Must(t, err)
	if answer := strings.TrimSpace(response.Message.Text()); answer != "Yes." {
		t.Errorf("%s answers %q", row.Model, answer)
	}
	return response.Usage, m.CallPrices()
}
