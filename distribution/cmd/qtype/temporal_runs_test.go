package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/qtype-dev/qtype/internal/servertest"
	"github.com/qtype-dev/qtype/model/modeltest"
)

// TestTemporal_Filters: qtype runs list has the runs of a flow, a session and a user: by their memos
// before the server knows the search attributes, and by these when it does. Temporal has hashes of sessions and users, unless they are to be named.
func TestTemporal_Filters(t *testing.T) {
	t.Parallel()
	model := httptest.NewServer(modeltest.OpenAI(func(messages []modeltest.Message) (string, int) {
		return "answer to " + messages[len(messages)-1].Content, 0
	}))
	t.Cleanup(model.Close)
	c := newCluster(t, fmt.Sprintf(talks, model.URL), "session,text\nc-1,a\nc-2,b\n")
	c.worker()
	run := func(out string, args ...string) {
		t.Helper()
		if status, _, errs := c.qtype(append([]string{"run", "app.qtype.yaml", "-I", "in.csv", "-o", out, "--engine", "temporal"}, args...)...); status != 0 || strings.Contains(errs, "search attributes") {
			t.Fatalf("%d: %s", status, errs)
		}
	}
	run("first.jsonl", "--user", "ada")
	c.awaitAttributes()
	run("second.jsonl", "--user", "o'hara/1", "--temporal-names")
	for len(c.runs("--user", "o'hara/1")) == 0 {
		time.Sleep(100 * time.Millisecond) // it polls: the list is some time behind
	}
	list := func(args ...string) (found []string) {
		for _, r := range c.runs(append(args, "--engine", "temporal")...) {
			shown := strings.Join(r.Sessions, "+") + " of " + strings.Join(r.Users, "+")
			found = append(found, regexp.MustCompile("sha256-[0-9a-f]{32}").ReplaceAllString(shown, "#"))
		}
		slices.Sort(found)
		return found
	}
	second := "c-1+c-2 of o'hara/1"
	for _, test := range []struct {
		args []string
		want []string
	}{
		{nil, []string{"#+# of #", second}},
		{[]string{"--flow", "main", "--session", "c-2"}, []string{"#+c-2 of #", second}},
		{[]string{"--user", "ada"}, []string{"#+# of ada"}},
		{[]string{"--user", "o'hara/1"}, []string{second}},
		{[]string{"--session", "c-3"}, nil},
		{[]string{"--flow", "other"}, nil},
	} {
		if diff := cmp.Diff(test.want, list(test.args...)); diff != "" {
			t.Errorf("%v: %s", test.args, diff)
		}
	}
	if got := c.temporal("workflow", "count", "--query", "QtypeUser = 'ada' OR QtypeSession = 'c-1' AND QtypeUser = 'o\\'hara/1' AND QtypeFlow = 'main'"); !strings.Contains(got, "1") {
		t.Errorf("the second run has no search attributes: %s", got)
	}
}

// temporal runs a command of Temporal's program.
func (c *cluster) temporal(args ...string) string {
	c.t.Helper()
	out, err := exec.CommandContext(c.t.Context(), servertest.TemporalProgram(), append(args, "--address", c.server.Address())...).CombinedOutput()
	if err != nil {
		c.t.Fatalf("%v: %s", err, out)
	}
	return string(out)
}

// awaitAttributes waits until the server has the search attributes that the first run has registered.
func (c *cluster) awaitAttributes() {
	c.t.Helper()
	for {
		args := []string{"workflow", "count", "--query", "QtypeUser = 'x'", "--address", c.server.Address()}
		if exec.CommandContext(c.t.Context(), servertest.TemporalProgram(), args...).Run() == nil {
			return
		}
		select {
		case <-c.t.Context().Done():
			c.t.Fatal("the server has no search attributes")
		case <-time.After(100 * time.Millisecond): // it polls
		}
	}
}

