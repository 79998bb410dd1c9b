package providers_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/qtype-dev/qtype/distribution/awssdk"
	"github.com/qtype-dev/qtype/distribution/model/providers"
	"github.com/qtype-dev/qtype/internal/model/provider"
	"github.com/qtype-dev/qtype/internal/servertest"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/model/modeltest"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
)

// typed is a body that the types of a package must accept.
type typed struct {
	servertest.TypedBody
	name  string
	wrong bool // whether they must reject it
}

// sdkTarget is a model whose requests have the types of a package.
type sdkTarget struct {
	name  string
	types string
	model spec.Model
	// embedding is an embedding model of the provider that aimock has too, embedded the name of its types; empty for none.
	embedding, embedded string
}

func sdkTargets() []sdkTarget {
	common := map[string]any{"temperature": 0.2, "max_tokens": 50, "top_p": 0.9, "stop": []any{"END"}}
	claude := map[string]any{"max_tokens": 50, "stop_sequences": []any{"END"}}
	return []sdkTarget{
		{"openai", "openai", spec.Model{Provider: "openai", ModelID: "gpt-5.4-mini", InferenceParams: common}, "text-embedding-3-small", "openai"},
		{"openai, Responses", "responses", spec.Model{Provider: "openai", ModelID: "gpt-6-sol", API: "responses", InferenceParams: map[string]any{"max_tokens": 50, "reasoning_effort": "low"}}, "", ""},
		{"azure-openai", "openai", spec.Model{Provider: "azure-openai", ModelID: "gpt-5.4-mini", InferenceParams: common}, "text-embedding-3-small", "openai"},
		{"azure-openai, dated", "openai", spec.Model{Provider: "azure-openai", ModelID: "gpt-5.4-mini", Deployment: "prod", APIVersion: "2024-10-21", InferenceParams: common}, "text-embedding-3-small", "openai"},
		{"azure-openai, Responses", "responses", spec.Model{Provider: "azure-openai", ModelID: "gpt-6-sol", API: "responses"}, "", ""},
		{"mistral", "mistral", spec.Model{Provider: "mistral", ModelID: "mistral-small-latest", InferenceParams: common}, "mistral-embed", "mistral"},
		{"anthropic", "anthropic", spec.Model{Provider: "anthropic", ModelID: "claude-sonnet-5-5", InferenceParams: claude}, "", ""},
		{"google-ai", "gemini", spec.Model{Provider: "google-ai", ModelID: "gemini-3.8-flash", InferenceParams: common}, "gemini-embedding-001", "openai"},
		{"gcp-vertex", "gemini", spec.Model{Provider: "gcp-vertex", ModelID: "gemini-3.8-flash", InferenceParams: common}, "", ""},
		{"gcp-vertex, Claude", "anthropic on Vertex AI", spec.Model{Provider: "gcp-vertex", ModelID: "claude-sonnet-5-5", InferenceParams: claude}, "", ""},
		{"ollama", "ollama", spec.Model{Provider: "ollama", ModelID: "llama3.2", ContextWindow: 8192, InferenceParams: common}, "nomic-embed-text", "openai"},
		{"aws-bedrock, Claude", "converse", spec.Model{Provider: "aws-bedrock", ModelID: "eu.anthropic.claude-sonnet-4-5-20250929-v1:0", InferenceParams: common}, "", ""},
		{"aws-bedrock, Nova", "converse", spec.Model{Provider: "aws-bedrock", ModelID: "amazon.nova-lite-v1:0", InferenceParams: map[string]any{"max_tokens": 50, "guardrail_identifier": "g-1", "guardrail_version": "1"}}, "", ""},
		{"aws-bedrock, ARN", "converse", spec.Model{Provider: "aws-bedrock", ModelID: "arn:aws:bedrock:eu-west-1:123456789012:inference-profile/eu.amazon.nova-lite-v1:0"}, "", ""},
	}
}

