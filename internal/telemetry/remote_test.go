package telemetry_test

import (
	"encoding/hex"
	"net/http"
	"testing"

	"github.com/qtype-dev/qtype/internal/telemetry"
)

func TestRemoteContext(t *testing.T) {
	c := newCollector(t)
	app := open(t, withTelemetry(otlp, c.URL))
	e := openExporter(t, app, nil)
	for _, parent := range []string{"00-" + traceID + "-" + spanID + "-01", "not a parent"} {
		ctx := telemetry.RemoteContext(t.Context(), http.Header{"Traceparent": {parent}})
		run(e.Context(ctx), t, app, "forecast", "city", "Bonn")
	}
	e.Flush(t.Context())
	var parents []string
	for _, s := range c.sorted() {
		if s.Name == "flow.forecast" {
			parents = append(parents, hex.EncodeToString(s.TraceId)+" "+hex.EncodeToString(s.ParentSpanId))
		}
	}
	if len(parents) != 2 || parents[0] != traceID+" "+spanID || parents[1][33:] != "" {
		t.Errorf("the flows are below %q", parents)
	}
}
