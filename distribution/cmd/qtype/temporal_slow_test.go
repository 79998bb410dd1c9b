package main

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/qtype-dev/qtype/model/modeltest"
)

// TestTemporal_Slow: Temporal answers a worker after two seconds. No chunk is given up, and no call repeated.
func TestTemporal_Slow(t *testing.T) {
	t.Parallel()
	var calls atomic.Int32
	model := httptest.NewServer(modeltest.OpenAI(func(messages []modeltest.Message) (string, int) {
		calls.Add(1)
		time.Sleep(4 * time.Second) // several heartbeats for a chunk
		return "answer to " + messages[len(messages)-1].Content, 0
	}))
	t.Cleanup(model.Close)
	c := newCluster(t, fmt.Sprintf(talks, model.URL), "session,text\na,1\na,2\na,3\na,4\n")
	slow := newLink(t, c.server.Address())
	slow.delay.Store(int64(2 * time.Second))
	c.address = slow.address
	c.worker()
	c.address = c.server.Address()
	if status, _, errs := c.qtype("run", "app.qtype.yaml", "-I", "in.csv", "-o", "out.jsonl", "--engine", "temporal"); status != 0 {
		t.Fatalf("%d: %s", status, errs)
	}
	if got := strings.Count(c.read("out.jsonl"), `"answer to `); got != 4 {
		t.Errorf("%d answers", got)
	}
	if n := calls.Load(); n != 4 {
		t.Errorf("%d calls, want 4", n)
	}
	history := c.temporal("workflow", "show", "--workflow-id", c.runs()[0].ID, "--output", "json")
	if !strings.Contains(history, `"attempt": 1`) || strings.Contains(history, `"attempt": 2`) {
		t.Errorf("the chunk had several attempts: %s", history)
	}
}
