package telemetry_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/qtype-dev/qtype/internal/telemetry/metrics"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/steps"
)

// scrape returns what /metrics answers. It checks it as `promtool check metrics` does:
// with the official parser and linter.
func scrape(t testing.TB, m *metrics.Metrics) string {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	text, err := io.ReadAll(w.Result().Body)
	testkit.Must(t, err)
	parser := expfmt.NewTextParser(model.LegacyValidation)
	if _, err := parser.TextToMetricFamilies(strings.NewReader(string(text))); err != nil {
		t.Errorf("the parser of Prometheus: %v", err)
	}
	problems, err := promlint.New(strings.NewReader(string(text))).Lint()
	if err != nil || len(problems) > 0 {
		t.Errorf("promlint: %v, %v", problems, err)
	}
	return string(text)
}

// expectSamples checks lines of a scrape.
func expectSamples(t *testing.T, text string, want ...string) {
	t.Helper()
	all := strings.Split(text, "\n")
	for _, line := range want {
		if !slices.Contains(all, line) {
			name, _, _ := strings.Cut(line, "{")
			similar := slices.DeleteFunc(slices.Clone(all), func(s string) bool { return !strings.HasPrefix(s, name+"{") })
			t.Errorf("there is no line %s; there are\n%s", line, lines(similar))
		}
	}
}

func TestMetrics_Runs(t *testing.T) {
	app, m := open(t, withEmbedder(assistant)), metrics.New(true)
	ctx := steps.WithObserver(t.Context(), m)
	run(ctx, t, app, "talk", "question", "Weather?", "fail")
	run(ctx, t, app, "vectors", "text", "words")
	m.Request("POST /flows/{id}", "POST", 200, 20*time.Millisecond)
	m.Request("POST /flows/{id}", "BREW", 999, time.Millisecond)
	text := scrape(t, m)
	expectSamples(t, text,
		`qtype_runs_total{flow="talk",status="ok"} 1`,
		`qtype_runs_total{flow="forecast",status="ok"} 1`,
		`qtype_active_runs{flow="talk"} 0`,
		`qtype_rows_total{flow="talk",status="ok"} 1`,
		`qtype_rows_total{flow="talk",status="failed"} 1`,
		`qtype_step_rows_total{flow="talk",status="failed",step="respond"} 1`,
		`qtype_step_rows_total{flow="forecast",status="ok",step="write_report"} 1`,
		`qtype_model_calls_total{flow="talk",model="spare",status="ok",step="respond"} 2`,
		`qtype_model_calls_total{flow="talk",model="spare",status="failed",step="respond"} 1`,
		`qtype_model_calls_total{flow="talk",model="broken",status="failed",step="respond"} 3`,
		`qtype_model_calls_total{flow="vectors",model="embedder",status="ok",step="embed"} 1`,
		`qtype_tool_calls_total{flow="talk",status="ok",step="respond",tool="weather_tool"} 1`,
		`qtype_memory_turns_total{memory="notes",status="ok"} 1`,
		`qtype_memory_turns_total{memory="notes",status="failed"} 1`,
		`qtype_memory_window_fill_ratio_bucket{memory="notes",le="0.1"} 2`,
		`qtype_http_requests_total{method="POST",route="POST /flows/{id}",status="200"} 1`,
		`qtype_http_requests_total{method="other",route="POST /flows/{id}",status="other"} 1`,
	)
	for _, want := range []string{`qtype_tokens_total{direction="input",flow="talk",model="spare",step="respond"} `, `qtype_cost_total{flow="talk",model="spare",step="respond"} 0.`,
		`qtype_store_operation_duration_seconds_count{operation="apply",status="ok"} `, "go_goroutines ", "qtype_model_call_duration_seconds_sum"} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %s", want)
		}
	}
	for _, private := range []string{"s1", "Weather?", "Bonn"} {
		if strings.Contains(text, `"`+private+`"`) {
			t.Errorf("the metrics have %q", private)
		}
	}
}

// TestMetrics_CacheFlushesFirstToken: cache hits and misses, flushes and the time to the
// first token.
func TestMetrics_CacheFlushesFirstToken(t *testing.T) {
	document := fmt.Sprintf(`
id: metered
memories: [{id: short, policy: message_window, max_messages: 2}]
models: [{type: Model, id: m, provider: mock, rules: [{text: "an answer of some words"}]}]
flows:
  - id: talk
    variables: [{id: x, type: text}, {id: y, type: text}]
    inputs: [x]
    outputs: [y]
    steps:
      - {type: LLMInference, id: say, model: m, memory: short, inputs: [x], outputs: [y]}
  - id: cached
    variables: [{id: x, type: text}, {id: y, type: text}]
    inputs: [x]
    outputs: [y]
    steps:
      - {type: LLMInference, id: say_cached, model: m, inputs: [x], outputs: [y], cache_config: {directory: %q}}
`, t.TempDir())
	app, m := open(t, document), metrics.New(false)
	ctx := steps.WithEvents(steps.WithObserver(t.Context(), m), func(steps.Event) {}, steps.EventText)
	run(ctx, t, app, "talk", "x", "a", "b", "c")
	run(ctx, t, app, "cached", "x", "a", "b", "a")
	expectSamples(t, scrape(t, m),
		`qtype_step_cache_total{result="hit",step="say_cached"} 1`,
		`qtype_step_cache_total{result="miss",step="say_cached"} 2`,
		`qtype_memory_flushes_total{memory="short"} 2`,
		`qtype_memory_evicted_messages_total{memory="short"} 4`,
		`qtype_memory_window_fill_ratio_bucket{memory="short",le="1"} 3`,
		`qtype_time_to_first_token_seconds_count{model="m"} 5`,
	)
}

// TestMetrics_BoundedLabels: names beyond the limit are counted together.
func TestMetrics_BoundedLabels(t *testing.T) {
	m := metrics.New(false)
	for i := range metrics.MaxSeries + 50 {
		m.Request(fmt.Sprint("GET /", i), "GET", 200, 0)
	}
	w := httptest.NewRecorder() // promlint is slow on a long text
	m.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	text := w.Body.String()
	expectSamples(t, text, `qtype_http_requests_total{method="GET",route="other",status="200"} 50`)
	if n := strings.Count(text, "\nqtype_http_requests_total{"); n != metrics.MaxSeries+1 {
		t.Errorf("%d series", n)
	}
}
