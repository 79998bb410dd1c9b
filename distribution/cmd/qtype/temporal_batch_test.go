package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/qtype-dev/qtype/model/modeltest"
)

// summarizes is a flow with batch steps between and after its calls of a model.
const summarizes = `id: summarizes
models: [{type: Model, id: m, provider: openai, model_id: gpt-6-luna, base_url: "%s/v1", retry: {max_attempts: 1}}]
flows:
  - id: main
    variables:
      - {id: text, type: text}
      - {id: answer, type: text}
      - {id: answers, type: "list[text]"}
      - {id: prompt, type: text}
      - {id: summary, type: text}
    inputs: [text]
    outputs: [summary]
    steps:
      - {type: LLMInference, id: ask, model: m, inputs: [text], outputs: [answer]}
      - {type: Collect, id: some, inputs: [answer], outputs: [answers], batch_config: {batch_size: 5}}
      - {type: PromptTemplate, id: write, template: "summary of {answers}", inputs: [answers], outputs: [prompt]}
      - {type: LLMInference, id: sum_up, model: m, inputs: [prompt], outputs: [summary]}
`

// keeps writes the summaries into a file.
const keeps = "      - {type: FileWriter, id: keep, inputs: [summary], path: {uri: summaries.jsonl}}\n"

// summaries is the model of the flow.
type summaries struct {
	mu    sync.Mutex
	calls map[string]int // by the message
	fail  string         // a text in messages that the model rejects; empty for none
	at    int            // the number of calls at which reached is closed
	ready chan struct{}
	pause time.Duration // of calls after that one
}

func newSummaries(t *testing.T, at int) (*summaries, *httptest.Server) {
	s := &summaries{calls: map[string]int{}, at: at, ready: make(chan struct{})}
	server := httptest.NewServer(modeltest.OpenAI(s.answer))
	t.Cleanup(server.Close)
	return s, server
}

func (s *summaries) answer(messages []modeltest.Message) (string, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := messages[len(messages)-1].Content
	s.calls[last]++
	if s.at--; s.at == 0 {
		close(s.ready)
	}
	if s.at < 0 {
		time.Sleep(s.pause)
	}
	if s.fail != "" && strings.Contains(last, s.fail) {
		return "", http.StatusBadRequest
	}
	return "answer to " + last, 0
}

// total returns the number of calls, and forgets them.
func (s *summaries) total() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, calls := range s.calls {
		n += calls
	}
	clear(s.calls)
	return n
}

// setFail sets the text that the model rejects.
func (s *summaries) setFail(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = text
}

// messagesOf returns a file of rows.
func messagesOf(n int) string {
	var rows strings.Builder
	rows.WriteString("text\n")
	for i := range n {
		fmt.Fprintf(&rows, "message %d.\n", i)
	}
	return rows.String()
}

// runLocally runs the flow in this process and returns the output.
func (c *cluster) runLocally() string {
	c.t.Helper()
	if status, _, errs := c.qtype("run", "app.qtype.yaml", "-I", "in.csv", "-o", "want.jsonl", "-q"); status > 1 {
		c.t.Fatalf("%d: %s", status, errs)
	}
	return c.read("want.jsonl")
}

// TestTemporal_Batches: the steps before the first batch step run in chunks, the others on one worker. It is killed in the
// middle of them, and another one repeats only calls without a result.
func TestTemporal_Batches(t *testing.T) {
	t.Parallel()
	const rows, groups = 60, 12
	s, model := newSummaries(t, rows+groups/2)
	c := newCluster(t, fmt.Sprintf(summarizes, model.URL)+keeps, messagesOf(rows))
	first := c.worker()
	result := c.start("--chunk", "7", "--heartbeat", "2s")
	<-s.ready
	if err := first.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	c.worker()
	got := <-result
	if !strings.HasPrefix(got, "0\n") || !strings.Contains(got, "1 row made of 60: 1 done, written to out.jsonl") {
		t.Fatal(got)
	}
	if n := s.total(); n > rows+groups+1 {
		t.Errorf("%d calls for %d rows and %d groups: only that in flight may be repeated", n, rows, groups)
	}
	made, written := c.read("out.jsonl"), c.read("summaries.jsonl")
	want := c.runLocally()
	if diff := cmp.Diff([]string{want, c.read("summaries.jsonl")}, []string{made, written}); diff != "" {
		t.Error(diff)
	}
}

