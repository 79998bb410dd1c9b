package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/qtype-dev/qtype/internal/durable"
	"github.com/qtype-dev/qtype/internal/servertest"
	"github.com/qtype-dev/qtype/model/modeltest"
)

// talks is a flow with a memory.
const talks = `id: talks
models: [{type: Model, id: m, provider: openai, model_id: gpt-6-luna, base_url: "%s/v1", retry: {max_attempts: 1}}]
memories: [{id: talk, policy: message_window, max_messages: 4}]
flows:
  - id: main
    variables: [{id: text, type: text}, {id: answer, type: text}]
    inputs: [text]
    outputs: [answer]
    steps: [{type: LLMInference, id: say, model: m, memory: talk, inputs: [text], outputs: [answer]}]
`

// computes is a flow that only computes: one row of 7 fails.
const computes = `id: computes
flows:
  - id: main
    variables: [{id: n, type: int}, {id: list, type: 'list[int]'}, {id: one, type: int}, {id: text, type: text}]
    inputs: [n]
    outputs: [n, one, text]
    steps:
      - {type: Transform, id: make, set: {list: '[n, n * 2]'}}
      - {type: Explode, id: each, inputs: [list], outputs: [one]}
      - {type: PromptTemplate, id: write, template: "{one} of {n}", inputs: [n, one], outputs: [text]}
`

// counted is a flow that counts the rows of a conversation between two of its turns.
const counted = `id: counted
models: [{type: Model, id: m, provider: mock, model_id: m}]
memories: [{id: talk}]
flows:
  - id: main
    variables: [{id: text, type: text}, {id: answer, type: text}, {id: stats, type: AggregateStats}, {id: last, type: text}]
    inputs: [text]
    outputs: [last]
    steps:
      - {type: LLMInference, id: say, model: m, memory: talk, inputs: [text], outputs: [answer]}
      - {type: Aggregate, id: count, outputs: [stats]}
      - {type: LLMInference, id: again, model: m, memory: talk, inputs: [answer], outputs: [last]}
`

// cluster is a folder with a document, and a Temporal server.
type cluster struct {
	t      *testing.T
	dir    string
	server *servertest.Server

	offline bool   // no key, so that mocks answer
	address string // of Temporal
	temp    string // the folder for temporary files; empty for that of the test
}

// key returns the key of the provider.
func (c *cluster) key() string {
	if c.offline {
		return ""
	}
	return "x"
}

func newCluster(t *testing.T, document string, rows string) *cluster {
	t.Helper()
	server, err := servertest.Temporal()
	servertest.Need(t, err)
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	c := &cluster{t: t, dir: t.TempDir(), server: server, address: server.Address()}
	c.write("app.qtype.yaml", document)
	c.write("in.csv", rows)
	return c
}

func (c *cluster) write(name, text string) {
	c.t.Helper()
	if err := os.WriteFile(filepath.Join(c.dir, name), []byte(text), 0o600); err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) read(name string) string {
	c.t.Helper()
	text, err := os.ReadFile(filepath.Join(c.dir, name))
	if err != nil {
		c.t.Fatal(err)
	}
	return string(text)
}

// command returns a call of qtype in the folder.
func (c *cluster) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "qtype", args...)
	cmd.Dir = c.dir
	cmd.Env = append(os.Environ(), "OPENAI_API_KEY="+c.key(), "NO_PROXY=*", "TEMPORAL_ADDRESS="+c.address)
	if c.temp != "" {
		cmd.Env = append(cmd.Env, "TMPDIR="+c.temp)
	}
	return cmd
}

