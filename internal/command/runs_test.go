//go:build unix

package command

import (
	"encoding/json"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/qtype-dev/qtype/internal/durable"
	"github.com/qtype-dev/qtype/internal/model/modeltest/batchtest"
	"github.com/qtype-dev/qtype/model/modeltest"
)

// TestRuns_Local: a run over rows is listed while it runs, canceled, listed with what is finished, and
// retried, by other processes, in another folder. Finished rows are kept.
func TestRuns_Local(t *testing.T) {
	t.Setenv("QTYPE_HOME", t.TempDir())
	var calls atomic.Int64
	entered, release := make(chan struct{}), make(chan struct{})
	model := httptest.NewServer(modeltest.OpenAI(func(messages []modeltest.Message) (string, int) {
		if calls.Add(1) == 3 {
			close(entered)
			<-release
		}
		return "answer to " + messages[len(messages)-1].Content, 0
	}))
	t.Cleanup(model.Close)
	k := newKillableOf(t, model.URL, map[string]string{"in.csv": "text\n1\n2\n3\n4\n", "app.qtype.yaml": `id: answers
models: [{type: Model, id: m, provider: openai, model_id: gpt-6-luna, base_url: "%s/v1", retry: {max_attempts: 1}}]
flows:
  - id: main
    variables: [{id: text, type: text}, {id: answer, type: text}]
    inputs: [text]
    outputs: [answer]
    steps: [{type: LLMInference, id: say, model: m, inputs: [text], outputs: [answer], concurrency_config: {num_workers: 1}}]
`}, "out.jsonl")
	elsewhere := filepath.Dir(k.dir)
	id := filepath.Join(k.dir, "out.jsonl")
	want := durable.Run{ID: id, Engine: durable.Local, Flow: "main", Status: "running", Rows: 2, Input: filepath.Join(k.dir, "in.csv"), Document: "answers"}
	check := func() {
		t.Helper()
		if diff := cmp.Diff([]durable.Run{want}, localRuns(t, elsewhere, k.dir), cmpopts.IgnoreFields(durable.Run{}, "Started")); diff != "" {
			t.Error(diff)
		}
	}
	run := k.start(t.Context(), t)
	<-entered
	check()
	if status, out := qtypeIn(t, elsewhere, "runs", "retry", id, "--engine", "local"); status != 1 || !strings.Contains(out, "cannot be retried: it is running") {
		t.Errorf("retry of a run that runs: %d: %s", status, out)
	}
	if status, out := qtypeIn(t, elsewhere, "runs", "cancel", id, "--engine", "local"); status != 0 {
		t.Fatalf("cancel: %d: %s", status, out)
	}
	if err := run.Wait(); err == nil || run.ProcessState.ExitCode() != 1 {
		t.Errorf("the canceled run: %v", err)
	}
	close(release)
	want.Status = "interrupted"
	check()
	if status, out := qtypeIn(t, elsewhere, "runs", "retry", id, "--engine", "local"); status != 0 || !strings.Contains(out, "qtype run app.qtype.yaml -I in.csv -o out.jsonl -q --resume") {
		t.Errorf("retry: %d: %s", status, out)
	}
	text, err := os.ReadFile(id)
	if err != nil || strings.Count(string(text), "answer to") != 4 {
		t.Errorf("%v: %s", err, text)
	}
	if n := calls.Load(); n != 5 {
		t.Errorf("%d calls, want 5: that of row 3 was interrupted", n)
	}
	if left := localRuns(t, elsewhere, k.dir); len(left) > 0 {
		t.Errorf("a complete run is listed: %+v", left)
	}
}

// TestRuns_Foreign: a journal of another user is listed as unreadable, and its command is not run.
func TestRuns_Foreign(t *testing.T) {
	t.Setenv("QTYPE_HOME", t.TempDir())
	dir := t.TempDir()
	for name, text := range map[string]string{
		"app.qtype.yaml": "id: a\nmodels: [{type: Model, id: m, provider: mock, rules: [{error: no key, status: 400}]}]\nflows: [{id: main, variables: [{id: x, type: text}, {id: y, type: text}], inputs: [x], outputs: [y], steps: [{type: LLMInference, id: s, model: m, inputs: [x], outputs: [y]}]}]\n",
		"in.csv":         "x\n1\n2\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if status, out := qtypeIn(t, dir, "run", "app.qtype.yaml", "-I", "in.csv", "-o", "out.csv", "--fail-fast"); status != 1 {
		t.Fatalf("%d: %s", status, out)
	}
	if got := localRuns(t, dir, "."); len(got) != 1 || got[0].Status != "interrupted" || got[0].ID != "out.csv" {
		t.Fatalf("listed as %+v", got)
	}
	t.Setenv("QTYPE_HOME", t.TempDir())
	if got := localRuns(t, dir, "."); len(got) != 1 || got[0].Status != "unreadable" || !strings.Contains(got[0].Reason, "was not written with the key") || got[0].Flow != "" {
		t.Errorf("listed as %+v", got)
	}
	if status, out := qtypeIn(t, dir, "runs", "retry", "out.csv", "--engine", "local"); status != 1 || !strings.Contains(out, "cannot be retried: it is unreadable") {
		t.Errorf("retry: %d: %s", status, out)
	}
}

