package telemetry_test

import (
	"context"
	"encoding/hex"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/qtype-dev/qtype/internal/parts"
	"github.com/qtype-dev/qtype/internal/servertest"
	"github.com/qtype-dev/qtype/internal/telemetry"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/runtime"
)

// withTelemetry adds a sink to the document assistant. format has the endpoint as %s.
func withTelemetry(format, endpoint string) string {
	return withEmbedder(assistant) + strings.ReplaceAll(format, "%s", endpoint) + "\n"
}

const otlp = "telemetry: {id: traces, provider: OTLP, endpoint: \"%s\"}"

// openExporter opens the exporter of an application. Warnings are errors unless warn
// is set.
func openExporter(t testing.TB, app *runtime.App, warn func(string)) *telemetry.Exporter {
	t.Helper()
	if warn == nil {
		warn = func(line string) { t.Error(line) }
	}
	e, err := telemetry.Open(with(t), app, telemetry.Options{Version: "1.2.3", Warn: warn})
	testkit.Must(t, err)
	t.Cleanup(func() { e.Close(context.Background()) })
	return e
}

func TestExporter_Spans(t *testing.T) {
	c := newCollector(t)
	app := open(t, withTelemetry(otlp, c.URL))
	e := openExporter(t, app, nil)
	results := run(e.Context(t.Context()), t, app, "talk", "question", "Weather?")
	e.Flush(t.Context())
	want := `flow.talk [CHAIN]
  step.respond [AGENT]
    step.respond.process_message [AGENT]
      memory.notes [CHAIN]
        chat broken [LLM] model broken: HTTP 503: [mock] out of order
        chat small [LLM]
        execute_tool weather [TOOL]
          flow.forecast [CHAIN]
            step.write_report [CHAIN]
              step.write_report.process_message [CHAIN]
        chat broken [LLM] model broken: HTTP 503: [mock] out of order
        chat small [LLM]`
	if got := lines(c.tree()); got != want {
		t.Errorf("got\n%s", got)
	}
	flow, set := c.span(t, "flow.talk")
	if id := results[0].Trace; id == nil || id.Trace != hex.EncodeToString(flow.TraceId) || id.Span != hex.EncodeToString(flow.SpanId) {
		t.Errorf("the result has the id %v, the flow %x %x", id, flow.TraceId, flow.SpanId)
	}
	expectAttributes(t, set, map[string]any{"flow.id": "talk", "flow.step_count": int64(1), "flow.input_count": int64(1), "flow.output_count": int64(1), "flow.error_count": int64(0),
		"input.value": `{"question":"Weather?"}`, "output.value": `{"answer":"It is sunny."}`, "input.mime_type": "application/json", "session.id": "s1"})
	if c.resource["service.name"] != "assistant" || c.resource["service.version"] != "1.2.3" || c.paths[0] != "/v1/traces" {
		t.Errorf("%v at %v", c.resource, c.paths)
	}
}

func expectAttributes(t *testing.T, got, want map[string]any) {
	t.Helper()
	for name, v := range want {
		if got[name] != v {
			t.Errorf("%s is %#v, want %#v", name, got[name], v)
		}
	}
}

func TestExporter_CallAttributes(t *testing.T) {
	c := newCollector(t)
	app := open(t, withTelemetry(otlp, c.URL))
	e := openExporter(t, app, nil)
	run(e.Context(t.Context()), t, app, "talk", "question", "Weather?")
	run(e.Context(t.Context()), t, app, "vectors", "text", "some words")
	e.Flush(t.Context())
	_, set := c.span(t, "chat small")
	expectAttributes(t, set, map[string]any{"llm.model_name": "small", "llm.provider": "mock", "llm.invocation_parameters": `{"temperature":0.5}`,
		"llm.input_messages.0.message.role": "system", "llm.input_messages.0.message.content": "Be kind.", "llm.input_messages.1.message.content": "Weather?",
		"llm.output_messages.0.message.tool_calls.0.tool_call.function.name": "weather", "llm.token_count.prompt": int64(13), "llm.token_count.completion": int64(7),
		"llm.token_count.total": int64(20), "llm.cost.total": 0.027, "input.value": "Weather?", "gen_ai.operation.name": "chat", "gen_ai.request.model": "small",
		"gen_ai.provider.name": "mock", "gen_ai.request.temperature": 0.5, "gen_ai.usage.input_tokens": int64(13), "gen_ai.usage.output_tokens": int64(7), "qtype.model.id": "spare",
		"qtype.fallback.0.reason": "HTTP 503", "qtype.fallback.0.status": int64(503)})
	_, set = c.span(t, "execute_tool weather")
	expectAttributes(t, set, map[string]any{"tool.name": "weather", "tool.description": "The weather", "input.value": `{"city":"Bonn"}`, "output.value": `{"report":"Sun in Bonn"}`,
		"gen_ai.tool.name": "weather"})
	_, set = c.span(t, "embeddings vec")
	expectAttributes(t, set, map[string]any{"openinference.span.kind": "EMBEDDING", "embedding.model_name": "vec", "embedding.embeddings.0.embedding.text": "some words",
		"gen_ai.operation.name": "embeddings", "embedding.vectors": int64(1)})
	_, set = c.span(t, "memory.notes")
	expectAttributes(t, set, map[string]any{"memory.added": int64(4), "memory.messages": int64(4), "memory.limit": int64(700), "session.id": "s1"})
	_, set = c.span(t, "chat broken")
	expectAttributes(t, set, map[string]any{"error.type": "503"})
	for _, s := range c.sorted() {
		if strings.Contains(s.String(), "geheim") {
			t.Errorf("span %s has a secret: %s", s.Name, s)
		}
	}
}