// TestTemporal_BatchesStop: failed rows stop a run before and behind the first batch step, and it continues.
func TestTemporal_BatchesStop(t *testing.T) {
	t.Parallel()
	s, model := newSummaries(t, 0)
	c := newCluster(t, fmt.Sprintf(summarizes, model.URL), messagesOf(40))
	c.worker("--parallel", "1")
	run := []string{"run", "app.qtype.yaml", "-I", "in.csv", "-o", "out.jsonl", "--errors", "failed.csv", "--engine", "temporal", "--chunk", "4"}
	s.setFail("summary of [\"answer to message 10.")
	if status, _, errs := c.qtype(append(run, "--max-failures", "1")...); status != 1 || !strings.Contains(errs, "a row failed: step") {
		t.Fatalf("stopped behind the batch step: %d: %s", status, errs)
	}
	if n := s.total(); n != 43 {
		t.Errorf("%d calls, want 40 for the rows and 3 for groups", n)
	}
	s.setFail("")
	if status, _, errs := c.qtype(append(run, "--resume", "--retry-failed")...); status != 0 || !strings.Contains(errs, "8 rows made of 40: 8 done") {
		t.Fatalf("continued: %d: %s", status, errs)
	}
	if n := s.total(); n != 6 {
		t.Errorf("%d calls, want 6: two groups were finished", n)
	}
	made := c.read("out.jsonl")
	want := c.runLocally()
	if diff := cmp.Diff(want, made); diff != "" {
		t.Error(diff)
	}
	s.total()

	s.setFail("message 17.")
	again := append(run, "--max-failures", "1")
	if status, _, errs := c.qtype(again...); status != 1 || !strings.Contains(errs, "a row failed: step") {
		t.Fatalf("stopped before the batch step: %d: %s", status, errs)
	}
	if failed := c.read("failed.csv"); !strings.Contains(failed, "message 17.") {
		t.Errorf("failed rows: %s", failed)
	}
	status, _, errs := c.qtype(append(run, "--resume")...)
	if status != 1 || !strings.Contains(errs, "made of 40: ") {
		t.Errorf("continued with a failed row: %d: %s", status, errs)
	}
	made, failed := c.read("out.jsonl"), c.read("failed.csv")
	want = c.runLocally()
	if diff := cmp.Diff(want, made); diff != "" || !strings.Contains(failed, "message 17.") {
		t.Errorf("failed rows: %s\n%s", failed, diff)
	}
}

