package temporal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/qtype-dev/qtype/internal/durable"
)

// request returns a request as the activity of a chunk returns it.
func request(kind durable.RequestKind, row int64, key string) keyedRequest {
	return keyedRequest{Request: durable.Request{Kind: kind, Row: row, Step: "assist", Tool: "refund", Arguments: json.RawMessage(`{}`)}, ID: key}
}

// waitsTwice is an activity whose first chunk needs an approval, and then a client tool.
func waitsTwice(in task) (done, error) {
	_, approved := in.Answers["a"]
	result, called := in.Answers["b"]
	switch {
	case in.Partition > 0 || in.Number > 0:
		if in.Answers != nil {
			return done{}, errors.New("the answers are those of another chunk")
		}
		return done{Rows: 1}, nil
	case !approved:
		return done{Waiting: []keyedRequest{request(durable.Approval, 1, "a")}}, nil
	case !called:
		return done{Waiting: []keyedRequest{request(durable.ClientTool, 1, "b")}}, nil
	}
	return done{Rows: 1, Output: []byte(result.Result)}, nil
}

// answerWith gives answers to a workflow and stores its replies.
func answerWith(env *testsuite.TestWorkflowEnvironment, at time.Duration, replies *[]string, answers ...durable.Answer) {
	env.RegisterDelayedCallback(func() {
		env.UpdateWorkflow(answerUpdate, fmt.Sprint(at), &testsuite.TestUpdateCallback{
			OnReject:   func(err error) { *replies = append(*replies, err.Error()) },
			OnAccept:   func() {},
			OnComplete: func(any, error) { *replies = append(*replies, "taken") },
		}, answers)
	}, at)
}

// TestWorkflow_Answers: a chunk that needs answers runs again with them; chunks behind it
// in its partition wait, others do not. Answers that fit no open request change nothing.
func TestWorkflow_Answers(t *testing.T) {
	env := newEnvironment(waitsTwice)
	var replies []string
	var shown []durable.Request
	env.RegisterDelayedCallback(func() {
		answer, err := env.QueryWorkflow(requestsQuery, 0)
		if err != nil || answer.Get(&shown) != nil {
			t.Error(err)
		}
	}, time.Minute)
	answerWith(env, 2*time.Minute, &replies, durable.Answer{Number: 7, Approved: true})
	answerWith(env, 3*time.Minute, &replies, durable.Answer{Number: 1, Result: json.RawMessage(`1`)})
	answerWith(env, 4*time.Minute, &replies, durable.Answer{Number: 1, Approved: true}, durable.Answer{Number: 1})
	answerWith(env, 5*time.Minute, &replies, durable.Answer{Number: 1, Approved: true})
	answerWith(env, 6*time.Minute, &replies, durable.Answer{Number: 1, Approved: true})
	answerWith(env, 7*time.Minute, &replies, durable.Answer{Number: 2, Approved: true})
	answerWith(env, 8*time.Minute, &replies, durable.Answer{Number: 2, Result: json.RawMessage(strings.Repeat("1", maxRequest+1))})
	answerWith(env, 9*time.Minute, &replies, durable.Answer{Number: 2, Result: json.RawMessage(`"Graz"`)})
	p := planFor(2, 1)
	p.MayWait = true
	env.ExecuteWorkflow(workflowName, p)
	var s state
	if err := env.GetWorkflowResult(&s); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"the run does not wait for an answer to request 7", "request 1 is an approval: expected yes, no or a reason",
		"the run does not wait for an answer to request 1", "taken", "the run does not wait for an answer to request 1",
		"request 2 needs the result of tool refund, as JSON", "the answer to request 2 has 262145 bytes, more than 262144: run the tool on the workers (--client-tool)", "taken",
	}
	if diff := cmp.Diff(want, replies); diff != "" {
		t.Error(diff)
	}
	if len(shown) != 1 || shown[0].Number != 1 || shown[0].Row != 1 {
		t.Errorf("open requests: %+v", shown)
	}
	if s.Rows != 3 || string(s.Inline[0][0]) != `"Graz"` || len(s.Open)+len(s.Answers) > 0 {
		t.Errorf("got %+v", s)
	}
}

// TestWorkflow_AnswersContinue: requests and answers are passed to the next execution.
func TestWorkflow_AnswersContinue(t *testing.T) {
	env := newEnvironment(waitsTwice)
	p := planFor(1)
	p.MayWait = true
	var replies []string
	env.RegisterDelayedCallback(func() { env.SetCurrentHistoryLength(historyLimit) }, 2*time.Minute)
	answerWith(env, time.Minute, &replies, durable.Answer{Number: 1, Approved: true})
	answerWith(env, 3*time.Minute, &replies, durable.Answer{Number: 9}) // a task of the workflow
	env.ExecuteWorkflow(workflowName, p)
	var next *workflow.ContinueAsNewError
	if !errors.As(env.GetWorkflowError(), &next) {
		t.Fatal(env.GetWorkflowError())
	}
	p.State = state{Next: []int{0}, Inline: make([]map[int][]byte, 1), Asked: 2,
		Open:    []openRequest{{keyedRequest: request(durable.ClientTool, 1, "b")}},
		Answers: []givenAnswer{{Answer: durable.Answer{Number: 1, Approved: true}, ID: "a"}}}
	p.State.Open[0].Number = 2
	env = newEnvironment(waitsTwice)
	answerWith(env, time.Minute, &replies, durable.Answer{Number: 2, Result: json.RawMessage(`3`)})
	env.ExecuteWorkflow(workflowName, p)
	var s state
	if err := env.GetWorkflowResult(&s); err != nil || s.Rows != 1 || string(s.Inline[0][0]) != "3" {
		t.Errorf("got %+v, %v", s, err)
	}
}

