package openai

import (
	"cmp"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/qtype-dev/qtype/internal/server/host"
	"github.com/qtype-dev/qtype/internal/server/problem"
	"github.com/qtype-dev/qtype/internal/server/runs"
	"github.com/qtype-dev/qtype/internal/server/schema"
	"github.com/qtype-dev/qtype/memory"
	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/runtime"
	"github.com/qtype-dev/qtype/spec/chat"
)

// sink receives the parts of an answer. It is one response.
type sink interface {
	text(delta string)
	separate() // the next text is of another call of a model
	reasoning(delta string)
	commentary(delta string)
	answer(m *chat.Message)        // the whole answer, after its text
	used(tokens runs.Usage)        // before one of the following
	calls(pending []*runs.Request) // the run waits for its client: the end of the response
	finish(reason string)          // the end of an answer: stop, length or content_filter
	fail(p *problem.Problem)       // the end of an answer that failed
}

// reader makes the parts of an answer of the events of a run. It is not safe for
// concurrent use.
type reader struct {
	to       sink
	flow     *schema.Flow
	run      *runs.Run
	failure  func(*runs.Run) *problem.Problem
	single   bool            // at most one call
	muted    map[string]bool // ids of requests whose answers come before the response
	open     map[string]bool // ids of the requests that wait
	writers  map[string]bool // steps whose text is the answer; nil: all
	usage    runs.Usage
	reason   string // why the last call for the answer ended: length, content_filter, or empty
	streamed bool   // text of the answer was written
	pause    bool   // the next text is of another call of the model
	problem  *problem.Problem
	ended    bool         // the run has ended
	stopped  bool         // the response has ended before the run
	cited    []chat.Block // sources of the answer of the row
}

func newReader(to sink, t *turn, b *began, failure func(*runs.Run) *problem.Problem) *reader {
	r := &reader{to: to, flow: t.flow, run: b.run, failure: failure, single: t.single, muted: map[string]bool{}, open: map[string]bool{}}
	for _, id := range b.answered {
		r.muted[id] = true
	}
	if t.flow.Answer != nil {
		r.writers = t.flow.Spec.Writers(t.flow.Answer.ID)
	}
	return r
}

// read reads an event.
func (r *reader) read(ev *runs.Event) {
	switch ev.Type {
	case runs.RequestOpened:
		r.open[ev.Request.ID] = true
		return
	case runs.RequestAnswered:
		delete(r.open, ev.Request.ID)
		delete(r.muted, ev.Request.ID)
		return
	case runs.RowFinished, runs.RunFinished:
		clear(r.muted)
	}
	if len(r.muted) > 0 {
		return
	}
	switch ev.Type {
	case runs.TextDelta:
		r.text(ev)
	case runs.ReasoningDelta:
		r.to.reasoning(ev.Text)
	case runs.CommentaryDelta:
		r.to.commentary(ev.Text)
	case runs.ToolReturned, runs.StepFinished:
		r.pause = r.streamed
	case runs.SourceCited:
		if r.writers == nil || r.writers[ev.Step] {
			r.cited = append(r.cited, ev.Source.Block())
		}
	case runs.UsageReported:
		r.usage.Input += ev.Usage.Input
		r.usage.Output += ev.Usage.Output
		if r.writers == nil || r.writers[ev.Step] {
			r.reason = earlyEnd(ev.Usage.Finish)
		}
	case runs.RowFinished:
		r.row(ev)
	case runs.RunFinished:
		r.end()
	}
}

// text passes text of the answer; that of other steps is reasoning.
func (r *reader) text(ev *runs.Event) {
	if r.writers != nil && !r.writers[ev.Step] {
		r.to.reasoning(ev.Text)
		return
	}
	if r.pause && ev.Text != "" {
		r.to.separate()
		r.pause = false
	}
	r.streamed = true
	r.to.text(ev.Text)
}

// row passes what the flow has returned.
func (r *reader) row(ev *runs.Event) {
	if ev.Result == nil || ev.Error != "" {
		if !r.cutOff(ev) {
			r.problem = rowProblem(ev)
		}
		return
	}
	m := r.flow.AnswerOf(ev.Result.Outputs)
	if m == nil {
		text := chat.Text(chat.Assistant, textOf(ev.Result.Outputs))
		text.Blocks = append(text.Blocks, r.cited...)
		m = &text
	}
	r.cited = nil
	if text := answerText(m); !r.streamed && text != "" {
		r.streamed = true
		r.to.text(text)
	}
	r.to.answer(m)
}

