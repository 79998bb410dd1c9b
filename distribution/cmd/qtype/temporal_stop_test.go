package main

import (
	"fmt"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/model/modeltest"
)

// TestTemporal_StoppedWorker: a worker is stopped during the turn of a row, which another worker
// repeats. The history has the turn once, and no failed one.
func TestTemporal_StoppedWorker(t *testing.T) {
	asked, hold := make(chan struct{}, 2), make(chan struct{})
	model := httptest.NewServer(modeltest.OpenAI(func(messages []modeltest.Message) (string, int) {
		asked <- struct{}{}
		<-hold
		return "answer to " + messages[len(messages)-1].Content, 0
	}))
	t.Cleanup(model.Close)
	c := newCluster(t, fmt.Sprintf(talks, model.URL), "session,text\ns0,hello\n")
	first := c.worker()
	result := make(chan string, 1)
	go func() {
		status, _, stderr := c.qtype("run", "app.qtype.yaml", "-I", "in.csv", "-o", "out.jsonl", "--engine", "temporal", "--heartbeat", "2s")
		result <- fmt.Sprintf("%d\n%s", status, stderr)
	}()
	<-asked
	testkit.Must(t, first.Process.Signal(os.Interrupt))
	c.worker()
	<-asked
	close(hold)
	if got := <-result; !strings.HasPrefix(got, "0\n") {
		t.Fatal(got)
	}
	_, out, errs := c.qtype("memory", "history", "app.qtype.yaml", "-m", "talk", "-s", "s0", "--format", "json")
	if n := strings.Count(out, "\n"); n != 2 || strings.Contains(out, "failed") {
		t.Errorf("%d messages: %s%s", n, out, errs)
	}
}
