package main

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/qtype-dev/qtype/internal/servertest"
	"github.com/qtype-dev/qtype/internal/testkit"
)

// TestTemporal_Budget: the budget of a run is one for all workers, also if one is killed. A run
// within it has the output and the summary of a local run, one beyond it the error.
func TestTemporal_Budget(t *testing.T) {
	t.Parallel()
	const rows, allowed = 60, 25
	pg, err := servertest.Postgres()
	servertest.Need(t, err)
	t.Cleanup(func() { testkit.Must(t, pg.Close()) })
	model, calls, half := startModel(t, rows/2)
	var input strings.Builder
	input.WriteString("text\n")
	for i := range rows {
		fmt.Fprintf(&input, "message %d\n", i)
	}
	document := func(budget string) string {
		priced := strings.Replace(answers, "retry:", "prices: {input: 1, output: 1}, retry:", 1)
		return strings.Replace(fmt.Sprintf(priced, model.URL), "outputs: [answer]\n", "outputs: [answer]\n    budget: "+budget+"\n", 1)
	}
	c := newCluster(t, document("{calls: 100, tokens: 1000000, money: 1000, seconds: 3600}"), input.String())
	first := c.worker("--store", pg.URL(), "--parallel", "2")
	result := make(chan string, 1)
	run := func(output string, args ...string) (status int, errs string) {
		status, _, errs = c.qtype(append([]string{"run", "app.qtype.yaml", "-I", "in.csv", "-o", output}, args...)...)
		return status, errs
	}
	temporal := []string{"--engine", "temporal", "--chunk", "3", "--heartbeat", "2s"}
	go func() {
		status, errs := run("got.jsonl", temporal...)
		result <- fmt.Sprintf("%d\n%s", status, errs)
	}()
	<-half
	testkit.Must(t, first.Process.Kill())
	for range 2 {
		c.worker("--store", pg.URL(), "--parallel", "2")
	}
	got := <-result
	status, errs := run("want.jsonl")
	if diff := cmp.Diff(facts(fmt.Sprintf("%d\n%s", status, errs)), facts(got)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(c.read("want.jsonl"), c.read("got.jsonl")); diff != "" {
		t.Error(diff)
	}
	for budget, over := range map[string]struct {
		text  string
		calls int64
	}{
		fmt.Sprintf("{calls: %d}", allowed):      {fmt.Sprintf(`\d+ calls, %d are allowed`, allowed), allowed},
		fmt.Sprintf("{tokens: %d}", 8*allowed-4): {fmt.Sprintf(`\d+ tokens, %d are allowed`, 8*allowed-4), allowed},
		"{seconds: 1.0e-9}":                      {"more than 1e-09 seconds, 1e-09 are allowed", 0},
	} {
		c.write("app.qtype.yaml", document(budget)) // the workers have read another one
		for name, args := range map[string][]string{"local": nil, "temporal": temporal} {
			before := calls.Load()
			status, errs := run(name+".jsonl", append(args, "--restart")...)
			if status != 1 || !regexp.MustCompile("flow main is over its budget: "+over.text).MatchString(errs) {
				t.Errorf("%s, %s: status %d: %s", name, budget, status, errs)
			}
			if n := calls.Load() - before; n < over.calls || n > over.calls+5 {
				t.Errorf("%s, %s: %d calls", name, budget, n)
			}
		}
	}
}

// facts returns the lines of a summary without what differs between two runs: times and files.
func facts(errs string) string {
	errs = regexp.MustCompile(`(?m)^.*(no worker has|made again after|time |step |slowest|\d+ rows/s).*$\n?`).ReplaceAllString(errs, "")
	return regexp.MustCompile(`(got|want)\.jsonl|in [\d.]+ ?m?s|\d+[\d,.]* rows/s`).ReplaceAllString(errs, "")
}
