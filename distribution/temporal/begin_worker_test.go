package temporal

import (
	"context"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	enums "go.temporal.io/api/enums/v1"

	"github.com/qtype-dev/qtype"
	"github.com/qtype-dev/qtype/internal/durable"
	"github.com/qtype-dev/qtype/internal/server/runs"
	"github.com/qtype-dev/qtype/internal/servertest"
	"github.com/qtype-dev/qtype/internal/testkit"
	"github.com/qtype-dev/qtype/model/modeltest"
	"github.com/qtype-dev/qtype/runtime"
)

// talk is a conversation.
const talk = `id: talk
models: [{type: Model, id: m, provider: openai, model_id: gpt-6-luna, base_url: "URL/v1", retry: {max_attempts: 1}}]
memories: [{id: talk, token_limit: 50000}]
flows:
  - id: main
    variables: [{id: text, type: text}, {id: answer, type: text}]
    inputs: [text]
    outputs: [answer]
    steps: [{type: LLMInference, id: say, model: m, memory: talk, inputs: [text], outputs: [answer]}]
`

// talks is a server whose requests run on a worker of this process.
type talks struct {
	t        *testing.T
	app      *runtime.App
	path     string // of the document
	temporal *servertest.Server
	server   *Server
	manager  *runs.Manager
	cfg      durable.Config
	lane     func() string // returns the id of the newest lane; nil if each run has a workflow

	mu   sync.Mutex
	held map[string]chan struct{} // closed when the model may answer a text
	made map[string]int           // calls of the model
}

// newTalks starts Temporal and a server.
func newTalks(t *testing.T) *talks {
	t.Helper()
	at, err := servertest.Temporal()
	servertest.Need(t, err)
	t.Cleanup(func() { testkit.Must(t, at.Close()) })
	k := &talks{t: t, temporal: at, held: map[string]chan struct{}{}, made: map[string]int{}}
	t.Setenv("OPENAI_API_KEY", "x")
	site := httptest.NewServer(modeltest.OpenAI(func(messages []modeltest.Message) (string, int) {
		text := messages[len(messages)-1].Content
		k.mu.Lock()
		k.made[text]++
		held := k.held[text]
		k.mu.Unlock()
		if held != nil {
			<-held
		}
		return "answer to " + text, 0
	}))
	t.Cleanup(site.Close)
	k.path = filepath.Join(t.TempDir(), "app.qtype.yaml")
	testkit.Must(t, os.WriteFile(k.path, []byte(strings.ReplaceAll(talk, "URL", site.URL)), 0o600))
	k.app, err = qtype.Open(t.Context(), k.path, qtype.WithEphemeral())
	testkit.Must(t, err)
	t.Cleanup(func() { testkit.Must(t, k.app.Close(context.Background())) })
	k.cfg = durable.Config{Address: at.Address(), Namespace: durable.DefaultNamespace, Blobs: t.TempDir(), Heartbeat: 4 * time.Second}
	served, err := Engine{}.Serve(t.Context(), k.cfg, slog.New(slog.DiscardHandler))
	testkit.Must(t, err)
	t.Cleanup(served.Close)
	k.server = served.(*Server)
	k.manager = runs.NewManager(runs.Options{Engine: k.server})
	return k
}

// work starts a worker. The returned func stops it, as SIGTERM does, and returns when it has ended.
func (k *talks) work() (stop func()) {
	k.t.Helper()
	ctx, cancel := context.WithCancel(k.t.Context())
	ready, ended := make(chan struct{}), make(chan error, 1)
	cfg := workerConfig(k.cfg)
	cfg.Ready = func([]string, func(context.Context) error) { close(ready) }
	go func() { ended <- Engine{}.Work(ctx, k.app, cfg) }()
	select {
	case <-ready:
	case err := <-ended:
		k.t.Fatal(err)
	}
	return func() {
		cancel()
		if err := <-ended; err != nil {
			k.t.Error(err)
		}
	}
}

// workerConfig returns the configuration of a worker.
func workerConfig(cfg durable.Config) durable.WorkerConfig {
	return durable.WorkerConfig{Config: cfg, Parallel: 4, Requests: 100, Drain: time.Minute}
}

// workerVariable has the configuration of TestWorkerProcess: the document, the address of Temporal and the blobs.
const workerVariable = "QTYPE_TEST_WORKER"

// TestWorkerProcess is the worker that TestBegin_Killed kills.
func TestWorkerProcess(t *testing.T) {
	at := strings.Split(os.Getenv(workerVariable), "\n")
	if len(at) != 3 {
		t.Skip("it is a process of TestBegin_Killed")
	}
	app, err := qtype.Open(t.Context(), at[0], qtype.WithEphemeral())
	testkit.Must(t, err)
	cfg := durable.Config{Address: at[1], Namespace: durable.DefaultNamespace, Blobs: at[2]}
	testkit.Must(t, Engine{}.Work(t.Context(), app, workerConfig(cfg)))
}

// workProcess starts a worker in another process. The returned func kills it.
func (k *talks) workProcess() (kill func()) {
	k.t.Helper()
	cmd := exec.CommandContext(k.t.Context(), os.Args[0], "-test.run=^TestWorkerProcess$")
	cmd.Env = append(os.Environ(), workerVariable+"="+strings.Join([]string{k.path, k.cfg.Address, k.cfg.Blobs}, "\n"))
	testkit.Must(k.t, cmd.Start())
	return func() {
		testkit.Must(k.t, cmd.Process.Kill())
		_ = cmd.Wait() // it was killed
	}
}