// TestTemporal_BatchesEqual: flows with batch steps at several places have the same output, failed rows, summary and memories on both
// engines.
func TestTemporal_BatchesEqual(t *testing.T) {
	t.Parallel()
	header := func(variables, outputs string) string {
		return "id: equal\nmodels: [{type: Model, id: m, provider: mock, model_id: m}]\nmemories: [{id: talk, policy: message_window, max_messages: 6}]\n" +
			"flows:\n  - id: main\n    variables: [{id: n, type: int}, {id: text, type: text}" + variables + "]\n    inputs: [n, text]\n    outputs: [" + outputs + "]\n    steps:\n"
	}
	collect := "      - {type: Collect, id: some, inputs: [answer], outputs: [all], batch_config: {batch_size: 4}}\n"
	say := "      - {type: LLMInference, id: say, model: m, memory: talk, inputs: [text], outputs: [answer]}\n"
	answers := ", {id: answer, type: text}, {id: all, type: 'list[text]'}"
	var rows strings.Builder
	rows.WriteString("session,n,text\n")
	for i := range 50 {
		n := fmt.Sprint(i)
		if i%11 == 3 {
			n = "none" // a row that fails
		}
		fmt.Fprintf(&rows, "s%d,%s,hello %d\n", i%3, n, i)
	}
	server := newCluster(t, "id: none\n", "").server
	for name, test := range map[string]struct{ document, rows string }{
		"no rows":        {header(", {id: stats, type: AggregateStats}", "stats") + "      - {type: Aggregate, id: count, outputs: [stats]}\n", "session,n,text\n"},
		"first":          {header(", {id: all, type: 'list[int]'}", "all") + "      - {type: Collect, id: some, inputs: [n], outputs: [all]}\n", rows.String()},
		"memory before":  {header(answers, "all") + say + collect, rows.String()},
		"counts":         {header(answers+", {id: stats, type: AggregateStats}", "stats") + say + "      - {type: Aggregate, id: count, outputs: [stats]}\n", rows.String()},
		"memory between": {header(answers+", {id: one, type: text}, {id: last, type: 'list[text]'}", "last") + say + collect + "      - {type: Explode, id: each, inputs: [all], outputs: [one]}\n      - {type: Collect, id: end, inputs: [one], outputs: [last], batch_config: {batch_size: 7}}\n", rows.String()},
		"memory on both sides": {header(answers+", {id: last, type: text}", "answer, last") + say + "      - {type: FileWriter, id: keep, inputs: [answer], path: {uri: log.jsonl}, batch_config: {batch_size: 2}}\n" +
			"      - {type: LLMInference, id: again, model: m, memory: talk, inputs: [answer], outputs: [last]}\n", rows.String()},
		"memory behind": {header(", {id: all, type: 'list[text]'}, {id: prompt, type: text}, {id: answer, type: text}", "answer") +
			"      - {type: Collect, id: some, inputs: [text], outputs: [all], group_by: [n]}\n      - {type: PromptTemplate, id: join, template: '{all}', inputs: [all], outputs: [prompt]}\n" +
			"      - {type: LLMInference, id: say, model: m, memory: talk, inputs: [prompt], outputs: [answer]}\n", rows.String()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got [2]map[string]string
			for i, engine := range []string{"local", "temporal"} {
				c := &cluster{t: t, dir: t.TempDir(), server: server, address: server.Address(), offline: true}
				c.write("app.qtype.yaml", test.document)
				c.write("in.csv", test.rows)
				args := []string{"run", "app.qtype.yaml", "-I", "in.csv", "-o", "out.jsonl", "--errors", "failed.csv", "--engine", engine}
				if engine == "temporal" {
					c.worker()
					args = append(args, "--chunk", "7")
				}
				status, _, errs := c.qtype(args...)
				if status > 1 {
					t.Fatalf("%s: %d: %s", engine, status, errs)
				}
				got[i] = map[string]string{"status": fmt.Sprint(status), "out": c.read("out.jsonl"), "failed": c.read("failed.csv"), "rows": rowLine(errs)}
				for session := range 3 {
					if strings.Contains(test.document, "memory: talk") && test.rows == rows.String() {
						got[i][fmt.Sprint("session ", session)] = c.history(c.dir, fmt.Sprint("s", session))
					}
				}
			}
			if diff := cmp.Diff(got[0], got[1]); diff != "" {
				t.Error(diff)
			}
			t.Log(got[0]["rows"])
		})
	}
}

// rowLine returns the numbers of rows in a summary.
func rowLine(summary string) string {
	for line := range strings.Lines(summary) {
		if before, _, ok := strings.Cut(line, ", written to"); ok && strings.Contains(before, " row") {
			return before
		}
	}
	return summary
}

// TestTemporal_BatchesCanceled: a run that is canceled behind the first batch step continues after the rows that are finished.
func TestTemporal_BatchesCanceled(t *testing.T) {
	t.Parallel()
	const rows, groups = 60, 12
	s, model := newSummaries(t, rows+groups/2)
	s.pause = 200 * time.Millisecond
	c := newCluster(t, fmt.Sprintf(summarizes, model.URL), messagesOf(rows))
	c.worker()
	run := []string{"run", "app.qtype.yaml", "-I", "in.csv", "-o", "out.jsonl", "--engine", "temporal", "--chunk", "7", "--heartbeat", "2s"}
	started := c.command(t.Context(), run...)
	if err := started.Start(); err != nil {
		t.Fatal(err)
	}
	<-s.ready
	if err := started.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := started.Wait(); err == nil {
		t.Fatal("the run was not canceled")
	}
	if status, _, errs := c.qtype(append(run, "--resume")...); status != 0 || !strings.Contains(errs, "12 rows made of 60: 12 done") {
		t.Fatalf("%d: %s", status, errs)
	}
	if n := s.total(); n > rows+groups+1 {
		t.Errorf("%d calls for %d rows and %d groups: only that in flight may be repeated", n, rows, groups)
	}
	made := c.read("out.jsonl")
	if diff := cmp.Diff(c.runLocally(), made); diff != "" {
		t.Error(diff)
	}
}

