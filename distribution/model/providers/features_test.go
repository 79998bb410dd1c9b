package providers_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/distribution/awssdk"
	"github.com/qtype-dev/qtype/distribution/model/providers"
	"github.com/qtype-dev/qtype/internal/model/provider"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/model/modeltest"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
)

// format is the encoding of responses of one protocol.
type format struct {
	answer string            // %s is the reason for the end; 7 tokens were read from a cache if the protocol reports them
	ends   map[string]string // the protocol's words for stop, length and content_filter; empty for none
	long   string            // the error for a prompt that exceeds the context window
}

// formats has the protocols of providers that are called over HTTP.
func formats() map[string]format {
	openai := format{
		`{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"finish_reason":"%s","message":{"role":"assistant","content":"Yes."}}],"usage":{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11,"prompt_tokens_details":{"cached_tokens":7}}}`,
		map[string]string{"stop": "stop", "length": "length", "content_filter": "content_filter"},
		`{"error":{"message":"This model's maximum context length is 10 tokens. However, your messages resulted in 90 tokens.","code":"context_length_exceeded"}}`,
	}
	gemini := format{
		`{"candidates":[{"index":0,"finishReason":"%s","content":{"role":"model","parts":[{"text":"Yes."}]}}],"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":2,"cachedContentTokenCount":7}}`,
		map[string]string{"stop": "STOP", "length": "MAX_TOKENS", "content_filter": "SAFETY"},
		`{"error":{"code":400,"status":"INVALID_ARGUMENT","message":"The input token count (90) exceeds the maximum number of tokens allowed (10)."}}`,
	}
	ollama := format{
		`{"model":"m","message":{"role":"assistant","content":"Yes."},"done":true,"done_reason":"%s","prompt_eval_count":9,"eval_count":2}`,
		map[string]string{"stop": "stop", "length": "length"}, `{"error":"the input length exceeds the context length"}`,
	}
	mistral := openai
	mistral.long = `{"object":"error","message":"Prompt contains 90 tokens, too large for model with 10 maximum context length","code":"3051"}`
	return map[string]format{
		"openai": openai, "azure-openai": openai, "mistral": mistral, "google-ai": gemini, "gcp-vertex": gemini, "ollama": ollama,
		"langchaingo:mistral": mistral, "langchaingo:ollama": ollama,
		"langchaingo:huggingface": {`[{"generated_text":"Yes.%.0s"}]`, map[string]string{"stop": "stop"}, `{"error":"Input validation error: inputs must have less than 10 tokens. Given: 90"}`},
		"anthropic": {
			`{"id":"a","model":"m","type":"message","role":"assistant","stop_reason":"%s","content":[{"type":"text","text":"Yes."}],"usage":{"input_tokens":2,"cache_read_input_tokens":7,"output_tokens":2}}`,
			map[string]string{"stop": "end_turn", "length": "max_tokens", "content_filter": "refusal"},
			`{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 90 tokens > 10 maximum"}}`,
		},
		"aws-bedrock": {
			`{"output":{"message":{"role":"assistant","content":[{"text":"Yes."}]}},"stopReason":"%s","usage":{"inputTokens":2,"cacheReadInputTokens":7,"outputTokens":2,"totalTokens":11},"metrics":{"latencyMs":1}}`,
			map[string]string{"stop": "end_turn", "length": "max_tokens", "content_filter": "guardrail_intervened"},
			`{"message":"The model returned the following errors: prompt is too long: 90 tokens > 10 maximum"}`,
		},
	}
}

// probe calls a provider's client with a response and returns what was sent, as text.
type probe func(t *testing.T, request model.Request, end string, headers ...string) (sent string, response *model.Response, err error)

// newProbe returns the probe of a provider with a form of structured output.
func newProbe(p spec.Provider, form string) probe {
	f := formatOf(p)
	return func(t *testing.T, request model.Request, end string, headers ...string) (string, *model.Response, error) {
		t.Helper()
		status, body := 400, f.long
		if end != "too long" {
			status, body = 200, fmt.Sprintf(f.answer, f.ends[end])
		}
		s := modeltest.Serve(t, modeltest.Respond(status, "application/json", body, headers...))
		m := spec.Model{ID: "m", Provider: p.Name, ModelID: "anthropic.claude-opus-4-8", BaseURL: s.URL, Retry: &spec.RetryPolicy{MaxAttempts: 1}, StructuredOutput: form,
			Auth: spec.Ref[spec.Auth]{ID: "b", To: &spec.BearerTokenAuth{AuthBase: spec.AuthBase{ID: "b"}, Token: spec.NewSecret("token")}}}
		if p.Name == "gcp-vertex" {
			m.ModelID = "gemini-3.8-flash"
		}
		c, err := provider.New(&m, provider.Options{Clients: providers.Clients(), AWS: awssdk.Builder, Getenv: env("AWS_REGION", "us-east-1", "GOOGLE_CLOUD_PROJECT", "shop"), HTTP: s.Client()})
		if err != nil {
			t.Fatal(err)
		}
		if request.Messages == nil {
			request.Messages = []chat.Message{chat.Text(chat.System, "Be brief."), chat.Text(chat.User, "Is it?")}
		}
		response, err := model.Call(t.Context(), c, request, nil)
		if s.Calls() == 0 {
			return "", nil, err
		}
		return s.Requests()[0].Path + modeltest.JSON(s.Requests()[0].Body), response, err
	}
}