// TestTemporal_Retry: a run that has failed continues, and the command of the run writes its output.
func TestTemporal_Retry(t *testing.T) {
	t.Parallel()
	c := newCluster(t, computes, numbers(1500))
	c.worker()
	base := []string{"run", "app.qtype.yaml", "-I", "in.csv"}
	run := append(base, "-o", "out.csv", "--engine", "temporal", "--chunk", "10")
	if status, _, errs := c.qtype(append(run, "--max-failures", "1")...); status != 1 {
		t.Fatalf("%d: %s", status, errs)
	}
	was := c.awaitRun("failed")
	if status, _, errs := c.qtype("runs", "retry", was.ID); status != 0 || !strings.Contains(errs, "continues") {
		t.Fatalf("retry: %d: %s", status, errs)
	}
	for shown := ""; !strings.Contains(shown, " failed "); { // at the next failed row
		time.Sleep(100 * time.Millisecond) // it polls
		_, shown, _ = c.qtype("runs", "show", was.ID)
	}
	if status, _, errs := c.qtype(append(run, "--resume")...); status != 1 || !strings.Contains(errs, "2,786 rows: 2,572 done, 214 failed") {
		t.Errorf("resumed without a limit: %d: %s", status, errs)
	}
	c.qtype(append(base, "-o", "want.csv")...)
	if diff := cmp.Diff(c.read("want.csv"), c.read("out.csv")); diff != "" {
		t.Error(diff)
	}
	c.awaitRun("completed")
	if status, _, errs := c.qtype("runs", "retry", was.ID); status != 1 || !strings.Contains(errs, "cannot be retried: it is completed") {
		t.Errorf("retry of a complete run: %d: %s", status, errs)
	}
}

// TestTemporal_RetryFailed: failed rows of a run that was stopped run again, and others do not.
func TestTemporal_RetryFailed(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	fails, calls := true, map[string]int{}
	model := httptest.NewServer(modeltest.OpenAI(func(messages []modeltest.Message) (string, int) {
		mu.Lock()
		defer mu.Unlock()
		last := messages[len(messages)-1].Content
		if calls[last]++; fails && last == "hello 7" {
			return "", http.StatusBadRequest
		}
		return "answer to " + last, 0
	}))
	t.Cleanup(model.Close)
	var rows, want strings.Builder
	rows.WriteString("text\n")
	for i := range 400 {
		fmt.Fprintf(&rows, "hello %d\n", i)
		fmt.Fprintf(&want, "{\"row\":%d,\"answer\":\"answer to hello %d\",\"error\":null}\n", i+1, i)
	}
	c := newCluster(t, fmt.Sprintf(strings.Replace(strings.Replace(talks, "memory: talk, ", "", 1), "memories: [{id: talk, policy: message_window, max_messages: 4}]\n", "", 1), model.URL), rows.String())
	c.worker("--parallel", "1") // the failed row stops the run before the last chunks
	run := []string{"run", "app.qtype.yaml", "-I", "in.csv", "-o", "out.jsonl", "--engine", "temporal", "--chunk", "10"}
	if status, _, errs := c.qtype(append(run, "--max-failures", "1")...); status != 1 {
		t.Fatalf("%d: %s", status, errs)
	}
	mu.Lock()
	fails = false
	mu.Unlock()
	if status, _, errs := c.qtype(append(run, "--resume", "--retry-failed")...); status != 0 {
		t.Fatalf("%d: %s", status, errs)
	}
	if diff := cmp.Diff(want.String(), c.read("out.jsonl")); diff != "" {
		t.Error(diff)
	}
	mu.Lock()
	defer mu.Unlock()
	if calls["hello 7"] != 2 || len(calls) != 400 {
		t.Errorf("calls: %v", calls)
	}
	if status, _, errs := c.qtype(append(run, "--resume", "--retry-failed")...); status != 1 || !strings.Contains(errs, "is completed: --resume writes its output") {
		t.Errorf("of a complete run: %d: %s", status, errs)
	}
}