// sdkRequests are requests with all that a request may have.
func sdkRequests() map[string]model.Request {
	block := func(kind, mime string, data []byte) []chat.Message {
		return []chat.Message{{Role: chat.User, Blocks: []chat.Block{{Type: "text", Text: "What is it?"}, {Type: kind, Data: data, MimeType: mime}}}}
	}
	tools := []model.Tool{
		{Name: "weather", Description: "Returns the weather.", Parameters: json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"},"days":{"type":"array","items":{"type":"integer"}}},"required":["city"]}`)},
		{Name: "now"}}
	named := chat.Text(chat.User, "Köln?")
	named.Name = "ada"
	talk := []chat.Message{chat.Text(chat.System, "Be brief."), named, chat.Text(chat.Assistant, "Yes."), chat.Text(chat.User, "And now?")}
	calls := append(talk[:4:4], chat.Message{Role: chat.Assistant, Blocks: []chat.Block{{Type: "text", Text: "Let me see."}}}.With(chat.ToolCall{ID: "call_0001", Name: "weather", Arguments: `{"city":"Köln","days":[1]}`}, chat.ToolCall{ID: "call_0002", Name: "now", Arguments: "{}"}),
		chat.Message{Role: chat.Tool, Name: "weather", ToolCallID: "call_0001", Blocks: []chat.Block{{Type: "text", Text: "rain"}}},
		chat.Message{Role: chat.Tool, Name: "now", ToolCallID: "call_0002", Blocks: []chat.Block{{Type: "text", Text: "noon"}}})
	schema := &model.Schema{Name: "reply", JSON: []byte(`{"type":"object","properties":{"mood":{"type":"string"}},"required":["mood"],"additionalProperties":false}`)}
	return map[string]model.Request{
		"conversation": {Messages: talk},
		"tools":        {Messages: calls, Tools: tools},
		"tool images":  {Messages: modeltest.ToolImages(), Tools: []model.Tool{{Name: "plot"}, {Name: "now"}}},
		"image":        {Messages: block("image", "image/png", []byte(modeltest.PNG))},
		"sound":        {Messages: block("audio", "audio/wav", []byte("RIFF....WAVEfmt "))},
		"PDF":          {Messages: block("file", "application/pdf", []byte("%PDF-1.7"))},
		"text file":    {Messages: block("file", "text/plain", []byte("a, b"))},
		"schema":       {Messages: talk, Schema: schema},
		"schema, JSON": {Messages: talk, Schema: &model.Schema{Name: schema.Name, JSON: schema.JSON, Form: model.SchemaJSON}},
	}
}

// packages are the names of the packages with these types.
func packages() map[string]string {
	return map[string]string{"openai": "`openai`", "responses": "`openai`", "anthropic": "`anthropic`", "anthropic on Vertex AI": "`anthropic`",
		"gemini": "`google-genai`", "mistral": "`mistralai`", "ollama": "`ollama`", "converse": "`botocore`"}
}

// at returns the model of a target, or another one of its provider, at a server.
func at(target sdkTarget, modelID, url string) spec.Model {
	m := target.model
	m.ID, m.ModelID, m.BaseURL, m.Retry = "m", modelID, url, &spec.RetryPolicy{MaxAttempts: 1}
	if m.Provider == "openai" || m.Provider == "mistral" {
		m.BaseURL += "/v1"
	}
	if modelID != target.model.ModelID {
		m.InferenceParams, m.API, m.ContextWindow, m.Deployment = nil, "", 0, ""
	}
	m.Auth = spec.Ref[spec.Auth]{ID: "b", To: &spec.BearerTokenAuth{AuthBase: spec.AuthBase{ID: "b"}, Token: spec.NewSecret("token")}}
	return m
}

// cloudEnv has the region and the project of clouds.
func cloudEnv() provider.Options {
	return provider.Options{Clients: providers.Clients(), AWS: awssdk.Builder, Getenv: env("AWS_REGION", "us-east-1", "GOOGLE_CLOUD_PROJECT", "shop")}
}

// captureEmbedding returns the request of a target's embedding model.
func captureEmbedding(t *testing.T, target sdkTarget) []typed {
	t.Helper()
	if target.embedded == "" {
		return nil
	}
	s := modeltest.Serve(t, modeltest.Respond(400, "application/json", `{}`))
	e, err := provider.NewEmbedder(&spec.EmbeddingModel{Model: at(target, target.embedding, s.URL), Dimensions: 256}, cloudEnv())
	testkit.Must(t, err)
	if _, _, err := e.Embed(t.Context(), []string{"tea", "salt"}); err == nil {
		t.Errorf("%s: a rejection is no error", target.name)
	}
	r := s.Requests()[0]
	return []typed{{TypedBody: servertest.TypedBody{Types: target.embedded, Kind: "embeddings", Path: r.Path, Body: json.RawMessage(modeltest.JSON(r.Body))}, name: target.name + ", embeddings"}}
}

// capture returns the requests that a model sends for request, streamed or not: none if its client rejects it.
func capture(t *testing.T, target sdkTarget, name string, request model.Request) (list []typed) {
	t.Helper()
	for _, stream := range []bool{false, true} {
		s := modeltest.Serve(t, modeltest.Respond(400, "application/json", `{}`))
		m := at(target, target.model.ModelID, s.URL)
		c, err := provider.New(&m, cloudEnv())
		testkit.Must(t, err)
		request.Stream = stream
		_, err = model.Call(t.Context(), c, request, nil)
		if err == nil {
			t.Errorf("%s: a rejection is no error", target.name)
		}
		for _, r := range s.Requests() {
			kind := "request"
			if stream && target.types == "converse" {
				kind = "stream"
			}
			list = append(list, typed{TypedBody: servertest.TypedBody{Types: target.types, Kind: kind, Path: r.Path, Body: json.RawMessage(modeltest.JSON(r.Body))},
				name: fmt.Sprintf("%s, %s, stream=%v", target.name, name, stream)})
		}
	}
	return list
}

// checkTypes fails the test for each body that the types of a package do not accept, and for
// each wrong one that they accept.
func checkTypes(t *testing.T, list []typed) {
	t.Helper()
	bodies := make([]servertest.TypedBody, len(list))
	for i, c := range list {
		bodies[i] = c.TypedBody
	}
	for i, errs := range servertest.SDKErrors(t, bodies) {
		if list[i].wrong != (len(errs) > 0) {
			t.Errorf("%s: the types reject %q\n%s", list[i].name, errs, list[i].Body)
		}
	}
}

// TestSDKTypes: what clients send is what the official packages of the providers define, without other keys,
// and so are the responses of TestDocs_Features.
func TestSDKTypes(t *testing.T) {
	var cases []typed
	for _, target := range sdkTargets() {
		before := len(cases)
		for name, request := range sdkRequests() {
			cases = append(cases, capture(t, target, name, request)...)
		}
		cases = append(cases, captureEmbedding(t, target)...)
		t.Logf("%s: %d requests", target.name, len(cases)-before)
		cases = append(cases, withUnknown(t, cases[before])...)
		f := formatOf(spec.Provider{Name: target.model.Provider})
		for _, end := range f.ends {
			if target.name == target.model.Provider || target.types == "converse" { // the others have the same responses
				cases = append(cases, typed{TypedBody: servertest.TypedBody{Types: target.types, Kind: "response", Body: json.RawMessage(fmt.Sprintf(f.answer, end))}, name: target.name + ", response"})
			}
		}
	}
	checkTypes(t, cases)
}

// withUnknown returns a request with keys that no type has: one of the request itself and one of a message.
func withUnknown(t *testing.T, c typed) []typed {
	t.Helper()
	var body, nested map[string]any
	testkit.Must(t, json.Unmarshal(c.Body, &body))
	testkit.Must(t, json.Unmarshal(c.Body, &nested))
	body["surprise"] = 1
	list := "messages"
	for _, name := range []string{"input", "contents"} {
		if nested[name] != nil {
			list = name
		}
	}
	nested[list].([]any)[0].(map[string]any)["surprise"] = 1
	c.name, c.wrong = c.name+", with an unknown key", true
	other := c
	c.Body, other.Body = json.RawMessage(modeltest.JSON(body)), json.RawMessage(modeltest.JSON(nested))
	return []typed{c, other}
}