// answerText returns the text of an answer without its sources.
func answerText(m *chat.Message) string {
	plain := chat.Message{}
	for _, b := range m.Blocks {
		if !b.IsCitation() {
			plain.Blocks = append(plain.Blocks, b)
		}
	}
	return plain.Text()
}

// end passes the end of the run.
func (r *reader) end() {
	r.ended = true
	if p := r.failure(r.run); p != nil {
		r.problem = p
	}
	if r.problem != nil {
		r.to.fail(r.problem)
		return
	}
	r.to.used(r.usage)
	r.to.finish(cmp.Or(r.reason, "stop"))
}

// cutOff reports whether a row failed because the provider ended the answer early. Clients get
// its text with the reason, as from the provider.
func (r *reader) cutOff(ev *runs.Event) bool {
	if ev.Result == nil || r.reason == "" {
		return false
	}
	_, ok := errors.AsType[*model.IncompleteError](ev.Result.Err())
	return ok
}

// earlyEnd returns the reason for which an answer ended early, empty if it is complete.
func earlyEnd(finish string) string {
	if finish == "length" || finish == "content_filter" {
		return finish
	}
	return ""
}

// waiting reports whether the run waits for its client.
func (r *reader) waiting() bool { return len(r.muted) == 0 && len(r.open) > 0 }

// stop ends the response of a run that waits.
func (r *reader) stop() {
	r.stopped = true
	pending := r.run.State().Pending
	r.to.used(r.usage)
	if p := runs.NotAsked(r.run.ID, pending); p != nil {
		r.to.fail(p)
		return
	}
	pending = slices.DeleteFunc(slices.Clone(pending), func(req *runs.Request) bool { return !req.AsksCaller() })
	if r.single && len(pending) > 0 {
		pending = pending[:1]
	}
	r.to.calls(pending)
}

// rowProblem returns the problem of a failed row.
func rowProblem(ev *runs.Event) *problem.Problem {
	if ev.Result == nil {
		return problem.New(http.StatusInternalServerError, "run_failed", "%s", ev.Error)
	}
	err := ev.Result.Err()
	if busy := host.TurnProblem(err); busy != nil {
		return busy
	}
	return failedCall(ev.Result.Code, err, ev.Error)
}

// failedCall returns the problem of a row or of a call of a model that failed with a code of package
// runtime. text is the public text of its error.
func failedCall(of string, err error, text string) *problem.Problem {
	status, code := failureOf(of, err)
	p := problem.New(status, code, "%s", text)
	if status == http.StatusTooManyRequests {
		p.RetryAfter = minRetryAfter
		if failed, ok := errors.AsType[*model.Error](err); ok {
			p.RetryAfter = max(failed.RetryAfter, minRetryAfter)
		}
	}
	return p
}

// failureOf returns the status and the code for a failed row: 429, 503 and 504 if the same request may
// succeed later, 500 for a defect of the program, and 422 for all others.
func failureOf(code string, err error) (int, string) {
	failed, ofModel := errors.AsType[*model.Error](err)
	status, _ := strconv.Atoi(strings.TrimPrefix(code, "http_"))
	if ofModel {
		status = failed.Status
	}
	_, ofStore := errors.AsType[*memory.StoreError](err)
	switch {
	case status == http.StatusTooManyRequests:
		return status, "rate_limit_exceeded"
	case ofModel && failed.Temporary, status >= http.StatusInternalServerError, status == http.StatusRequestTimeout:
		return http.StatusServiceUnavailable, "model_unavailable"
	case ofModel || status != 0 || code == runtime.CodeModel:
		return http.StatusUnprocessableEntity, "model_failed"
	case code == runtime.CodeTimeout:
		return http.StatusGatewayTimeout, "timeout"
	case ofStore:
		return http.StatusServiceUnavailable, "store_unavailable"
	case code == runtime.CodeInternal:
		return http.StatusInternalServerError, "run_failed"
	}
	return http.StatusUnprocessableEntity, "run_failed"
}

// minRetryAfter is the shortest time after which a client repeats a request that the rate
// limit of a provider has refused.
const minRetryAfter = time.Second
