package testrun_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/testkit"
)

const recordedSecret = "sk-secret-0123456789"

// services is a server with a chat model, an embedding model, an HTTP API and MCP tools. It
// counts its requests.
func services(t *testing.T) (url string, calls *atomic.Int64) {
	t.Helper()
	calls = &atomic.Int64{}
	server := sdk.NewServer(&sdk.Implementation{Name: "orders", Version: "1"}, nil)
	sdk.AddTool(server, &sdk.Tool{Name: "price", Description: "The price of an item"}, func(_ context.Context, _ *sdk.CallToolRequest, in struct {
		Item string `json:"item"`
	}) (*sdk.CallToolResult, map[string]any, error) {
		return nil, map[string]any{"item": in.Item, "price": 12.5}, nil
	})
	tools := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, nil)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/mcp":
			tools.ServeHTTP(w, r)
		case "/v1/chat/completions":
			_, _ = fmt.Fprintf(w, `{"choices":[{"message":{"content":"Hello to you, %s."},"finish_reason":"stop"}],"usage":{"prompt_tokens":7,"completion_tokens":3}}`, lastMessage(r))
		case "/v1/embeddings":
			_, _ = fmt.Fprint(w, `{"data":[{"index":0,"embedding":[0.5,-1,0.25,2]}],"usage":{"prompt_tokens":2}}`)
		default:
			w.Header().Set("Set-Cookie", "session="+recordedSecret)
			_, _ = fmt.Fprintf(w, `{"status": "sent", "key": %q, "total": 1.50}`, r.Header.Get("X-Api-Key"))
		}
	}))
	t.Cleanup(s.Close)
	return s.URL, calls
}

func lastMessage(r *http.Request) string {
	var body struct {
		Messages []struct{ Content string }
	}
	_ = json.NewDecoder(r.Body).Decode(&body)
	return body.Messages[len(body.Messages)-1].Content
}

const recordedApplication = `id: app
auths: [{type: api_key, id: token, api_key: '${RECORDED_KEY}'}]
models:
  - {type: Model, id: writer, provider: openai, model_id: gpt-6-luna, base_url: URL/v1, auth: token, inference_params: {temperature: 0}, offline: practice}
  - {type: Model, id: lonely, provider: openai, model_id: gpt-6-luna, offline: practice}
  - {type: Model, id: practice, provider: mock, rules: [{echo: true}]}
  - {type: EmbeddingModel, id: vectors, provider: openai, model_id: text-embedding-3-small, dimensions: 4, base_url: URL/v1, auth: token}
tools:
  - {type: APITool, id: find_order, name: find_order, description: Finds an order, endpoint: 'URL/orders/{number}', auth: token, allow_private: true,
     inputs: [{id: number, type: int}], outputs: [{id: status, type: text}, {id: total, type: float}, {id: key, type: text}]}
  - {type: MCPTool, id: shop, url: URL/mcp, allow_private: true, tools: [price]}
flows:
  - id: talk
    variables: [{id: question, type: text}, {id: answer, type: text}]
    inputs: [question]
    outputs: [answer]
    steps: [{type: LLMInference, id: reply, model: writer, system_message: "Be kind.\nBe short.", inputs: [question], outputs: [answer]}]
  - id: alone
    variables: [{id: question, type: text}, {id: answer, type: text}]
    inputs: [question]
    outputs: [answer]
    steps: [{type: LLMInference, id: try, model: lonely, inputs: [question], outputs: [answer]}]
  - id: order
    variables: [{id: number, type: int}, {id: status, type: text}, {id: total, type: float}, {id: key, type: text}]
    inputs: [number]
    outputs: [status, total]
    steps: [{type: InvokeTool, id: look, tool: find_order, input_bindings: {number: number}, output_bindings: {status: status, total: total, key: key}}]
  - id: embed
    variables: [{id: text, type: text}, {id: vector, type: Embedding}]
    inputs: [text]
    outputs: [vector]
    steps: [{type: InvokeEmbedding, id: v, model: vectors, inputs: [text], outputs: [vector]}]
  - id: cost
    variables: [{id: item, type: text}, {id: price, type: float}]
    inputs: [item]
    outputs: [price]
    steps: [{type: InvokeTool, id: ask, tool: shop, input_bindings: {item: item}, output_bindings: {price: price}}]
`