// qtype runs a command to its end and returns its exit status and output.
func (c *cluster) qtype(args ...string) (status int, stdout, stderr string) {
	c.t.Helper()
	cmd := c.command(c.t.Context(), args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		c.t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

// begin begins a command. The channel gets its exit status and messages.
func (c *cluster) begin(args ...string) <-chan string {
	result := make(chan string, 1)
	go func() {
		status, _, stderr := c.qtype(args...)
		result <- fmt.Sprintf("%d\n%s", status, stderr)
	}()
	return result
}

// start begins a run of the rows of the file on workers.
func (c *cluster) start(flags ...string) <-chan string {
	return c.begin(append([]string{"run", "app.qtype.yaml", "-I", "in.csv", "-o", "out.jsonl", "--engine", "temporal"}, flags...)...)
}

// worker starts a worker and waits until it polls.
func (c *cluster) worker(args ...string) *exec.Cmd {
	c.t.Helper()
	cmd := c.command(context.WithoutCancel(c.t.Context()), append([]string{"worker", "app.qtype.yaml"}, args...)...)
	errs, err := cmd.StderrPipe()
	if err != nil {
		c.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()
	})
	lines := bufio.NewScanner(errs)
	for lines.Scan() {
		if strings.Contains(lines.Text(), "task queue") {
			go func() { _, _ = io.Copy(io.Discard, errs) }()
			return cmd
		}
		c.t.Log(lines.Text())
	}
	c.t.Fatal("the worker has not started")
	return nil
}

// history returns the messages of a session.
func (c *cluster) history(dir, session string, flags ...string) string {
	c.t.Helper()
	cmd := c.command(c.t.Context(), append([]string{"memory", "export", "app.qtype.yaml", "-m", "talk", "-s", session}, flags...)...)
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		c.t.Fatal(err)
	}
	var lines strings.Builder
	for line := range strings.Lines(string(out)) {
		var m struct{ Role, Content string }
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			c.t.Fatal(err)
		}
		fmt.Fprintln(&lines, m.Role, m.Content)
	}
	return lines.String()
}

// startModel starts a server whose model repeats the message. It closes the channel when a call
// with this number arrives; calls is their number.
func startModel(t *testing.T, number int64) (server *httptest.Server, calls *atomic.Int64, reached chan struct{}) {
	calls = &atomic.Int64{}
	reached = make(chan struct{})
	server = httptest.NewServer(modeltest.OpenAI(func(messages []modeltest.Message) (string, int) {
		if calls.Add(1) == number {
			close(reached)
		}
		return "answer to " + messages[len(messages)-1].Content, 0
	}))
	t.Cleanup(server.Close)
	return server, calls, reached
}