// TestScheduler_GivenAnswers: a server may answer a request before the activity that needs it has ended. A second
// answer is refused, and so are those that do not fit.
func TestScheduler_GivenAnswers(t *testing.T) {
	r := &scheduler{plan: planFor(1)}
	r.plan.Request = &place{}
	r.state.Next = []int{0}
	early := givenAnswer{Answer: durable.Answer{Approved: true}, ID: "a"}
	if err := r.checkGiven(nil, early); err != nil {
		t.Fatal(err)
	}
	r.give(early)
	r.ask(0, []keyedRequest{request(durable.Approval, 1, "a"), request(durable.ClientTool, 1, "b")})
	if len(r.state.Open) != 1 || r.state.Open[0].ID != "b" || !r.state.Answers[0].Approved {
		t.Errorf("after an early answer: %+v", r.state)
	}
	for name, a := range map[string]givenAnswer{
		"a second answer":  early,
		"no result":        {ID: "b"},
		"a large result":   {ID: "b", Answer: durable.Answer{Result: json.RawMessage(strings.Repeat("1", maxRequest+1))}},
		"another chunk":    {ID: "b", Partition: 1, Answer: durable.Answer{Error: "no"}},
		"no such chunk":    {ID: "b", Partition: -1, Answer: durable.Answer{Error: "no"}},
		"an early one now": {ID: "a", Answer: durable.Answer{Approved: false}},
	} {
		if r.checkGiven(nil, a) == nil {
			t.Errorf("%s is accepted", name)
		}
	}
	failed := givenAnswer{ID: "b", Answer: durable.Answer{Error: "no position"}}
	if err := r.checkGiven(nil, failed); err != nil {
		t.Error(err)
	}
	r.give(failed)
	r.give(failed)
	if r.isWaiting(0) || len(r.state.Answers) != 2 {
		t.Errorf("after both answers: %+v", r.state)
	}
}

// TestWorkflow_LargeAnswers: 128 rows wait with large arguments and get large answers. What the next execution begins with stays below 1 MB, and
// requests are shown page by page.
func TestWorkflow_LargeAnswers(t *testing.T) {
	const size = 8 * maxKept
	blobs := newBlobs(durable.Config{Blobs: t.TempDir()})
	w := &chunkRunner{blobs: blobs}
	env := newEnvironment(func(in task) (done, error) {
		id := fmt.Sprint("a", in.Partition)
		if in.Answers == nil {
			q := &asker{worker: w, opened: []durable.Request{{Kind: durable.ClientTool, Row: int64(in.Partition), Step: "assist", Tool: "locate", Key: id, Arguments: bytes.Repeat([]byte("1"), size)}}}
			waits, err := q.requests(t.Context(), &in)
			return done{Waiting: waits}, err
		}
		if err := w.readAnswers(t.Context(), &in); err != nil || len(in.Answers[id].Result) != size {
			return done{}, fmt.Errorf("the answer has %d bytes: %w", len(in.Answers[id].Result), err)
		}
		return done{Waiting: []keyedRequest{request(durable.Approval, 1, id+" again")}}, nil
	})
	env.SetWorkerOptions(worker.Options{DeadlockDetectionTimeout: time.Minute}) // the machine may be busy
	env.RegisterActivityWithOptions(w.keep, activity.RegisterOptions{Name: keepName})
	var replies []string
	for n := 1; n <= maxWaiting; n++ {
		answerWith(env, time.Minute+time.Duration(n)*time.Second, &replies, durable.Answer{Number: n, Result: bytes.Repeat([]byte("1"), size)})
	}
	var shown []durable.Request
	env.RegisterDelayedCallback(func() {
		for page := maxPage; page == maxPage; {
			var more []durable.Request
			answer, err := env.QueryWorkflow(requestsQuery, len(shown))
			if err != nil || answer.Get(&more) != nil {
				t.Error(err)
			}
			page, shown = len(more), append(shown, more...)
		}
	}, 30*time.Second)
	env.RegisterDelayedCallback(func() { env.SetCurrentHistoryLength(historyLimit) }, 10*time.Minute)
	answerWith(env, 11*time.Minute, &replies, durable.Answer{Number: 9999}) // a task of the workflow
	p := planFor(slices.Repeat([]int{1}, maxWaiting)...)
	p.MayWait = true
	env.ExecuteWorkflow(workflowName, p)
	var next *workflow.ContinueAsNewError
	if !errors.As(env.GetWorkflowError(), &next) {
		t.Fatal(env.GetWorkflowError(), replies)
	}
	begins := 0
	for _, payload := range next.Input.GetPayloads() {
		begins += len(payload.GetData())
	}
	if begins > 1<<20 {
		t.Errorf("the next execution begins with %d bytes", begins)
	}
	if n := len(shown); n != maxWaiting || shown[n-1].Number != n || !shown[0].InBlobs {
		t.Errorf("%d requests are shown", n)
	}
	t.Logf("the next execution begins with %d bytes", begins)
}
