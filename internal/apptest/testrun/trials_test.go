package testrun_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/apptest/testrun"
	"github.com/qtype-dev/qtype/internal/testkit"
)

// TestTrials records the trials of a model that answers differently, and replays them: a test passes if as many
// trials pass as it needs.
func TestTrials(t *testing.T) {
	var calls atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		answer := "yes"
		if calls.Add(1)%4 == 0 { // the second turn of trials 2 and 4
			answer = "no"
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"choices":[{"message":{"content":%q},"finish_reason":"stop"}]}`, answer)
	}))
	defer s.Close()
	tests := func(rate string) string {
		return "recordings: app.recordings.json\ntrials: 4\ntests:\n  - {name: It agrees, flow: talk, pass_rate: " + rate + ", turns: [{input: Ada}, {input: Ada, expect: [answer == \"yes\"]}]}\n" +
			"  - {name: It looks, trials: 1, flow: order, tools: [{id: find_order, result: {status: sent, total: 1, key: x}}], turns: [{input: 7}]}\n"
	}
	folder := recordedFolder(t, s.URL, tests("0.5"))
	t.Setenv("RECORDED_KEY", recordedSecret)
	run := func(o qtype.TestOptions) []*testrun.Outcome {
		reports, err := qtype.Test(t.Context(), []string{folder}, o)
		testkit.Must(t, err)
		return reports[0].Outcomes
	}
	outcomes := run(qtype.TestOptions{Record: qtype.TestRecord})
	if o := outcomes[0]; !o.Passed() || o.Trials != 4 || o.PassedTrials != 2 || calls.Load() != 8 || outcomes[1].Trials != 1 {
		t.Fatalf("%d of %d trials, %d calls: %v", o.PassedTrials, o.Trials, calls.Load(), o.Diagnostics)
	}
	testkit.Must(t, os.WriteFile(filepath.Join(folder, "app.qtype-test.yaml"), []byte(tests("0.75")), 0o600))
	o := run(qtype.TestOptions{})[0]
	if got := messagesOf(o.Diagnostics); calls.Load() != 8 || o.PassedTrials != 2 || len(got) != 2 || got[0] != "QT803 2 of 4 trials passed: the test needs a rate of 0.75" || got[1] != "QT803 the condition is false" {
		t.Errorf("%d calls, %q", calls.Load(), got)
	}
	var b bytes.Buffer
	p := &testrun.Printer{Out: &b}
	p.Finished(o)
	if !strings.HasPrefix(b.String(), "  ✗ It agrees, 2 of 4 trials (") {
		t.Errorf("got %s", &b)
	}
	b.Reset()
	testkit.Must(t, testrun.JSON(&b, []testrun.Report{{Outcomes: []*testrun.Outcome{o}}}))
	if !strings.Contains(b.String(), `"trials":4,"passed_trials":2`) {
		t.Errorf("got %s", &b)
	}
	if o := run(qtype.TestOptions{Trials: 1})[0]; !o.Passed() || o.Trials != 1 {
		t.Errorf("one trial: %v", o.Diagnostics)
	}
	if got := messagesOf(run(qtype.TestOptions{Trials: 5})[0].Diagnostics); len(got) != 2 || got[0] != "QT803 2 of 5 trials passed: the test needs a rate of 0.75" {
		t.Errorf("more trials than recorded: %q", got)
	}
}

// TestToolMock_Arguments checks that the first mock that fits the arguments of a call answers it.
func TestToolMock_Arguments(t *testing.T) {
	folder := recordedFolder(t, "http://127.0.0.1:1", `tests:
  - name: It looks
    flow: order
    tools: [{id: find_order, arguments: {number: 7}, result: {status: sent, total: 1, key: x}}, {id: find_order, arguments: {number: 8}, error: no order}, {id: find_order, result: {status: other, total: 3, key: x}}]
    turns: [{input: 7, expect: [status == "sent"]}, {input: 9, expect: [status == "other"]}, {input: 8, fails: no order}]
  - name: Nothing fits
    flow: order
    tools: [{id: find_order, arguments: {number: 7}, result: {status: sent, total: 1, key: x}}]
    turns: [{input: 9, fails: no mock of the tool has these arguments}]
`)
	t.Setenv("RECORDED_KEY", recordedSecret)
	if got, _ := runRecorded(t, folder, qtype.TestOptions{}); len(got) > 0 {
		t.Error(got)
	}
}