// localRuns returns what qtype runs list has of a folder.
func localRuns(t *testing.T, dir, folder string) (all []durable.Run) {
	t.Helper()
	status, out := qtypeIn(t, dir, "runs", "list", "--engine", "local", "--in", folder, "--format", "json")
	if status != 0 {
		t.Fatalf("%d: %s", status, out)
	}
	for line := range strings.Lines(out) {
		var r durable.Run
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		all = append(all, r)
	}
	return all
}

// qtypeIn runs a command in a folder and returns its status and what it writes.
func qtypeIn(t *testing.T, dir string, args ...string) (status int, out string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "qtype", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "OPENAI_API_KEY=x", "NO_PROXY=*")
	text, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(text)
}

// TestRuns_Batches: a run whose batches are at the provider is listed and shown; it is canceled there, and retried by
// other processes, in another folder. No call is paid twice.
func TestRuns_Batches(t *testing.T) {
	t.Setenv("QTYPE_HOME", t.TempDir())
	server := batchtest.New(1, batchtest.Faults{Polls: 1}, batchtest.Deterministic)
	at := httptest.NewServer(server)
	t.Cleanup(at.Close)
	dir := batchFolder(t, at.URL)
	elsewhere, id := t.TempDir(), filepath.Join(dir, "out.jsonl")
	run := []string{"run", "app.qtype.yaml", "-I", "in.csv", "-o", "out.jsonl", "--batch"}
	if status, out := qtypeIn(t, dir, append(run, "--cancel")...); status != 1 || !strings.Contains(out, "out.jsonl has no batches of an interrupted run") {
		t.Errorf("cancel before the run: %d: %s", status, out)
	}
	if status, out := qtypeIn(t, dir, append(run, "--detach")...); status != 3 {
		t.Fatalf("%d: %s", status, out)
	}
	list := localRuns(t, elsewhere, dir)
	if len(list) != 1 || list[0].Status != "waiting" || list[0].Batches == nil || list[0].Batches.Wave != 1 || len(list[0].Batches.Open) != 1 || list[0].Batches.Waiting() != 4 {
		t.Fatalf("listed as %+v", list)
	}
	if status, out := qtypeIn(t, elsewhere, "runs", "show", id, "--engine", "local"); status != 0 || !strings.Contains(out, "wave 1: 0 of 1 batches have ended, 4 calls left\n  batch "+list[0].Batches.Open[0].ID+": model m, in_progress, 4 calls, since ") {
		t.Errorf("%d: %s", status, out)
	}
	status, out := qtypeIn(t, elsewhere, "runs", "cancel", id, "--engine", "local")
	if status != 0 || server.Canceled() != 1 || !strings.Contains(out, "1 batch of the earlier run canceled; collect the answers that were paid, and send the other calls again, with: qtype run app.qtype.yaml -I in.csv -o out.jsonl --batch --resume") {
		t.Errorf("cancel: %d: %s", status, out)
	}
	if status, out := qtypeIn(t, elsewhere, "runs", "retry", id, "--engine", "local"); status != 0 {
		t.Errorf("retry: %d: %s", status, out)
	}
	if calls, twice := server.Paid(); calls != 4 || twice > 0 {
		t.Errorf("%d calls were paid, %d twice", calls, twice)
	}
	if left := localRuns(t, elsewhere, dir); len(left) > 0 {
		t.Errorf("a complete run is listed: %+v", left)
	}
}

// batchFolder returns a folder with a document whose model has batches at an address, and four rows.
func batchFolder(t *testing.T, url string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"in.csv": "text\n1\n2\n3\n4\n", "app.qtype.yaml": `id: answers
models: [{type: Model, id: m, provider: openai, model_id: gpt-6-luna, api: chat, base_url: "` + url + `/v1"}]
flows:
  - id: main
    variables: [{id: text, type: text}, {id: answer, type: text}]
    inputs: [text]
    outputs: [answer]
    steps: [{type: LLMInference, id: say, model: m, inputs: [text], outputs: [answer]}]
`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