// TestBegin_Killed: another worker runs the turns of a killed one, before and after a turn is an activity, of a workflow of the run and of a lane.
func TestBegin_Killed(t *testing.T) {
	k := newTalks(t)
	lanes := k.useLanes()
	kill := k.workProcess()
	var all []*runs.Run
	var answers []func()
	for i, turn := range []struct {
		lane    func() string
		isLater bool
	}{{nil, true}, {lanes, true}, {nil, false}, {lanes, false}} {
		k.lane = turn.lane
		text := fmt.Sprint("killed ", i)
		answers = append(answers, k.hold(text))
		all = append(all, k.begin(text, text))
		k.await(all[i], text, turn.isLater)
	}
	kill()
	for _, answer := range answers {
		answer()
	}
	stop := k.work()
	for i, run := range all {
		k.want(run, fmt.Sprint("killed ", i), 2)
	}
	stop()
	testkit.Must(t, k.manager.Shutdown(t.Context()))
}

// hold lets the model wait for answer before it answers a text.
func (k *talks) hold(text string) (answer func()) {
	held := make(chan struct{})
	k.mu.Lock()
	defer k.mu.Unlock()
	k.held[text] = held
	return func() { close(held) }
}

// begin starts a turn.
func (k *talks) begin(session, text string) *runs.Run {
	k.t.Helper()
	flow, err := k.app.Flow("main")
	testkit.Must(k.t, err)
	rows := []map[string]any{{"text": text}}
	run, err := k.manager.Begin(k.t.Context(), runs.Start{App: k.app, Flow: flow, Owner: "ada", Session: session, Rows: rows, Durable: k.lane == nil})
	testkit.Must(k.t, err)
	return run
}

// workflow returns the id of the workflow of a run, or of the newest lane.
func (k *talks) workflow(run *runs.Run) string {
	if k.lane != nil {
		return k.lane()
	}
	return fmt.Sprintf("qtype-talk-main-%s-%s", run.ID, strconv.FormatInt(run.Created.UnixNano(), 36))
}

// want waits for the answer of a turn, which needs calls of the model, and the events of its workflow but those of its tasks.
func (k *talks) want(run *runs.Run, text string, calls int, events ...string) {
	k.t.Helper()
	testkit.Must(k.t, run.Wait(k.t.Context()))
	if s := run.State(); len(s.Results) != 1 || fmt.Sprint(s.Results[0].Outputs[0]) != "answer to "+text {
		k.t.Errorf("%s: got %+v, %v", text, s, run.Err())
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.made[text] != calls {
		k.t.Errorf("%s: %d calls of the model, want %d", text, k.made[text], calls)
	}
	if events == nil {
		return
	}
	all := slices.DeleteFunc(k.history(k.workflow(run)), func(name string) bool { return strings.HasPrefix(name, "WorkflowTask") })
	if !slices.Equal(all, events) {
		k.t.Errorf("%s: the events %v, want %v", text, all, events)
	}
}

// history returns the types of the events of a workflow.
func (k *talks) history(id string) (all []string) {
	k.t.Helper()
	every := enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT
	for history := k.server.client.GetWorkflowHistory(k.t.Context(), id, "", false, every); history.HasNext(); {
		event, err := history.Next()
		testkit.Must(k.t, err)
		all = append(all, event.GetEventType().String())
	}
	return all
}

// await returns when the model got a text and, if isActivity is set, an activity runs the turn.
func (k *talks) await(run *runs.Run, text string, isActivity bool) {
	k.t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) { // it polls
		k.mu.Lock()
		isCalled := k.made[text] > 0
		k.mu.Unlock()
		found, err := k.server.client.DescribeWorkflowExecution(k.t.Context(), k.workflow(run), "")
		all := found.GetPendingActivities()
		if isCalled && err == nil && (!isActivity || len(all) == 1 && all[0].GetState() == enums.PENDING_ACTIVITY_STATE_STARTED) {
			return
		}
		if time.Now().After(end) {
			k.t.Fatalf("%s: not begun: %v, %v", text, found, err)
		}
	}
}

// TestBegin_Worker: a turn that ends before its first heartbeat needs no activity; a longer one becomes one of its worker. A worker that
// is stopped lets the call of either end, and another worker repeats none.
func TestBegin_Worker(t *testing.T) {
	k := newTalks(t)
	stop := k.work()
	short := k.begin("s", "short")
	k.want(short, "short", 1, "WorkflowExecutionStarted", "MarkerRecorded", "WorkflowExecutionCompleted")

	k.record(k.workflow(short), "history_request.json")
	answer := k.hold("long")
	run := k.begin("s", "long")
	k.await(run, "long", true)
	answer()
	k.want(run, "long", 1, "WorkflowExecutionStarted", "MarkerRecorded",
		"ActivityTaskScheduled", "ActivityTaskStarted", "ActivityTaskCompleted", "WorkflowExecutionCompleted")

	for _, later := range []bool{false, true} {
		text := fmt.Sprint("stopped ", later)
		answer := k.hold(text)
		run := k.begin("s", text)
		k.await(run, text, later)
		next := k.work()
		time.AfterFunc(100*time.Millisecond, answer)
		stop()
		k.want(run, text, 1)
		stop = next
	}

	answer = k.hold("canceled")
	defer answer()
	run = k.begin("s", "canceled")
	k.await(run, "canceled", true)
	run.Cancel()
	testkit.Must(t, run.Wait(t.Context()))
	if s := run.State(); s.Status != runs.Cancelled {
		t.Errorf("got %+v", s)
	}
	k.awaitEnd(k.workflow(run), enums.WORKFLOW_EXECUTION_STATUS_CANCELED) // a worker that is stopped before lets the call end
	stop()
	testkit.Must(t, k.manager.Shutdown(t.Context()))
}
