package telemetry_test

import (
	"context"
	"slices"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/qtype-dev/qtype/internal/telemetry"
	"github.com/qtype-dev/qtype/internal/telemetry/metrics"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/steps"
)

// BenchmarkTurn is a turn of a conversation with a mock model, with nothing that
// observes it and with each observer.
func BenchmarkTurn(b *testing.B) {
	const document = `
id: bench
models: [{type: Model, id: m, provider: mock, rules: [{text: "an answer"}]}]
memories: [{id: notes, policy: message_window, max_messages: 20}]
flows:
  - id: talk
    variables: [{id: x, type: text}, {id: y, type: text}]
    inputs: [x]
    outputs: [y]
    steps:
      - {type: LLMInference, id: say, model: m, memory: notes, inputs: [x], outputs: [y]}
`
	provider := sdktrace.NewTracerProvider()
	b.Cleanup(func() { testkit.Must(b, provider.Shutdown(context.Background())) })
	for _, c := range []struct {
		name    string
		observe func(context.Context) context.Context
	}{
		{"none", func(ctx context.Context) context.Context { return ctx }},
		{"recorder", func(ctx context.Context) context.Context {
			return telemetry.NewRecorder(100, 10<<20).Context(ctx, "r")
		}},
		{"collector", func(ctx context.Context) context.Context {
			return steps.WithObserver(ctx, telemetry.NewRowCollector(func(*telemetry.RowSpans) {}))
		}},
		{"metrics", func(ctx context.Context) context.Context {
			return steps.WithObserver(ctx, metrics.New(false))
		}},
		{"tracer", func(ctx context.Context) context.Context {
			return steps.WithObserver(ctx, telemetry.NewTracer(provider, telemetry.TracerOptions{}))
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			app := open(b, document)
			ctx := c.observe(b.Context())
			rows := []runtime.Input{{Values: map[string]any{"x": "a question"}, Session: "s"}}
			b.ReportAllocs()
			for b.Loop() {
				for _, err := range app.Run(ctx, "talk", slices.Values(rows)) {
					testkit.Must(b, err)
				}
			}
		})
	}
}
