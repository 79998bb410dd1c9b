package temporal

import (
	"errors"
	"fmt"
	"slices"

	"go.temporal.io/sdk/workflow"

	"github.com/qtype-dev/qtype/internal/durable"
)

// keyedRequest is a request with its key, as an activity returns it.
type keyedRequest struct {
	durable.Request
	ID string // see Request.Key
}

// openRequest is a request that is not answered.
type openRequest struct {
	keyedRequest
	Partition int // whose chunk waits
}

// givenAnswer is the answer to a request of a chunk that is not finished.
type givenAnswer struct {
	durable.Answer
	ID        string // of the request
	Partition int
}

// status is the answer to a progress query.
type status struct {
	Rows, Failed int64
	Repeated     int64
	Steps        []stepStats
	Waiting      int // open requests
}

// setHandlers lets users watch the workflow and answer its requests.
func (r *scheduler) setHandlers(ctx workflow.Context) error {
	err := workflow.SetQueryHandler(ctx, progressQuery, func() (status, error) {
		return status{Rows: r.state.Rows, Failed: r.state.Failed, Repeated: r.state.Repeated, Steps: r.state.Steps, Waiting: len(r.state.Open)}, nil
	})
	if err != nil {
		return err
	}
	err = workflow.SetQueryHandler(ctx, requestsQuery, func() ([]durable.Request, error) { return r.requests(), nil })
	if err != nil {
		return err
	}
	err = workflow.SetUpdateHandlerWithOptions(ctx, answerUpdate,
		func(ctx workflow.Context, answers []durable.Answer) error {
			for _, a := range answers {
				r.answer(a)
			}
			return r.list(ctx, false)
		},
		workflow.UpdateHandlerOptions{Validator: r.check})
	if err != nil {
		return err
	}
	return workflow.SetUpdateHandlerWithOptions(ctx, answerCallUpdate,
		func(ctx workflow.Context, a givenAnswer) error {
			r.give(a)
			return r.list(ctx, false)
		},
		workflow.UpdateHandlerOptions{Validator: r.checkGiven})
}

// checkGiven returns an error if a request was answered before, or the answer does not fit it. The
// chunk may still have to open it: servers learn of requests before the workflow does.
func (r *scheduler) checkGiven(_ workflow.Context, a givenAnswer) error {
	if a.Partition < 0 || a.Partition >= len(r.plan.Partitions) || r.state.Next[a.Partition] >= r.plan.Partitions[a.Partition] || r.isGiven(a.ID) {
		return errors.New("the run does not wait for this answer")
	}
	if at := r.opened(a.ID); at >= 0 {
		return fits(&a.Answer, &r.state.Open[at].Request, r.plan.requestLimit())
	}
	return nil
}

// give stores an answer that checkGiven has accepted.
func (r *scheduler) give(a givenAnswer) {
	if r.isGiven(a.ID) { // two updates of one workflow task
		return
	}
	r.state.Open = slices.DeleteFunc(r.state.Open, func(o openRequest) bool { return o.ID == a.ID })
	r.state.Answers = append(r.state.Answers, a)
}

// isGiven reports whether a request has an answer.
func (r *scheduler) isGiven(id string) bool {
	return slices.ContainsFunc(r.state.Answers, func(a givenAnswer) bool { return a.ID == id })
}

// opened returns the index of an open request, -1 if there is none.
func (r *scheduler) opened(id string) int {
	return slices.IndexFunc(r.state.Open, func(o openRequest) bool { return o.ID == id })
}

// list lets the memo show whether rows wait. It is changed if that is not what it shows, or always.
func (r *scheduler) list(ctx workflow.Context, always bool) error {
	waits := len(r.state.Open) > 0
	if waits == r.state.Listed && !always {
		return nil
	}
	r.state.Listed = waits
	return workflow.UpsertMemo(ctx, map[string]any{memoWaiting: waits})
}

// requests returns the open requests.
func (r *scheduler) requests() []durable.Request {
	all := []durable.Request{}
	for i := range r.state.Open {
		all = append(all, r.state.Open[i].Request)
	}
	return all
}