func TestExporter_FailedRows(t *testing.T) {
	c := newCollector(t)
	app := open(t, withTelemetry(otlp, c.URL))
	e := openExporter(t, app, nil)
	run(e.Context(t.Context()), t, app, "talk", "question", "fail", "Weather?")
	e.Flush(t.Context())
	flow, set := c.span(t, "flow.talk")
	if flow.Status.Message != "1 of 2 messages failed" || set["input.value"] != nil {
		t.Errorf("the flow has the status %v and the input %v", flow.Status, set["input.value"])
	}
	row, _ := c.span(t, "step.respond.process_message")
	if len(row.Events) != 1 || row.Events[0].Name != "message_failed" || row.Status.GetCode() != 2 {
		t.Errorf("the failed row has the events %v and the status %v", row.Events, row.Status)
	}
}

func TestExporter_HidesContent(t *testing.T) {
	hidden := strings.Replace(otlp, `"}`, `", args: {capture_content: false}}`, 1)
	for name, setup := range map[string]func() string{
		"args":        func() string { return hidden },
		"environment": func() string { t.Setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "false"); return otlp },
	} {
		t.Run(name, func(t *testing.T) {
			c := newCollector(t)
			app := open(t, withTelemetry(setup(), c.URL))
			e := openExporter(t, app, nil)
			run(e.Context(t.Context()), t, app, "talk", "question", "Weather?")
			run(e.Context(t.Context()), t, app, "vectors", "text", "some words")
			e.Flush(t.Context())
			if n := len(c.sorted()); n < 12 {
				t.Errorf("%d spans", n)
			}
			for _, s := range c.sorted() {
				for _, content := range []string{"Weather?", "Bonn", "sunny", "Be kind", "some words"} {
					if strings.Contains(s.String(), content) {
						t.Errorf("span %s has %q: %s", s.Name, content, s)
					}
				}
			}
		})
	}
}

func TestExporter_Providers(t *testing.T) {
	tests := map[string]struct {
		declared string
		env      map[string]string
		path     string
		headers  map[string]string
		project  string
	}{
		"Phoenix": {`telemetry: {id: t, endpoint: "%s", args: {project_name: shop}, auth: key}`, nil,
			"/v1/traces", map[string]string{"Authorization": "Bearer k-1"}, "shop"},
		"Phoenix with a path": {`telemetry: {id: t, endpoint: "%s/phoenix/v1/traces"}`, map[string]string{"PHOENIX_API_KEY": "env-1"},
			"/phoenix/v1/traces", map[string]string{"Authorization": "Bearer env-1"}, "assistant"},
		"Langfuse": {`telemetry: {id: t, provider: Langfuse, endpoint: "%s", args: {public_key: pk, secret_key: sk}}`, nil,
			"/api/public/otel/v1/traces", map[string]string{"Authorization": "Basic cGs6c2s="}, ""},
		"Langfuse with its API": {`telemetry: {id: t, provider: Langfuse, endpoint: "%s/api/public/otel/", auth: pair}`, nil,
			"/api/public/otel/v1/traces", map[string]string{"Authorization": "Basic cGs6c2s="}, ""},
		"Arize": {`telemetry: {id: t, provider: Arize, endpoint: "%s", auth: key, args: {space_id: sp, project_name: shop}}`, nil,
			"/v1/traces", map[string]string{"Authorization": "k-1", "Space_id": "sp", "Arize-Space-Id": "sp", "Api_key": "k-1"}, "shop"},
		"OTLP": {`telemetry: {id: t, provider: OTLP, endpoint: "%s/otel/v1/traces", auth: bearer, args: {headers: {X-Scope: team}}}`, nil,
			"/otel/v1/traces", map[string]string{"Authorization": "Bearer b-1", "X-Scope": "team"}, ""},
	}
	auths := "auths:\n  - {type: api_key, id: key, api_key: k-1}\n  - {type: basic, id: pair, username: pk, password: sk}\n  - {type: bearer_token, id: bearer, token: b-1}\n"
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			for k, v := range tt.env {
				t.Setenv(k, v)
			}
			c := newCollector(t)
			app := open(t, withTelemetry(tt.declared, c.URL)+auths)
			e := openExporter(t, app, nil)
			run(e.Context(t.Context()), t, app, "forecast", "city", "Bonn")
			e.Flush(t.Context())
			if len(c.sorted()) != 3 || c.paths[0] != tt.path {
				t.Fatalf("%q at %v", c.tree(), c.paths)
			}
			for header, want := range tt.headers {
				if got := c.headers.Get(header); got != want {
					t.Errorf("header %s is %q, want %q", header, got, want)
				}
			}
			if got, _ := c.resource["openinference.project.name"].(string); got != tt.project {
				t.Errorf("project %q, want %q", got, tt.project)
			}
		})
	}
}

