package temporal

import (
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

// newEnvironment returns an environment in which chunks are run by a func.
func newEnvironment(run func(task) (done, error)) *testsuite.TestWorkflowEnvironment {
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestWorkflowEnvironment()
	env.SetWorkerOptions(worker.Options{DeadlockDetectionTimeout: time.Minute}) // the machine may be busy
	env.RegisterWorkflowWithOptions(runWorkflow, workflow.RegisterOptions{Name: workflowName})
	env.RegisterActivityWithOptions(func(t task) (done, error) { return run(t) }, activity.RegisterOptions{Name: activityName})
	return env
}

// planFor returns a plan with partitions of these lengths.
func planFor(partitions ...int) plan {
	return plan{Run: "r", Flow: "f", Partitions: partitions, Heartbeat: time.Minute, HistoryLimit: historyLimit}
}

// TestWorkflow: the chunks of a partition run in order, each once, and the results are counted.
func TestWorkflow(t *testing.T) {
	for _, local := range []bool{false, true} {
		t.Run(fmt.Sprintf("local=%t", local), func(t *testing.T) {
			var mu sync.Mutex
			ran := map[int][]int{}
			env := newEnvironment(func(in task) (done, error) {
				mu.Lock()
				defer mu.Unlock()
				ran[in.Partition] = append(ran[in.Partition], in.Number)
				return done{Rows: 10, Failed: 1, Steps: []stepStats{{Step: "s", In: 10}}}, nil
			})
			p := planFor(3, 0, 2)
			p.Local = local
			env.ExecuteWorkflow(workflowName, p)
			var s state
			if err := env.GetWorkflowResult(&s); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(map[int][]int{0: {0, 1, 2}, 2: {0, 1}}, ran); diff != "" {
				t.Error(diff)
			}
			if s.Rows != 50 || s.Failed != 5 || s.Steps[0].In != 50 || !slices.Equal(s.Next, []int{3, 0, 2}) {
				t.Errorf("got %+v", s)
			}
		})
	}
}

// TestWorkflow_Failures: errors of a flow are not repeated, others are, and what is finished
// is part of the error, so that the run can be resumed.
func TestWorkflow_Failures(t *testing.T) {
	calls := 0
	env := newEnvironment(func(in task) (done, error) {
		calls++
		switch {
		case in.Number == 1:
			return done{}, temporal.NewNonRetryableApplicationError("stopped: no key", outageError, nil)
		case calls < 3:
			return done{}, fmt.Errorf("the blobs are not reachable")
		}
		return done{Rows: 1}, nil
	})
	env.ExecuteWorkflow(workflowName, planFor(2))
	err := env.GetWorkflowError()
	s, ok := stateOf(err)
	if !ok || !slices.Equal(s.Next, []int{1}) || calls != 4 {
		t.Errorf("after %d calls: got %v and %+v", calls, err, s)
	}
	if text := explain(err).Error(); text != "stopped: no key" {
		t.Errorf("got %q", text)
	}
}

// TestWorkflow_Outages: rows in chunks of one row end the run, too, if they fail for a reason for which all would.
func TestWorkflow_Outages(t *testing.T) {
	calls := 0
	env := newEnvironment(func(task) (done, error) {
		if calls++; calls == 3 {
			return done{Rows: 1}, nil
		}
		return done{Rows: 1, Failed: 1, Outages: 1, Outage: "the model rejects the key"}, nil
	})
	env.ExecuteWorkflow(workflowName, planFor(20))
	err := env.GetWorkflowError()
	if s, ok := stateOf(err); !ok || calls != 6 || s.Failed != 5 || explain(err).Error() != "stopped: 3 rows in a row failed: the model rejects the key" {
		t.Errorf("after %d calls: %v, %+v", calls, err, s)
	}
}

// TestWorkflow_MaxFailures: no chunk is started after as many failed rows as allowed.
func TestWorkflow_MaxFailures(t *testing.T) {
	env := newEnvironment(func(task) (done, error) { return done{Rows: 2, Failed: 1}, nil })
	p := planFor(9)
	p.MaxFailures = 3
	env.ExecuteWorkflow(workflowName, p)
	s, ok := stateOf(env.GetWorkflowError())
	if !ok || s.Next[0] != 3 || s.Failed != 3 {
		t.Errorf("got %+v, %v", s, env.GetWorkflowError())
	}
}

// TestWorkflow_ContinueAsNew: a long history ends, and the next execution begins behind it.
func TestWorkflow_ContinueAsNew(t *testing.T) {
	env := newEnvironment(func(in task) (done, error) { return done{Rows: 1, Output: []byte{byte(in.Number)}}, nil })
	env.SetCurrentHistoryLength(historyLimit)
	p := planFor(2)
	p.State = state{Next: []int{1}, Inline: []map[int][]byte{{0: {7}}}, Rows: 1}
	env.ExecuteWorkflow(workflowName, p)
	if !workflow.IsContinueAsNewError(env.GetWorkflowError()) {
		t.Fatal(env.GetWorkflowError())
	}
	env = newEnvironment(func(in task) (done, error) { return done{Rows: 1, Output: []byte{byte(in.Number)}}, nil })
	env.ExecuteWorkflow(workflowName, p)
	var s state
	if err := env.GetWorkflowResult(&s); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(state{Next: []int{2}, Inline: []map[int][]byte{{0: {7}, 1: {1}}}, Rows: 2}, s, cmpopts.EquateEmpty()); diff != "" {
		t.Error(diff)
	}
}

// TestWorkflow_Cancel: a workflow that is canceled has what is finished.
func TestWorkflow_Cancel(t *testing.T) {
	var env *testsuite.TestWorkflowEnvironment
	env = newEnvironment(func(in task) (done, error) {
		if in.Number == 1 {
			env.CancelWorkflow()
		}
		return done{Rows: 1}, nil
	})
	env.ExecuteWorkflow(workflowName, planFor(5))
	s, ok := stateOf(env.GetWorkflowError())
	if !ok || s.Next[0] == 0 || s.Next[0] == 5 {
		t.Errorf("got %+v, %v", s, env.GetWorkflowError())
	}
}

// replays registers workflows only.
type replays struct{ worker.WorkflowReplayer }

// RegisterActivityWithOptions does nothing.
func (replays) RegisterActivityWithOptions(any, activity.RegisterOptions) {}

// TestReplay: the workflow still makes the commands of histories that were recorded: runs that
// this version finds on a server go on. A change that fails here needs a new formatVersion.
func TestReplay(t *testing.T) {
	for _, name := range []string{"activities", "local", "answers", "request", "lane", "lane_long"} {
		t.Run(name, func(t *testing.T) {
			r := worker.NewWorkflowReplayer()
			registerWorkflows(replays{r})
			if err := r.ReplayWorkflowHistoryFromJSONFile(nil, "testdata/history_"+name+".json"); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestWorkflow_Tail: the last steps of a flow with batch steps run once all chunks are finished, as an activity in any case. Their
// counts replace those of the chunks, and they are stopped by too many failures.
func TestWorkflow_Tail(t *testing.T) {
	for _, stopped := range []bool{false, true} {
		t.Run(fmt.Sprintf("stopped=%t", stopped), func(t *testing.T) {
			var mu sync.Mutex
			heads := 0
			env := newEnvironment(func(in task) (done, error) {
				mu.Lock()
				defer mu.Unlock()
				if in.Tail == nil {
					heads++
					if !in.Head || in.Rows == nil {
						t.Errorf("not a chunk of the first steps: %+v", in)
					}
					return done{Rows: 10, Failed: 1, Steps: []stepStats{{Step: "s", In: 10, Failed: 1}, {Step: "b"}}, HasFailed: true}, nil
				}
				if heads != 3 || in.Head || in.Tail.Partial || !in.Tail.HasFailed || !slices.Equal(in.Tail.Chunks, []int{2, 1}) {
					t.Errorf("after %d chunks: %+v", heads, in)
				}
				made := done{Rows: 4, Failed: 3, Steps: []stepStats{{Step: "s"}, {Step: "b", In: 30}}}
				if stopped {
					made.Failed, made.Stopped = 5, "there"
				}
				return made, nil
			})
			p := planFor(2, 1, 1)
			p.Inline = [][][]byte{{{1}, {2}}, {{3}}}
			p.Local, p.Tail, p.MaxFailures = true, true, 5
			env.ExecuteWorkflow(workflowName, p)
			var s state
			if err := env.GetWorkflowResult(&s); stopped {
				var ok bool
				if s, ok = stateOf(err); !ok || s.Stopped != "there" || s.Failed != 5 || s.Next[2] != 0 {
					t.Errorf("got %+v, %v", s, err)
				}
				return
			} else if err != nil {
				t.Fatal(err)
			}
			if s.Rows != 4 || s.Failed != 3 || s.Steps[0].In != 30 || s.Steps[1].In != 30 || !slices.Equal(s.Next, []int{2, 1, 1}) {
				t.Errorf("got %+v", s)
			}
		})
	}
}