// TestTemporal_KilledWorker: a worker and the server are killed while they work. Every row is
// once in the output, which is that of a local run, and every turn once in its conversation.
func TestTemporal_KilledWorker(t *testing.T) {
	t.Parallel()
	const rows, sessions = 60, 6
	model, calls, half := startModel(t, rows/2)
	var input strings.Builder
	input.WriteString("session,text\n")
	for i := range rows {
		fmt.Fprintf(&input, "s%d,message %d\n", i%sessions, i)
	}
	c := newCluster(t, fmt.Sprintf(talks, model.URL), input.String())
	first := c.worker()
	result := c.start("--chunk", "4", "--heartbeat", "2s")
	<-half
	if err := first.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := c.server.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := c.server.Restart(); err != nil {
		t.Fatal(err)
	}
	c.worker()
	got := <-result
	if !strings.HasPrefix(got, "0\n") || !strings.Contains(got, "60 rows: 60 done, written to out.jsonl,") || !strings.Contains(got, "memory talk: 6 sessions") {
		t.Fatal(got)
	}
	if n := calls.Load(); n > rows+sessions {
		t.Errorf("%d calls for %d rows: only those in flight may be repeated", n, rows)
	}
	local := t.TempDir()
	for _, name := range []string{"app.qtype.yaml", "in.csv"} {
		if err := os.WriteFile(filepath.Join(local, name), []byte(c.read(name)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := c.command(t.Context(), "run", "app.qtype.yaml", "-I", "in.csv", "-o", "out.jsonl", "-q")
	cmd.Dir = local
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	want, err := os.ReadFile(filepath.Join(local, "out.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), c.read("out.jsonl")); diff != "" {
		t.Error(diff)
	}
	for i := range sessions {
		session := fmt.Sprintf("s%d", i)
		if diff := cmp.Diff(c.history(local, session), c.history(c.dir, session)); diff != "" {
			t.Errorf("session %s:\n%s", session, diff)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(c.dir, ".qtype", "blobs", "*")); len(left) > 0 {
		t.Errorf("the blobs were not deleted: %v", left)
	}
	c.save("history_activities.json")
}

// answers is a flow without a memory: nothing but checkpoints protects its calls.
const answers = `id: answers
models: [{type: Model, id: m, provider: openai, model_id: gpt-6-luna, base_url: "%s/v1", retry: {max_attempts: 1}}]
flows:
  - id: main
    variables: [{id: text, type: text}, {id: answer, type: text}]
    inputs: [text]
    outputs: [answer]
    steps: [{type: LLMInference, id: say, model: m, inputs: [text], outputs: [answer]}]
`

// TestTemporal_Checkpoint: another worker continues the chunk of a killed one: finished rows
// are not run again, apart from those of the last moment.
func TestTemporal_Checkpoint(t *testing.T) {
	t.Parallel()
	const rows, killed, lost = 40, 25, 12
	var calls atomic.Int64
	reached := make(chan struct{})
	model := httptest.NewServer(modeltest.OpenAI(func(messages []modeltest.Message) (string, int) {
		if calls.Add(1) == killed {
			close(reached)
		}
		time.Sleep(20 * time.Millisecond) // as a fast model
		return "answer to " + messages[len(messages)-1].Content, 0
	}))
	t.Cleanup(model.Close)
	var input, want strings.Builder
	input.WriteString("text\n")
	for i := range rows {
		text := fmt.Sprintf("message %d %s", i, strings.Repeat("x", 300)) // too much for a history
		fmt.Fprintln(&input, text)
		fmt.Fprintf(&want, `{"row":%d,"answer":"answer to %s","error":null}`+"\n", i+1, text)
	}
	c := newCluster(t, fmt.Sprintf(answers, model.URL), input.String())
	first := c.worker()
	result := c.start("--heartbeat", "2s")
	<-reached
	if err := first.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	c.worker()
	if got := <-result; !strings.HasPrefix(got, "0\n") || !strings.Contains(got, "40 rows: 40 done") {
		t.Fatal(got)
	}
	if n := calls.Load(); n > rows+lost {
		t.Errorf("%d calls for %d rows, want at most %d", n, rows, rows+lost)
	}
	t.Logf("%d calls for %d rows", calls.Load(), rows)
	if diff := cmp.Diff(want.String(), c.read("out.jsonl")); diff != "" {
		t.Error(diff)
	}
}

// runs returns what qtype runs list has.
func (c *cluster) runs(args ...string) []durable.Run {
	c.t.Helper()
	status, out, errs := c.qtype(append([]string{"runs", "list", "--format", "json"}, args...)...)
	if status != 0 {
		c.t.Fatalf("list: %d: %s", status, errs)
	}
	var all []durable.Run
	for line := range strings.Lines(out) {
		var r durable.Run
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			c.t.Fatal(err)
		}
		all = append(all, r)
	}
	return all
}

// awaitRun returns the newest run when it has a status. The list is some time behind the runs.
func (c *cluster) awaitRun(status string) durable.Run {
	c.t.Helper()
	for {
		all := c.runs()
		if len(all) > 0 && all[0].Status == status {
			return all[0]
		}
		select {
		case <-c.t.Context().Done():
			c.t.Fatalf("no run is %s: %+v", status, all)
		case <-time.After(100 * time.Millisecond): // it polls
		}
	}
}

// save writes the history of the run for TestReplay, if QTYPE_RECORD is set.
func (c *cluster) save(name string) {
	c.t.Helper()
	folder := os.Getenv("QTYPE_RECORD")
	if folder == "" {
		return
	}
	id := c.runs()[0].ID
	out, err := exec.Command(os.Getenv(servertest.TemporalVariable), "workflow", "show", "--address", c.server.Address(), "-w", id, "--output", "json").Output()
	if err != nil {
		c.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, name), out, 0o600); err != nil {
		c.t.Fatal(err)
	}
}

// numbers returns rows for computes; every seventh is not a number.
func numbers(n int) string {
	var rows strings.Builder
	rows.WriteString("n\n")
	for i := range n {
		if i%7 == 6 {
			rows.WriteString("none\n")
			continue
		}
		fmt.Fprintln(&rows, i)
	}
	return rows.String()
}

// TestTemporal_Local: rows of a flow that only computes have the results, the failed rows, the
// summary and the exit status of a local run, also if the server restarts, for few rows and
// for many.
func TestTemporal_Local(t *testing.T) {
	t.Parallel()
	c := newCluster(t, computes, "")
	c.worker()
	for _, n := range []int{0, 3, 1500} {
		c.write("in.csv", numbers(n))
		base := []string{"run", "app.qtype.yaml", "-I", "in.csv"}
		wantStatus, _, wantErrs := c.qtype(append(base, "-o", "want.csv", "--errors", "want-failed.csv")...)
		status, _, errs := c.qtype(append(base, "-o", "got.csv", "--errors", "got-failed.csv", "--engine", "temporal")...)
		if status != wantStatus {
			t.Errorf("%d rows: status %d, want %d: %s", n, status, wantStatus, errs)
		}
		if diff := cmp.Diff(c.read("want.csv"), c.read("got.csv")); diff != "" {
			t.Errorf("%d rows: %s", n, diff)
		}
		if diff := cmp.Diff(c.read("want-failed.csv"), c.read("got-failed.csv")); diff != "" {
			t.Errorf("%d failed rows: %s", n, diff)
		}
		if want, got := summaryOf(wantErrs, "want"), summaryOf(errs, "got"); want != got {
			t.Errorf("%d rows: summary\n%s\nwant\n%s", n, got, want)
		}
	}
	c.save("history_local.json")
	status, _, errs := c.qtype("run", "app.qtype.yaml", "-I", "in.csv", "-o", "failed.csv", "--engine", "temporal", "--fail-fast")
	if want := "error: a row failed: input n: expected int, got \"none\": failed.csv was not written: finished rows are in workflow"; status != 1 || !strings.Contains(errs, want) {
		t.Errorf("failed run: status %d: %s", status, errs)
	}
	for len(c.runs()) < 2 {
		time.Sleep(100 * time.Millisecond) // it polls: the list is some time behind
	}
	_, before, _ := c.qtype("runs", "list")
	if lines := strings.Split(before, "\n"); !strings.HasPrefix(lines[0], "run ") || !strings.Contains(lines[1], "  temporal  completed  ") || !strings.Contains(lines[2], "  temporal  completed  ") {
		t.Errorf("list:\n%s", before)
	}
	id := c.runs()[1].ID // the newest one was stopped
	status, out, errs := c.qtype("runs", "show", id, "--format", "json")
	if status != 0 || !strings.Contains(out, `"status":"completed"`) || !strings.Contains(out, `"rows":2786`) || !strings.Contains(out, `"failed":214`) {
		t.Errorf("show: %d\n%s%s", status, out, errs)
	}
	if status, _, errs = c.qtype("runs", "cancel", "none"); status != 1 || !strings.Contains(errs, "there is no such run") {
		t.Errorf("cancel: %d\n%s", status, errs)
	}
}

// summaryOf returns the first line of a summary without what differs.
func summaryOf(errs, file string) string {
	_, after, _ := strings.Cut(errs, "from in.csv\n")
	line, _, _ := strings.Cut(after, ", written to")
	if rows, others, found := strings.Cut(line, " made of "); found { // an engine counts results, and not the rows of the input
		_, outcome, _ := strings.Cut(others, ":")
		line = rows + ":" + outcome
	}
	rest := strings.Count(errs, "written to "+file+"-failed.csv")
	return fmt.Sprintf("%s %d", line, rest)
}

// TestTemporal_Resume: a run that was canceled is found and continued; another run of the same
// output is not started, and one with another input is not continued.
func TestTemporal_Resume(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	entered := make(chan struct{}, 100)
	release := make(chan struct{})
	model := httptest.NewServer(modeltest.OpenAI(func(messages []modeltest.Message) (string, int) {
		if calls.Add(1) == 3 {
			entered <- struct{}{}
			<-release
		}
		return "answer to " + messages[len(messages)-1].Content, 0
	}))
	t.Cleanup(model.Close)
	c := newCluster(t, fmt.Sprintf(talks, model.URL), "session,text\na,1\na,2\na,3\na,4\n")
	c.worker()
	run := []string{"run", "app.qtype.yaml", "-I", "in.csv", "-o", "out.jsonl", "--engine", "temporal", "--chunk", "1", "--heartbeat", "2s"}
	result := c.begin(run...)
	<-entered
	if status, _, errs := c.qtype(run...); status != 1 || !strings.Contains(errs, "use --resume to continue or --restart") {
		t.Errorf("second run: %d\n%s", status, errs)
	}
	id := c.runs()[0].ID
	if status, _, errs := c.qtype("runs", "cancel", id); status != 0 {
		t.Fatalf("cancel: %d\n%s", status, errs)
	}
	got := <-result
	close(release)
	if !strings.HasPrefix(got, "1\n") || !strings.Contains(got, "the workflow was canceled: out.jsonl was not written: finished rows are in workflow "+id) || !strings.Contains(got, "--resume") {
		t.Errorf("canceled run: %s", got)
	}
	was := c.read("in.csv")
	c.write("in.csv", was+"a,5\n")
	if status, _, errs := c.qtype(append(run, "--resume")...); status != 1 || !strings.Contains(errs, "this is not the run that was interrupted: the input") {
		t.Errorf("resumed with another input: %d\n%s", status, errs)
	}
	c.write("in.csv", was)
	if status, _, errs := c.qtype(append(run, "--resume")...); status != 0 {
		t.Errorf("resumed: %d\n%s", status, errs)
	}
	want := ""
	for i := 1; i <= 4; i++ {
		want += fmt.Sprintf(`{"row":%d,"session":"a","answer":"answer to %d","error":null}`+"\n", i, i)
	}
	if diff := cmp.Diff(want, c.read("out.jsonl")); diff != "" {
		t.Error(diff)
	}
	if n := strings.Count(c.history(c.dir, "a"), "user "); n != 4 {
		t.Errorf("%d questions, want 4", n)
	}
	if n := calls.Load(); n != 5 {
		t.Errorf("%d calls, want 5: that of row 3 was interrupted", n)
	}
}

// TestTemporal_Rejected: what the engine cannot do is an error before anything runs.
func TestTemporal_Rejected(t *testing.T) {
	t.Parallel()
	c := newCluster(t, counted, "session,n,text\na,1,hello\n")
	refused := servertest.Refused(t)
	for _, test := range []struct {
		want string
		args []string
	}{
		{"the rows of flow main cannot be divided among workers: step count of flow main counts rows of a conversation", nil},
		{"no answer from Temporal at " + refused, []string{"--temporal-address", refused, "-f", "main"}},
		{"--ephemeral and --engine temporal exclude each other", []string{"--ephemeral"}},
		{"--heartbeat cannot be 1ms", []string{"--heartbeat", "1ms"}},
		{"--chunk cannot be 0", []string{"--chunk", "0"}},
		{"--approve is a flag of qtype worker", []string{"--approve", "x"}},
	} {
		if strings.HasPrefix(test.want, "no answer") {
			c.write("app.qtype.yaml", computes)
		}
		status, _, errs := c.qtype(append([]string{"run", "app.qtype.yaml", "-I", "in.csv", "--engine", "temporal"}, test.args...)...)
		if status == 0 || !strings.Contains(errs, test.want) {
			t.Errorf("%v: status %d: %s, want %s", test.args, status, errs, test.want)
		}
	}
}