func TestExporter_Environment(t *testing.T) {
	c := newCollector(t)
	app := open(t, withEmbedder(assistant))
	if e, err := telemetry.Open(with(t), app, telemetry.Options{}); e != nil || err != nil {
		t.Fatalf("without telemetry: %v, %v", e, err)
	}
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", c.URL)
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-team=blue")
	t.Setenv("OTEL_SERVICE_NAME", "named")
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test")
	e := openExporter(t, app, nil)
	run(e.Context(t.Context()), t, app, "forecast", "city", "Bonn")
	e.Flush(t.Context())
	if len(c.sorted()) != 3 || c.headers.Get("X-Team") != "blue" || c.resource["service.name"] != "named" || c.resource["deployment.environment.name"] != "test" {
		t.Errorf("%q, %v, %v", c.tree(), c.headers, c.resource)
	}
	t.Run("compressed", func(t *testing.T) {
		t.Setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
		t.Setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", c.URL+"/exact")
		e := openExporter(t, app, nil)
		run(e.Context(t.Context()), t, app, "forecast", "city", "Bonn")
		e.Flush(t.Context())
		if len(c.sorted()) != 6 || c.headers.Get("Content-Encoding") != "gzip" || c.paths[len(c.paths)-1] != "/exact" {
			t.Errorf("%q, %v at %v", c.tree(), c.headers, c.paths)
		}
	})
	t.Setenv("OTEL_TRACES_SAMPLER", "always_off")
	none := openExporter(t, app, nil)
	results := run(none.Context(t.Context()), t, app, "forecast", "city", "Bonn")
	none.Flush(t.Context())
	if len(c.sorted()) != 6 || results[0].Trace == nil {
		t.Errorf("sampled out: %q, %v", c.tree(), results[0].Trace)
	}
	for name, v := range map[string]string{"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc", "OTEL_EXPORTER_OTLP_HEADERS": "x", "OTEL_EXPORTER_OTLP_CERTIFICATE": "no-such-file",
		"OTEL_EXPORTER_OTLP_ENDPOINT": "collector"} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(name, v)
			if e, err := telemetry.Open(with(t), app, telemetry.Options{}); e != nil || err == nil || !strings.HasPrefix(err.Error(), "telemetry: ") {
				t.Errorf("%v, %v", e, err)
			}
		})
	}
	for _, off := range [][2]string{{"OTEL_SDK_DISABLED", "true"}, {"OTEL_TRACES_EXPORTER", "none"}} {
		t.Run(off[0], func(t *testing.T) {
			t.Setenv(off[0], off[1])
			if e, err := telemetry.Open(with(t), app, telemetry.Options{}); e != nil || err != nil {
				t.Errorf("%v, %v", e, err)
			}
		})
	}
}

// TestExporter_ProblemIsOneWarning: a sink that rejects or cannot be reached is one
// warning, and the run succeeds.
func TestExporter_ProblemIsOneWarning(t *testing.T) {
	rejects := newCollector(t)
	rejects.status = http.StatusForbidden
	for name, endpoint := range map[string]string{"rejects": rejects.URL, "unreachable": "http://" + servertest.Refused(t)} {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			var warnings []string
			app := open(t, withTelemetry(strings.Replace(otlp, `"}`, `", args: {color: red}}`, 1), endpoint))
			e := openExporter(t, app, func(line string) {
				mu.Lock()
				defer mu.Unlock()
				warnings = append(warnings, line)
			})
			for range 3 {
				results := run(e.Context(t.Context()), t, app, "forecast", "city", "Bonn")
				if got := text(results[0], "report"); got != "Sun in Bonn" {
					t.Errorf("the result is %q", got)
				}
				e.Flush(t.Context())
			}
			if len(warnings) != 2 || warnings[0] != "telemetry traces: args without effect: color" || !strings.HasPrefix(warnings[1], "telemetry: traces cannot be sent: ") ||
				strings.Contains(warnings[1], "\n") {
				t.Errorf("%d warnings: %q", len(warnings), warnings)
			}
		})
	}
}

