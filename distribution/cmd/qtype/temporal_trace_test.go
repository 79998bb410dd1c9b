package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/qtype-dev/qtype/internal/servertest"
	"github.com/qtype-dev/qtype/internal/testkit"
)

// TestTemporal_Traces: the spans of workers belong to the trace of the run, or to that of the client of a server.
func TestTemporal_Traces(t *testing.T) {
	var mu sync.Mutex
	sent := ""
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		sent += string(body)
	}))
	t.Cleanup(collector.Close)
	model, _, _ := startModel(t, -1)
	c := newCluster(t, fmt.Sprintf(talks, model.URL), "session,text\na,1\nb,2\nc,3\n")
	for name, value := range map[string]string{
		"OPENAI_API_KEY": "x", "NO_PROXY": "*", "TEMPORAL_ADDRESS": c.server.Address(), "OTEL_EXPORTER_OTLP_ENDPOINT": collector.URL,
	} {
		t.Setenv(name, value)
	}
	worker := c.worker()
	if status, _, errs := c.qtype("run", "app.qtype.yaml", "-I", "in.csv", "-o", "out.jsonl", "--engine", "temporal", "--chunk", "1"); status != 0 {
		t.Fatal(errs)
	}
	o := &office{cluster: c, servers: []*servertest.Replica{servertest.Serve(t, c.dir, "--engine", "temporal", "--log-level", "error")}}
	const caller = "4bf92f3577b34da6a3ce929d0e0e4736"
	o.want(0, http.MethodPost, "/flows/main", `{"text": "hello"}`, "answer to hello", "X-Session-Id", "d", "traceparent", "00-"+caller+"-00f067aa0ba902b7-01")
	testkit.Must(t, worker.Process.Signal(os.Interrupt))
	testkit.Must(t, worker.Wait()) // it sends its spans
	mu.Lock()
	defer mu.Unlock()
	spans := map[string]int{}
	for _, span := range strings.Split(sent, "\n\x10") { // its first fields are 16 bytes, its trace, and 8 bytes, its id
		if len(span) > 18 && span[16:18] == "\x12\x08" {
			spans[fmt.Sprintf("%x", span[:16])]++
		}
	}
	if len(spans) != 2 || spans[caller] == 0 || strings.Count(sent, "flow.main") != 5 { // the run, its three chunks, and the request
		t.Errorf("%d times flow.main; the spans of traces: %v", strings.Count(sent, "flow.main"), spans)
	}
}
