package temporal

import (
	"errors"
	"slices"
	"testing"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
)

// TestBegin: a chunk that a workflow task has begun runs in no activity, unless it goes on in the worker. If it could not begin, or
// its worker has lost it, any worker runs it.
func TestBegin(t *testing.T) {
	failed := temporal.NewNonRetryableApplicationError("no key", failedError, nil)
	for _, test := range []struct {
		name   string
		begun  done
		err    error
		lost   bool   // the activity of the worker fails
		ran    []task // activities, with Begun and Resumed
		failed bool
	}{
		{name: "short", begun: done{Rows: 1}},
		{name: "busy", begun: done{Busy: true}, ran: []task{{}}},
		{name: "long", begun: done{Queue: "own"}, ran: []task{{Begun: true}}},
		{name: "lost", begun: done{Queue: "own"}, lost: true, ran: []task{{Begun: true}, {Resumed: true}}},
		{name: "blobs", err: errors.New("not reachable"), ran: []task{{Resumed: true}}},
		{name: "failed", err: failed, failed: true},
		{name: "stopped", begun: done{Moved: &place{}}, ran: []task{{}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var ran []task
			env := newEnvironment(func(in task) (done, error) {
				ran = append(ran, task{Begun: in.Begun, Resumed: in.Resumed})
				if in.Begun && test.lost {
					return done{}, errors.New("lost")
				}
				return done{Rows: 1}, nil
			})
			env.RegisterActivityWithOptions(func(task) (done, error) { return test.begun, test.err }, activity.RegisterOptions{Name: beginName})
			p := planFor(1)
			p.Begin = true
			env.ExecuteWorkflow(workflowName, p)
			var s state
			if err := env.GetWorkflowError(); (err != nil) != test.failed {
				t.Fatal(err)
			}
			if err := env.GetWorkflowResult(&s); !test.failed && (err != nil || s.Rows != 1) {
				t.Errorf("got %+v, %v", s, err)
			}
			isSame := func(a, b task) bool { return a.Begun == b.Begun && a.Resumed == b.Resumed }
			if !slices.EqualFunc(ran, test.ran, isSame) {
				t.Errorf("activities %+v, want %+v", ran, test.ran)
			}
		})
	}
}
