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
	ID   string // see Request.Key
	Blob string `json:",omitempty"` // the blob with the requests of the chunk; empty if this is all of it
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
	Blob      string `json:",omitempty"` // the blob with the answer; empty if this is all of it
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
	err = workflow.SetQueryHandler(ctx, requestsQuery, func(after int) ([]keyedRequest, error) { return r.requests(after), nil })
	if err != nil {
		return err
	}
	err = workflow.SetUpdateHandlerWithOptions(ctx, answerUpdate,
		func(ctx workflow.Context, answers []durable.Answer) error {
			var given []givenAnswer
			for _, a := range answers {
				if at := r.find(a.Number); at >= 0 { // else it is the second of two updates of one workflow task
					o := &r.state.Open[at]
					given = append(given, givenAnswer{Answer: a, ID: o.ID, Partition: o.Partition})
				}
			}
			return r.take(ctx, given)
		},
		workflow.UpdateHandlerOptions{Validator: r.check})
	if err != nil {
		return err
	}
	return workflow.SetUpdateHandlerWithOptions(ctx, answerCallUpdate,
		func(ctx workflow.Context, a givenAnswer) error {
			return r.take(ctx, []givenAnswer{a})
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
		return fits(&a.Answer, &r.state.Open[at].Request)
	}
	return nil
}

// take stores answers that were accepted, large ones as blobs: all of them, or none.
func (r *scheduler) take(ctx workflow.Context, all []givenAnswer) error {
	ctx = workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{ScheduleToCloseTimeout: maxKeepTime})
	for i := range all {
		a := &all[i]
		if len(a.Result)+len(a.Error)+len(a.Reason) <= maxKept {
			continue
		}
		var kept givenAnswer
		if err := workflow.ExecuteLocalActivity(ctx, keepName, r.plan.folder(), *a).Get(ctx, &kept); err != nil {
			return err
		}
		*a = kept
	}
	for _, a := range all {
		r.give(a)
	}
	return r.list(ctx, false)
}

// give adds an answer to the state.
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

// maxPage is the number of requests in the answer to a query.
const maxPage = 100

// requests returns the first open requests after the one with a number.
func (r *scheduler) requests(after int) []keyedRequest {
	page := []keyedRequest{}
	for i := range r.state.Open {
		if o := &r.state.Open[i]; o.Number > after && len(page) < maxPage {
			page = append(page, o.keyedRequest)
		}
	}
	return page
}

// check returns an error if an answer belongs to no open request or does not fit it.
func (r *scheduler) check(_ workflow.Context, answers []durable.Answer) error {
	for i, a := range answers {
		at := r.find(a.Number)
		if at < 0 || slices.ContainsFunc(answers[:i], func(b durable.Answer) bool { return b.Number == a.Number }) {
			return fmt.Errorf("the run does not wait for an answer to request %d", a.Number)
		}
		if err := fits(&a, &r.state.Open[at].Request); err != nil {
			return err
		}
	}
	return nil
}

// find returns the index of an open request, -1 if there is none.
func (r *scheduler) find(number int) int {
	return slices.IndexFunc(r.state.Open, func(o openRequest) bool { return o.Number == number })
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

// answersOf returns the answers for the chunk of a partition, and the names of the blobs with others, by the keys of the requests.
func (r *scheduler) answersOf(partition int) (all map[string]durable.Answer, kept map[string]string) {
	for _, a := range r.state.Answers {
		if a.Partition != partition {
			continue
		}
		if all == nil {
			all, kept = map[string]durable.Answer{}, map[string]string{}
		}
		all[a.ID] = a.Answer
		if a.Blob != "" {
			kept[a.ID] = a.Blob
		}
	}
	return all, kept
}

// forget drops the answers for a chunk that is finished.
func (r *scheduler) forget(partition int) {
	r.state.Answers = slices.DeleteFunc(r.state.Answers, func(a givenAnswer) bool { return a.Partition == partition })
}

// maxRequest is the size in bytes of the arguments of a request, and of an answer.
const maxRequest = 256 << 10

// fits returns an error if the answer does not answer the request, or is too large.
func fits(a *durable.Answer, r *durable.Request) error {
	size := len(a.Result) + len(a.Error) + len(a.Reason)
	switch {
	case r.Kind == durable.Approval && (a.Result != nil || a.Error != ""):
		return fmt.Errorf("request %d is an approval: expected yes, no or a reason", r.Number)
	case r.Kind == durable.ClientTool && a.Result == nil && a.Error == "":
		return fmt.Errorf("request %d needs the result of tool %s, as JSON", r.Number, r.Tool)
	case size > maxRequest:
		return fmt.Errorf("the answer to request %d has %d bytes, more than %d: run the tool on the workers (--client-tool)",
			r.Number, size, maxRequest)
	}
	return nil
}