// check returns an error if an answer belongs to no open request or does not fit it.
func (r *scheduler) check(_ workflow.Context, answers []durable.Answer) error {
	for i, a := range answers {
		at := r.find(a.Number)
		if at < 0 || slices.ContainsFunc(answers[:i], func(b durable.Answer) bool { return b.Number == a.Number }) {
			return fmt.Errorf("the run does not wait for an answer to request %d", a.Number)
		}
		if err := fits(&a, &r.state.Open[at].Request, r.plan.requestLimit()); err != nil {
			return err
		}
	}
	return nil
}

// find returns the index of an open request, -1 if there is none.
func (r *scheduler) find(number int) int {
	return slices.IndexFunc(r.state.Open, func(o openRequest) bool { return o.Number == number })
}

// answer stores an answer, which check has accepted.
func (r *scheduler) answer(a durable.Answer) {
	at := r.find(a.Number)
	if at < 0 { // two updates of one workflow task
		return
	}
	o := r.state.Open[at]
	r.state.Open = slices.Delete(r.state.Open, at, at+1)
	r.state.Answers = append(r.state.Answers, givenAnswer{Answer: a, ID: o.ID, Partition: o.Partition})
}

// ask opens the requests of a chunk.
func (r *scheduler) ask(partition int, requests []keyedRequest) {
	for _, req := range requests {
		if r.isGiven(req.ID) {
			continue
		}
		r.state.Asked++
		req.Number = r.state.Asked
		r.state.Open = append(r.state.Open, openRequest{keyedRequest: req, Partition: partition})
	}
}

// isWaiting reports whether the chunk of a partition waits for answers.
func (r *scheduler) isWaiting(partition int) bool {
	return slices.ContainsFunc(r.state.Open, func(o openRequest) bool { return o.Partition == partition })
}

// awaitAnswers waits until the chunk of a partition has its answers, or the workflow is to end.
func (r *scheduler) awaitAnswers(ctx workflow.Context, partition int) error {
	return workflow.Await(ctx, func() bool { return !r.isWaiting(partition) || r.mustEnd(ctx) })
}

// answersOf returns the answers for the chunk of a partition, by the keys of the requests.
func (r *scheduler) answersOf(partition int) map[string]durable.Answer {
	var all map[string]durable.Answer
	for _, a := range r.state.Answers {
		if a.Partition != partition {
			continue
		}
		if all == nil {
			all = map[string]durable.Answer{}
		}
		all[a.ID] = a.Answer
	}
	return all
}

// forget drops the answers for a chunk that is finished.
func (r *scheduler) forget(partition int) {
	r.state.Answers = slices.DeleteFunc(r.state.Answers, func(a givenAnswer) bool { return a.Partition == partition })
}

// maxRequest is the size in bytes of the arguments of a request, and of a result. They are parts
// of the history of the workflow.
const maxRequest = 8 << 10

// maxServedRequest is maxRequest for a run of a server, which has few requests at once.
const maxServedRequest = 256 << 10

// requestLimit returns the limit of the requests and answers of a run.
func (p *plan) requestLimit() int { return requestLimit(p.Request != nil) }

// requestLimit returns maxRequest, or that of a run of a server.
func requestLimit(isServed bool) int {
	if isServed {
		return maxServedRequest
	}
	return maxRequest
}

// fits returns an error if the answer does not answer the request, or is larger than a number of bytes.
func fits(a *durable.Answer, r *durable.Request, limit int) error {
	switch {
	case r.Kind == durable.Approval && (a.Result != nil || a.Error != ""):
		return fmt.Errorf("request %d is an approval: expected yes, no or a reason", r.Number)
	case r.Kind == durable.ClientTool && a.Result == nil && a.Error == "":
		return fmt.Errorf("request %d needs the result of tool %s, as JSON", r.Number, r.Tool)
	case len(a.Result)+len(a.Error) > limit:
		return fmt.Errorf("the result for request %d has %d bytes, more than %d: run the tool on the workers (--client-tool)", r.Number, len(a.Result)+len(a.Error), limit)
	}
	return nil
}
