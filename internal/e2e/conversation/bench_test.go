//go:build unix

package conversation_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/qtype-dev/qtype/internal/model/modeltest/conformance"
	"github.com/qtype-dev/qtype/internal/runtimetest"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/runtime"
)

// canned answers as Anthropic, with a call and then with an answer, and as the tool.
type canned struct{ thinking string }

// RoundTrip answers a request.
func (c canned) RoundTrip(req *http.Request) (*http.Response, error) {
	raw, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	text := `{"state": "shipped"}`
	if req.URL.Host != "orders.example.com" {
		block, stop := `{"type":"tool_use","id":"toolu_1","name":"find_order","input":{"number":"7"}}`, "tool_use"
		if last := bytes.LastIndex(raw, []byte(`"tool_result"`)); last > bytes.LastIndex(raw, []byte(`"Where is it?"`)) {
			block, stop = `{"type":"text","text":"It arrives on Friday."}`, "end_turn"
		}
		text = fmt.Sprintf(`{"id":"m","type":"message","role":"assistant","model":"x","content":[%s%s],"stop_reason":%q,"usage":{"input_tokens":40,"output_tokens":20}}`, c.thinking, block, stop)
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(text)), Request: req}, nil
}

// BenchmarkTurns measures conversations of ten turns of an agent with a call each: with and without items, with a model that
// binds its reasoning to the request before it, and with a context that is stored with its question or not.
func BenchmarkTurns(b *testing.B) {
	thinking := fmt.Sprintf(`{"type":"thinking","thinking":"I must look the order up.","signature":%q},`, strings.Repeat("A1b2", 300))
	variables := ", context: [{type: pinned, text: The shop is closed on Sunday.}, {type: variables}]"
	for _, kind := range []struct{ name, model, thinking, memory string }{
		{"plain", "claude-opus-5", "", ""},
		{"items", "claude-opus-5", thinking, ""},
		{"bound", "claude-opus-5-5", thinking, ""},
		{"fresh", "claude-opus-5", thinking, variables + ", prefix: fresh"},
		{"stable", "claude-opus-5", thinking, variables + ", prefix: stable"},
		{"bound_stable", "claude-opus-5-5", thinking, variables + ", prefix: stable"},
	} {
		b.Run(kind.name, func(b *testing.B) {
			app := openBench(b, document{memory: "policy: flush, token_limit: 90000" + kind.memory, answer: "text", limit: 20, models: []conformance.Case{{Provider: "anthropic", Model: kind.model}}}, canned{kind.thinking})
			before, n := cpu(b), 0
			b.ReportAllocs()
			for b.Loop() {
				n++
				session := fmt.Sprint("s", n)
				testkit.Must(b, app.Memory("talk").SetVariables(b.Context(), session, memory.Variable{Name: "city", Value: []byte(`"Rome"`)}))
				for range 10 {
					input := slices.Values([]runtime.Input{{Session: session, Values: map[string]any{"question": "Where is it?"}}})
					for row, err := range app.Run(b.Context(), "main", input) {
						if err != nil || row.Err != nil {
							b.Fatal(err, row.Err)
						}
					}
				}
			}
			b.ReportMetric(float64(cpu(b)-before)/float64(n)/1e6, "cpu-ms/op") // other programs change it less than the time
		})
	}
}

// cpu returns the processor time of the process in nanoseconds.
func cpu(b *testing.B) int64 {
	b.Helper()
	var used syscall.Rusage
	testkit.Must(b, syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	return used.Utime.Nano() + used.Stime.Nano()
}

// openBench opens a document whose store is in memory.
func openBench(b *testing.B, doc document, to http.RoundTripper) *runtime.App {
	b.Helper()
	path := filepath.Join(b.TempDir(), "app.qtype.yaml")
	testkit.Must(b, os.WriteFile(path, []byte(doc.yaml(conformance.Endpoint{})), 0o600))
	app, err := runtimetest.Open(b.Context(), path, runtime.Options{Parts: parts(), Store: memory.NewInProcess(), Getenv: environment, HTTP: &http.Client{Transport: to}})
	testkit.Must(b, err)
	b.Cleanup(func() { testkit.Must(b, app.Close(context.Background())) })
	return app
}
