package telemetry_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/qtype-dev/qtype/internal/runtimetest"
	"github.com/qtype-dev/qtype/internal/telemetry"
	encode "github.com/qtype-dev/qtype/internal/telemetry/otlp"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec/value"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// with returns the context of a program that sends traces.
func with(t testing.TB) context.Context {
	return telemetry.WithParts(t.Context(), telemetry.Parts{OTLP: encode.Encode})
}

// assistant is an application with an agent, a tool that is a flow, a memory, a
// fallback and prices.
const assistant = `
id: assistant
models:
  - {type: Model, id: broken, provider: mock, rules: [{error: "out of order", status: 503}], fallbacks: [spare]}
  - type: Model
    id: spare
    provider: mock
    model_id: small
    inference_params: {temperature: 0.5, extra_key: geheim}
    prices: {input: 1000, output: 2000}
    rules: [{after: tool, text: "It is sunny."}, {match: fail, error: "no answer"}, {tool_calls: [{name: weather, arguments: {city: Bonn}}]}]
memories: [{id: notes, token_limit: 1000}]
tools: [{type: FlowTool, id: weather_tool, name: weather, description: The weather, flow: forecast}]
flows:
  - id: talk
    variables: [{id: question, type: text}, {id: answer, type: text}]
    inputs: [question]
    outputs: [answer]
    steps:
      - {type: Agent, id: respond, model: broken, memory: notes, tools: [weather_tool], system_message: Be kind., inputs: [question], outputs: [answer]}
  - id: forecast
    variables: [{id: city, type: text}, {id: report, type: text}]
    inputs: [city]
    outputs: [report]
    steps:
      - {type: PromptTemplate, id: write_report, template: "Sun in {city}", inputs: [city], outputs: [report]}
  - id: vectors
    variables: [{id: text, type: text}, {id: vector, type: Embedding}]
    inputs: [text]
    outputs: [vector]
    steps:
      - {type: InvokeEmbedding, id: embed, model: embedder, inputs: [text], outputs: [vector]}
`

// withEmbedder adds the embedding model of the flow vectors.
func withEmbedder(document string) string {
	return strings.Replace(document, "models:\n", "models:\n  - {type: EmbeddingModel, id: embedder, provider: mock, model_id: vec, dimensions: 8}\n", 1)
}

// open opens a document with memories in RAM.
func open(t testing.TB, document string) *runtime.App {
	t.Helper()
	path := testkit.WriteFile(t, "app.qtype.yaml", document)
	app, err := runtimetest.Open(t.Context(), path, runtime.Options{})
	if err != nil {
		t.Fatalf("%v\n%s", err, document)
	}
	t.Cleanup(func() { testkit.Must(t, app.Close(context.Background())) })
	return app
}

// run runs a flow on rows with one value of an input and returns the results.
func run(ctx context.Context, t testing.TB, app *runtime.App, flow, input string, values ...string) []*runtime.Result {
	t.Helper()
	var rows []runtime.Input
	for _, v := range values {
		rows = append(rows, runtime.Input{Values: map[string]any{input: v}, Session: "s1"})
	}
	var results []*runtime.Result
	for r, err := range app.Run(ctx, flow, slices.Values(rows)) {
		testkit.Must(t, err)
		results = append(results, r)
	}
	return results
}

// text returns an output of a result as text.
func text(r *runtime.Result, id string) string {
	v, _ := r.Get(id)
	return value.Text(v)
}

// newServer starts a server for the test.
func newServer(t testing.TB, h http.HandlerFunc) *httptest.Server {
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

func lines(all []string) string { return strings.Join(all, "\n") }