func TestOpen_Errors(t *testing.T) {
	for declared, want := range map[string]string{
		`telemetry: {id: t, endpoint: "ftp://%s"}`:                                           "telemetry t: the endpoint is not an http or https address",
		`telemetry: {id: t, provider: Langfuse, endpoint: "http://%s"}`:                      "telemetry t: provider Langfuse needs args.public_key and args.secret_key, or an auth of type basic",
		`telemetry: {id: t, provider: Arize, endpoint: "http://%s"}`:                         "telemetry t: provider Arize needs an auth of type api_key",
		`telemetry: {id: t, provider: Arize, endpoint: "http://%s", args: {api_key: x}}`:     "telemetry t: provider Arize needs args.space_id",
		`telemetry: {id: t, provider: OTLP, endpoint: "http://%s", args: {headers: [a, b]}}`: "telemetry t: args.headers must be an object of names and texts",
	} {
		app := open(t, withTelemetry(declared, "127.0.0.1:1"))
		if _, err := telemetry.Open(with(t), app, telemetry.Options{}); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", declared, err, want)
		}
	}
}

// A program without the part sends no traces, and says so.
func TestOpen_Missing(t *testing.T) {
	app := open(t, withTelemetry(`telemetry: {id: t, provider: OTLP, endpoint: "http://%s"}`, "127.0.0.1:1"))
	want := "telemetry: this program has no telemetry otlp; the distribution has it: " + parts.Get
	if e, err := telemetry.Open(t.Context(), app, telemetry.Options{}); e != nil || err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestRecorder_WithExporter: recorded spans have the ids of the exported ones.
func TestRecorder_WithExporter(t *testing.T) {
	c := newCollector(t)
	app, recorder := open(t, withTelemetry(otlp, c.URL)), telemetry.NewRecorder(2, 1<<20)
	e := openExporter(t, app, nil)
	results := run(recorder.Context(e.Context(t.Context()), "r"), t, app, "talk", "question", "Weather?")
	e.Flush(t.Context())
	sent := map[string]string{}
	for _, s := range c.sorted() {
		sent[hex.EncodeToString(s.SpanId)] = s.Name
	}
	spans, _, _ := recorder.Spans("r")
	for _, s := range spans {
		if name := sent[s.ID]; !strings.Contains(name, s.Name) && s.Kind != "model" && s.Kind != "tool" || name == "" {
			t.Errorf("the recorded span %s %s is exported as %q", s.Kind, s.Name, name)
		}
	}
	if results[0].Trace.Span != spans[0].ID {
		t.Errorf("the result has the id %v", results[0].Trace)
	}
}

// TestExporter_RetriesAndCertificates: a server that is busy gets the spans later, one
// with its own authority is trusted if the environment names its certificate.
func TestExporter_RetriesAndCertificates(t *testing.T) {
	c := newCollector(t)
	busy := 1
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if busy--; busy >= 0 {
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		c.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	t.Setenv("OTEL_EXPORTER_OTLP_CERTIFICATE", testkit.WriteFile(t, "ca.pem", string(authority)))
	app := open(t, withTelemetry(otlp, server.URL))
	e := openExporter(t, app, nil)
	run(e.Context(t.Context()), t, app, "forecast", "city", "Bonn")
	e.Flush(t.Context())
	if len(c.sorted()) != 3 {
		t.Errorf("%q", c.tree())
	}
}

// TestExporter_HangingSink: a sink that never answers ends neither the run nor Close.
func TestExporter_HangingSink(t *testing.T) {
	server := newServer(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done() // the client gives up; until then the server cannot be closed
	})
	var warnings []string
	app := open(t, withTelemetry(otlp, server.URL))
	e, err := telemetry.Open(with(t), app, telemetry.Options{Warn: func(line string) { warnings = append(warnings, line) }, FlushTimeout: 50 * time.Millisecond})
	testkit.Must(t, err)
	run(e.Context(t.Context()), t, app, "forecast", "city", "Bonn")
	e.Close(t.Context())
	if len(warnings) != 1 || !strings.HasPrefix(warnings[0], "telemetry: traces cannot be sent: ") {
		t.Errorf("%q", warnings)
	}
}