const recordedTests = `recordings: rec/app.recordings.json
tests:
  - name: It talks
    flow: talk
    turns:
      - {input: Ada, expect: ['answer == "Hello to you, Ada."'], sent: [{id: writer, calls: 1, contains: [Be kind.]}]}
      - {input: Bob, expect: ['answer == "Hello to you, Bob."']}
  - name: It looks up
    flow: order
    turns:
      - {input: 7, expect: [status == "sent", total == 1.5]}
      - {flow: embed, input: word}
      - {flow: cost, input: pen, expect: [price == 12.5]}
`

// recordedFolder writes the application and its tests.
func recordedFolder(t *testing.T, url, tests string) string {
	t.Helper()
	folder := t.TempDir()
	testkit.Must(t, os.WriteFile(filepath.Join(folder, "app.qtype.yaml"), []byte(strings.ReplaceAll(recordedApplication, "URL", url)), 0o600))
	testkit.Must(t, os.WriteFile(filepath.Join(folder, "app.qtype-test.yaml"), []byte(tests), 0o600))
	return folder
}

// runRecorded runs the tests of a folder and returns the messages of its diagnostics and
// what differs from the recordings.
func runRecorded(t *testing.T, folder string, o qtype.TestOptions) (messages []string, details string) {
	t.Helper()
	reports, err := qtype.Test(t.Context(), []string{folder}, o)
	testkit.Must(t, err)
	for _, r := range reports {
		messages = append(messages, messagesOf(r.Diagnostics)...)
		for _, o := range r.Outcomes {
			messages = append(messages, messagesOf(o.Diagnostics)...)
			details += o.Details
		}
	}
	return messages, details
}

func TestRecordings(t *testing.T) {
	url, calls := services(t)
	folder := recordedFolder(t, url, recordedTests)
	t.Setenv("RECORDED_KEY", recordedSecret)
	if got, _ := runRecorded(t, folder, qtype.TestOptions{Record: qtype.TestRecord}); len(got) > 0 {
		t.Fatal(got)
	}
	path := filepath.Join(folder, "rec", "app.recordings.json")
	first := testkit.ReadFile(t, path)
	if strings.Contains(first, recordedSecret) {
		t.Errorf("the recordings contain the secret:\n%s", first)
	}
	runRecorded(t, folder, qtype.TestOptions{Record: qtype.TestRecord})
	if again := testkit.ReadFile(t, path); again != first {
		t.Errorf("the second recording differs:\n%s\n%s", first, again)
	}

	// A replay needs neither the key nor the server.
	testkit.Must(t, os.Unsetenv("RECORDED_KEY"))
	before := calls.Load()
	if got, _ := runRecorded(t, folder, qtype.TestOptions{}); len(got) > 0 {
		t.Error(got)
	}
	if n := calls.Load() - before; n > 0 {
		t.Errorf("a replay made %d requests", n)
	}
}