// feature is a column of the table of features.
type feature struct {
	name string
	has  func(t *testing.T, p spec.Provider, call probe) bool
}

// features are the columns. Each cell is the result of calls.
func features() []feature {
	image := base64.StdEncoding.EncodeToString([]byte(modeltest.PNG))
	sends := func(request model.Request, texts ...string) func(*testing.T, spec.Provider, probe) bool {
		return func(t *testing.T, _ spec.Provider, call probe) bool {
			sent, _, _ := call(t, request, "stop")
			return slices.ContainsFunc(texts, func(s string) bool { return strings.Contains(sent, s) })
		}
	}
	fails := func(end string) func(*testing.T, spec.Provider, probe) bool {
		return func(t *testing.T, p spec.Provider, call probe) bool {
			if formatOf(p).ends[end] == "" {
				return false
			}
			_, _, err := call(t, model.Request{}, end)
			return err != nil
		}
	}
	picture := []chat.Message{{Role: chat.User, Blocks: []chat.Block{{Type: "text", Text: "What is it?"}, {Type: "image", Data: []byte(modeltest.PNG), MimeType: "image/png"}}}}
	schema := model.Request{Schema: &model.Schema{Name: "reply", JSON: []byte(`{"type":"object","properties":{"mood":{"type":"string"}},"required":["mood"],"additionalProperties":false}`)}}
	return []feature{
		{"Streaming", sends(model.Request{Stream: true}, `"stream":true`, "stream{", "streamGenerateContent")},
		{"Tools", sends(model.Request{Tools: []model.Tool{{Name: "look_up", Description: "finds", Parameters: []byte(`{"type":"object","properties":{}}`)}}}, "look_up")},
		{"JSON schema", sends(schema, `"mood"`, `\"mood\"`)},
		{"JSON object", func(t *testing.T, p spec.Provider, _ probe) bool {
			sends := sends(schema, `"json_object"`, `"responseMimeType":"application/json"`, `"format":"json"`)
			return slices.Contains(p.Forms, "json_object") && sends(t, p, newProbe(p, "json_object"))
		}},
		{"Images", sends(model.Request{Messages: picture}, image)},
		{"Images of tools", sends(model.Request{Messages: modeltest.ToolImages()}, image)},
		{"Cache markers", sends(model.Request{}, "cache_control", "cachePoint")},
		{"Cached tokens", func(t *testing.T, _ spec.Provider, call probe) bool {
			_, r, err := call(t, model.Request{}, "stop")
			return err == nil && r.Usage.Cached == 7 && r.Usage.Input == 9
		}},
		{"Token limit is an error", fails("length")},
		{"Content filter is an error", fails("content_filter")},
		{"Window exceeded", func(t *testing.T, _ spec.Provider, call probe) bool {
			_, _, err := call(t, model.Request{}, "too long")
			var failure *model.Error
			return errors.As(err, &failure) && failure.TooLong
		}},
		{"Reset headers", func(t *testing.T, _ spec.Provider, call probe) bool {
			_, r, err := call(t, model.Request{}, "stop", "X-Ratelimit-Remaining-Requests", "0", "X-Ratelimit-Reset-Requests", "7s")
			return err == nil && r.NextAfter > 0
		}},
		{"Embeddings", func(_ *testing.T, p spec.Provider, _ probe) bool { return p.Embeddings }},
	}
}

// formatOf returns the protocol of a provider: OpenAI's if formats does not have it.
func formatOf(p spec.Provider) format {
	if f, ok := formats()[p.Name]; ok {
		return f
	}
	return formats()["openai"]
}

// TestDocs_Features calls every provider and compares the table of docs/models.md with what it
// did; -update rewrites it. The declarations of a row agree with the calls.
func TestDocs_Features(t *testing.T) {
	var b strings.Builder
	b.WriteString("| `provider` |")
	for _, f := range features() {
		b.WriteString(" " + f.name + " |")
	}
	b.WriteString("\n|" + strings.Repeat(" --- |", len(features())+1) + "\n")
	for _, p := range spec.Providers() {
		if p.Client != spec.NativeClient && p.Client != spec.BridgeClient {
			continue
		}
		call := newProbe(p, "")
		if _, r, err := call(t, model.Request{}, "stop"); err != nil || r.Message.Text() != "Yes." {
			t.Errorf("%s: %v", p.Name, err)
			continue
		}
		fmt.Fprintf(&b, "| `%s` |", p.Name)
		declared := map[string]bool{"Tools": p.Tools, "JSON schema": slices.Contains(p.Forms, "schema"), "JSON object": slices.Contains(p.Forms, "json_object")}
		for _, f := range features() {
			has := f.has(t, p, call)
			if want, ok := declared[f.name]; ok && want != has {
				t.Errorf("%s: %s is %v in the row, %v in calls", p.Name, f.name, want, has)
			}
			b.WriteString(map[bool]string{true: " passed |", false: " – |"}[has])
		}
		b.WriteString("\n")
	}
	if !t.Failed() {
		compareTable(t, "features", b.String())
	}
}