// TestTemporal_BatchesRetryKilled: rows that were finished before failed rows run again are not repeated either if the worker is
// killed then.
func TestTemporal_BatchesRetryKilled(t *testing.T) {
	t.Parallel()
	const rows, groups, failing = 60, 12, 8
	s, model := newSummaries(t, rows+failing+2)
	c := newCluster(t, fmt.Sprintf(summarizes, model.URL), messagesOf(rows))
	first := c.worker()
	run := []string{"run", "app.qtype.yaml", "-I", "in.csv", "-o", "out.jsonl", "--engine", "temporal", "--chunk", "7", "--heartbeat", "2s"}
	s.setFail(fmt.Sprintf("summary of [\"answer to message %d.", 5*(failing-1)))
	if status, _, errs := c.qtype(append(run, "--max-failures", "1")...); status != 1 {
		t.Fatalf("%d: %s", status, errs)
	}
	s.setFail("")
	s.total()
	s.mu.Lock()
	s.pause = 300 * time.Millisecond
	s.mu.Unlock()
	result := c.begin(append(run, "--resume", "--retry-failed")...)
	<-s.ready
	time.Sleep(500 * time.Millisecond) // some rows of this attempt are stored
	if err := first.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	c.worker()
	if got := <-result; !strings.HasPrefix(got, "0\n") {
		t.Fatal(got)
	}
	if n := s.total(); n > groups-failing+2 {
		t.Errorf("%d calls: %d groups were finished before", n, failing-1)
	}
	made := c.read("out.jsonl")
	if diff := cmp.Diff(c.runLocally(), made); diff != "" {
		t.Error(diff)
	}
}

// TestTemporal_BatchesSync: a row that failed in a flow that a step before IndexUpsert runs, and was dropped there, is no reason to
// remove its entry.
func TestTemporal_BatchesSync(t *testing.T) {
	t.Parallel()
	document := `id: syncs
models: [{type: EmbeddingModel, id: vectors, provider: mock, dimensions: 16}]
indexes: [{type: VectorIndex, id: notes, name: notes, module: embedded, embedding_model: vectors}]
flows:
  - id: main
    variables: [{id: chunk, type: RAGChunk}, {id: raw, type: text}, {id: a, type: int}]
    inputs: [chunk, raw]
    outputs: [chunk]
    steps:
      - {type: InvokeFlow, id: call, flow: inner, input_bindings: {raw: raw}, output_bindings: {a: a}}
      - {type: IndexUpsert, id: write, index: notes, sync: true, inputs: [chunk]}
  - id: inner
    variables: [{id: raw, type: text}, {id: a, type: int}]
    inputs: [raw]
    outputs: [a]
    steps:
      - {type: Decoder, id: dec, format: json, inputs: [raw], outputs: [a], on_error: skip}
`
	c := newCluster(t, document, "")
	c.offline = true
	rows := func(second string) string {
		var all strings.Builder
		for i, raw := range []string{`{"a": 1}`, second, `{"a": 3}`} {
			fmt.Fprintf(&all, `{"chunk": {"chunk_id": "c%d", "document_id": "d", "content": "text", "metadata": {}}, "raw": %q}`+"\n", i, raw)
		}
		return all.String()
	}
	c.write("good.jsonl", rows(`{"a": 2}`))
	c.write("bad.jsonl", rows("none"))
	c.worker()
	for _, run := range []struct{ input, want string }{{"good.jsonl", "3 written, 0 unchanged"}, {"bad.jsonl", "0 written, 2 unchanged, nothing removed"}} {
		status, _, errs := c.qtype("run", "app.qtype.yaml", "-f", "main", "-I", run.input, "-o", "out.jsonl", "--engine", "temporal")
		if status != 0 || !strings.Contains(errs, run.want) {
			t.Errorf("%s: %d: %s", run.input, status, errs)
		}
	}
}

// TestTemporal_BatchesCompleted: --resume of a run whose output is written is an error that leaves the output and the failed rows as
// they are.
func TestTemporal_BatchesCompleted(t *testing.T) {
	t.Parallel()
	s, model := newSummaries(t, 0)
	s.setFail("message 3.")
	c := newCluster(t, fmt.Sprintf(summarizes, model.URL), messagesOf(20))
	c.worker()
	run := []string{"run", "app.qtype.yaml", "-I", "in.csv", "-o", "out.jsonl", "--errors", "failed.csv", "--engine", "temporal"}
	if status, _, errs := c.qtype(run...); status != 1 || !strings.Contains(errs, "1 failed") {
		t.Fatalf("%d: %s", status, errs)
	}
	output, failed := c.read("out.jsonl"), c.read("failed.csv")
	if status, _, errs := c.qtype(append(run, "--resume")...); status != 1 || !strings.Contains(errs, "no interrupted run found for out.jsonl: workflow") {
		t.Errorf("%d: %s", status, errs)
	}
	if diff := cmp.Diff([]string{output, failed}, []string{c.read("out.jsonl"), c.read("failed.csv")}); diff != "" || !strings.Contains(failed, "message 3.") {
		t.Error(diff)
	}
}