func TestRecordings_Changes(t *testing.T) {
	url, calls := services(t)
	folder := recordedFolder(t, url, recordedTests)
	t.Setenv("RECORDED_KEY", recordedSecret)
	runRecorded(t, folder, qtype.TestOptions{Record: qtype.TestRecord})
	app := filepath.Join(folder, "app.qtype.yaml")
	document := testkit.ReadFile(t, app)
	for name, c := range map[string]struct{ old, new, message, details string }{
		"prompt":    {`Be short.`, `Be brief.`, "QT805 the request to model writer differs from its recording", "-          Be short.\n+          Be brief."},
		"parameter": {`temperature: 0`, `temperature: 1`, "QT805 the request to model writer differs from its recording", "-  temperature: 0\n+  temperature: 1"},
		"address":   {`/orders/{number}`, `/parcels/{number}`, "QT805 the request to " + strings.TrimPrefix(url, "http://") + " differs from its recording", "/orders/7\n+url: " + url + "/parcels/7"},
		"vector":    {`dimensions: 4`, `dimensions: 3`, "QT805 the text for embedding model vectors differs from its recording", "-dimensions: 4\n+dimensions: 3"},
	} {
		testkit.Must(t, os.WriteFile(app, []byte(strings.Replace(document, c.old, c.new, 1)), 0o600))
		before := calls.Load()
		got, details := runRecorded(t, folder, qtype.TestOptions{})
		if len(got) != 1 || got[0] != c.message || !strings.Contains(details, c.details) {
			t.Errorf("%s: got %q\n%s", name, got, details)
		}
		if n := calls.Load() - before; n > 0 {
			t.Errorf("%s: %d requests were made", name, n)
		}
	}
	testkit.Must(t, os.WriteFile(app, []byte(document), 0o600))

	// A new turn is recorded alone; turns that were removed leave stale recordings.
	tests := filepath.Join(folder, "app.qtype-test.yaml")
	testkit.Must(t, os.WriteFile(tests, []byte(strings.Replace(recordedTests, "input: Bob, expect: ['answer == \"Hello to you, Bob.\"']", "input: Cleo", 1)), 0o600))
	got, details := runRecorded(t, folder, qtype.TestOptions{})
	if len(got) != 1 || !strings.Contains(details, "Bob\n") || !strings.Contains(details, "Cleo") {
		t.Errorf("got %q\n%s", got, details)
	}
	before := calls.Load()
	if got, _ := runRecorded(t, folder, qtype.TestOptions{Record: qtype.TestRecordMissing}); len(got) != 1 || got[0] != "QT806 1 recording is not used by any test" {
		t.Errorf("got %q", got)
	}
	if n := calls.Load() - before; n != 1 {
		t.Errorf("%d requests were made, want 1", n)
	}
	if got, _ := runRecorded(t, folder, qtype.TestOptions{Prune: true}); len(got) != 0 {
		t.Errorf("got %q", got)
	}
	if got, _ := runRecorded(t, folder, qtype.TestOptions{}); len(got) != 0 {
		t.Errorf("got %q", got)
	}
}

func TestRecordings_Errors(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "")
	url, _ := services(t)
	for name, c := range map[string]struct {
		tests, file, want string
		record            bool
	}{
		"outside":      {tests: "recordings: ../x.json", want: "QT802 recordings must be a file in the folder of this file, or below it, such as app.recordings.json"},
		"other format": {tests: "recordings: x.yaml", want: "QT802 recordings must be a JSON file, such as app.recordings.json"},
		"not recorded": {tests: "recordings: x.json", want: "QT805 the request to model writer is not recorded"},
		"broken":       {tests: "recordings: x.json", file: "{\n  \"version\": 1,\n  \"tests\": 5}", want: "x.json:3: not a file of recordings"},
		"old version":  {tests: "recordings: x.json", file: `{"version": 9, "tests": []}`, want: "the recordings have version 9, not 1: record them again"},
		"no request":   {tests: "recordings: x.json", file: `{"version": 1, "tests": [{"name": "t", "calls": [{"kind": "chat"}]}]}`, want: `call 1 of test "t" has no request or no response`},
		"no key":       {tests: "recordings: x.json", want: "model lonely has no credentials, which a recording needs", record: true},
	} {
		flow := map[bool]string{true: "alone", false: "talk"}[c.record]
		folder := recordedFolder(t, url, c.tests+"\ntests: [{name: t, flow: "+flow+", turns: [{input: Ada}]}]\n")
		if c.file != "" {
			testkit.Must(t, os.WriteFile(filepath.Join(folder, "x.json"), []byte(c.file), 0o600))
		}
		o := qtype.TestOptions{}
		if c.record {
			o.Record = qtype.TestRecord
		}
		if got, _ := runRecorded(t, folder, o); len(got) != 1 || !strings.Contains(got[0], c.want) {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}
