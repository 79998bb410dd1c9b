package temporal

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	enums "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"github.com/qtype-dev/qtype/internal/server/runs"
	"github.com/qtype-dev/qtype/internal/servertest"
	"github.com/qtype-dev/qtype/internal/testkit"
)

// laneStarts is a client that notes which lanes it starts.
type laneStarts struct {
	client.Client

	mu     sync.Mutex
	newest string
}

// ExecuteWorkflow starts a workflow.
func (c *laneStarts) ExecuteWorkflow(ctx context.Context, o client.StartWorkflowOptions, name any, args ...any) (client.WorkflowRun, error) {
	if name == laneName {
		c.mu.Lock()
		c.newest = o.ID
		c.mu.Unlock()
	}
	return c.Client.ExecuteWorkflow(ctx, o, name, args...)
}

// useLanes lets turns run in lanes.
func (k *talks) useLanes() (newest func() string) {
	started := &laneStarts{Client: k.server.client}
	k.server.client = started
	k.lane = func() string {
		started.mu.Lock()
		defer started.mu.Unlock()
		return started.newest
	}
	return k.lane
}

// record writes the history of a workflow for TestReplay, if QTYPE_RECORD is set.
func (k *talks) record(id, name string) {
	k.t.Helper()
	folder := os.Getenv("QTYPE_RECORD")
	if folder == "" {
		return
	}
	out, err := exec.CommandContext(k.t.Context(), servertest.TemporalProgram(), "workflow", "show", "--address", k.cfg.Address, "-w", id, "--output", "json").Output()
	testkit.Must(k.t, err)
	testkit.Must(k.t, os.WriteFile(filepath.Join(folder, name), out, 0o600))
}

// awaitEnd waits for the end of a workflow.
func (k *talks) awaitEnd(id string, want enums.WorkflowExecutionStatus) {
	k.t.Helper()
	_ = k.server.client.GetWorkflow(k.t.Context(), id, "").Get(k.t.Context(), nil) // it may be canceled
	found, err := k.server.client.DescribeWorkflowExecution(k.t.Context(), id, "")
	testkit.Must(k.t, err)
	if got := found.GetWorkflowExecutionInfo().GetStatus(); got != want {
		k.t.Errorf("the workflow is %s, want %s", got, want)
	}
}

// wantShown checks what qtype runs show has of a lane.
func (k *talks) wantShown(id, status string, rows int64) {
	k.t.Helper()
	shown, err := Engine{}.Show(k.t.Context(), k.cfg, id)
	testkit.Must(k.t, err)
	if shown.Status != status || shown.Rows != rows || shown.Flow != "main" || shown.Document != "talk" || shown.Reason != "" {
		k.t.Errorf("got %+v, want %s with %d rows", shown, status, rows)
	}
}

// laneTurn are the events of a turn in a lane.
var laneTurn = []string{"WorkflowTaskScheduled", "WorkflowTaskStarted", "WorkflowTaskCompleted", "WorkflowExecutionUpdateAccepted", "MarkerRecorded", "WorkflowExecutionUpdateCompleted"}

// TestLane: turns are updates of one workflow. One that lasts longer becomes an activity of its worker and ends the lane, and so does one
// that is canceled.
func TestLane(t *testing.T) {
	k := newTalks(t)
	k.useLanes()
	stop := k.work()
	for i := range 3 {
		text := fmt.Sprint("short ", i)
		k.want(k.begin("s", text), text, 1)
	}
	id := k.lane()
	k.record(id, "history_lane.json")
	if all := k.history(id); !slices.Equal(all[len(all)-12:], slices.Concat(laneTurn, laneTurn)) {
		t.Errorf("the events %v", all)
	}
	k.wantShown(id, "running", 3)

	answer := k.hold("long")
	run := k.begin("s", "long")
	k.await(run, "long", true)
	answer()
	k.want(run, "long", 1)
	k.awaitEnd(id, enums.WORKFLOW_EXECUTION_STATUS_COMPLETED)
	k.wantShown(id, "completed", 4)
	k.record(id, "history_lane_long.json")

	answer = k.hold("canceled")
	defer answer()
	k.server.cfg.Heartbeat = 20 * time.Second // it would become an activity after 5
	run = k.begin("s", "canceled")
	k.await(run, "canceled", false)
	id = k.lane()
	testkit.Must(t, Engine{}.Cancel(t.Context(), k.cfg, id)) // as qtype runs cancel
	testkit.Must(t, run.Wait(t.Context()))
	if s := run.State(); s.Status != runs.Cancelled {
		t.Errorf("got %+v", s)
	}
	k.awaitEnd(id, enums.WORKFLOW_EXECUTION_STATUS_CANCELED)
	if all := k.history(id); slices.Contains(all, "ActivityTaskScheduled") {
		t.Errorf("the turn went on after it was canceled: %v", all)
	}
	k.want(k.begin("s", "after"), "after", 1)
	stop()
	testkit.Must(t, k.manager.Shutdown(t.Context()))
}

// TestLane_Killed: the worker of a lane is killed between two turns. Another one runs the second.
func TestLane_Killed(t *testing.T) {
	k := newTalks(t)
	k.useLanes()
	kill := k.workProcess()
	k.want(k.begin("s", "first"), "first", 1)
	stop := k.work()
	kill()
	k.want(k.begin("s", "second"), "second", 1)
	stop()
	testkit.Must(t, k.manager.Shutdown(t.Context()))
}

// TestLane_Away: a turn whose Temporal is killed ends when it is back. The model is called again, because the first call had no result
// when the turn was sent again.
func TestLane_Away(t *testing.T) {
	k := newTalks(t)
	k.useLanes()
	stop := k.work()
	k.want(k.begin("s", "before"), "before", 1)
	answer := k.hold("in the middle")
	run := k.begin("s", "in the middle")
	k.await(run, "in the middle", false)
	testkit.Must(t, k.temporal.Kill())
	testkit.Must(t, k.temporal.Restart())
	answer()
	testkit.Must(t, run.Wait(t.Context()))
	if s := run.State(); len(s.Results) != 1 || fmt.Sprint(s.Results[0].Outputs[0]) != "answer to in the middle" {
		t.Errorf("got %+v, %v", s, run.Err())
	}
	messages := 0
	for _, err := range k.app.Memory("talk").History(t.Context(), "s") {
		testkit.Must(t, err)
		messages++
	}
	if messages != 4 {
		t.Errorf("the session has %d messages, want 4", messages)
	}
	stop()
	testkit.Must(t, k.manager.Shutdown(t.Context()))
}
