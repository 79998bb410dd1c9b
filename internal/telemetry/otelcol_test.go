package telemetry_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/servertest"
	"github.com/qtype-dev/qtype/internal/testkit"
)

// TestCollector sends a trace to a real OpenTelemetry collector.
func TestCollector(t *testing.T) {
	server, err := servertest.Collector()
	servertest.Need(t, err)
	t.Cleanup(func() { testkit.Must(t, server.Close()) })
	t.Setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
	app := open(t, withTelemetry(otlp, "http://"+server.Address()))
	e := openExporter(t, app, nil)
	results := run(e.Context(t.Context()), t, app, "talk", "question", "Weather?")
	e.Flush(t.Context())
	var log string
	eventually(t, func() bool {
		log = testkit.ReadFile(t, filepath.Join(server.Folder, "log"))
		return strings.Contains(log, "Name           : flow.talk")
	})
	for _, want := range []string{"-> service.name: Str(assistant)", "InstrumentationScope github.com/qtype-dev/qtype", "Trace ID       : " + results[0].Trace.Trace,
		"Name           : chat small", "-> gen_ai.usage.input_tokens: Int(13)", "-> llm.input_messages.1.message.content: Str(Weather?)"} {
		if !strings.Contains(log, want) {
			t.Errorf("the collector did not receive %q", want)
		}
	}
}
