package memory

import (
	"github.com/qtype-dev/qtype/memory/internal/budget"
	"github.com/qtype-dev/qtype/spec/chat"
)

// Calibrate corrects the estimate of the model of the last call by the number of input
// tokens that the provider reported. Later calls of the session with this model are
// fitted by the provider's count; Commit and Abort store the correction.
func (t *Turn) Calibrate(reported int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended || t.call == nil || reported <= 0 {
		return
	}
	t.call.Call.Reported = reported
	t.raise(reported)
	if limit := t.corrections()[t.call.Call.Model].Limit; limit > 0 && reported > limit {
		t.factors = t.factors.Raised(budget.Factors{t.call.Call.Model: {Limit: budget.Disproved}})
	}
}

// raise raises the factor of the model of the last call so that its estimate is at
// least what the provider counted. Where counts are estimates a factor of 1 is known too.
func (t *Turn) raise(counted int) {
	estimate := t.call.Call.Estimate
	if estimate <= 0 || counted <= estimate && !t.call.Estimated {
		return
	}
	t.factors = t.factors.Raised(budget.Measured(t.call.Call.Model, estimate, counted))
}

// TooLong is what a provider reported of a request that exceeds its context window.
type TooLong struct {
	Requested int // tokens of the messages, 0 if unknown
	Limit     int // tokens of the context window, 0 if unknown
}

// leftOfRejected is the share of the messages that a request has after one that was too long, if
// the provider did not report its size.
const leftOfRejected = 0.6

// FitRejected is Fit for the request that follows one that the provider rejected as too
// long: it leaves out more of the oldest rounds. It reports false if the newest
// round, which is always sent, is all that was sent.
func (t *Turn) FitRejected(b Budget, r TooLong) (messages []chat.Message, left int, ok bool, err error) {
	t.mu.Lock()
	last := t.call
	if t.ended || last == nil {
		t.mu.Unlock()
		return nil, 0, false, errEnded
	}
	before := last.Messages
	t.learn(b, r)
	t.most = max(int(float64(last.Tokens)*leftOfRejected), 1)
	if r.Requested > 0 {
		t.most = max(last.Tokens-1, 1) // the factor determines how much more has to leave
	}
	t.mu.Unlock()
	messages, err = t.Fit(b)
	t.mu.Lock()
	defer t.mu.Unlock()
	if err != nil || t.call.Messages >= before {
		return nil, 0, false, err
	}
	left = before - t.call.Messages
	t.call.Call.Rejected = left
	return messages, left, true, nil
}

// learn raises the factor by what a rejected request shows: its size, or that it has
// more tokens than the window.
func (t *Turn) learn(b Budget, r TooLong) {
	window := b.ContextWindow
	if r.Limit > b.Answer { // a smaller one leaves no room for any request
		window = r.Limit
		t.factors = t.factors.Raised(budget.Factors{b.Model: {Limit: r.Limit}})
	}
	switch {
	case r.Requested > 0:
		t.raise(r.Requested)
	case window > b.Answer:
		t.raise(window - b.Answer + 1)
	}
}
