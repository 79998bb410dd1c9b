package memory

import (
	"cmp"

	"github.com/qtype-dev/qtype/internal/memory/budget"
	"github.com/qtype-dev/qtype/internal/memory/change"
	"github.com/qtype-dev/qtype/spec/chat"
)

// Calibrate notes that the provider accepted the last call, and corrects the estimate of its
// model by the number of input tokens that the provider reported, 0 for none. Later calls of the
// session with this model are fitted by the provider's count, and by the size of what was rejected
// and accepted; Commit and Abort store the correction.
func (t *Turn) Calibrate(reported int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended || t.call == nil {
		return
	}
	t.noteAccepted()
	if reported <= 0 {
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

// muchLarger is how many times as large as all accepted requests one is whose rejection without a
// reason is stored, if a smaller one was accepted then.
const muchLarger = 2

// noteAccepted notes the size of the last call, which the provider accepted.
func (t *Turn) noteAccepted() {
	name, size := t.call.Call.Model, t.call.Call.Estimate
	if t.suspected.newest > size && t.isLikelyTooLong(name) {
		t.factors = t.factors.Raised(t.corrections().WasSuspected(name, t.suspected.newest))
	}
	t.suspected = suspicion{}
	t.factors = t.factors.Raised(t.corrections().WasAccepted(name, size))
	t.factors = t.factors.Raised(t.corrections().Aged(t.stored.Of(t.base.Values), name))
	t.memory.accepted.Note(name, size)
}

// isLikelyTooLong reports whether the size was the reason of rejections without a reason, after
// which a smaller request was accepted. One alone may be a failure of the server.
func (t *Turn) isLikelyTooLong(name string) bool {
	accepted := t.memory.accepted.Most(name)
	return t.corrections().Bound(name, 0) > 0 || accepted > 0 && t.suspected.first >= muchLarger*accepted
}

// IsLargest reports whether the last call is larger than all that this process has sent to its
// model and the provider accepted: if it was rejected without a reason, its size may be the reason.
func (t *Turn) IsLargest() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.call != nil && t.call.Call.Estimate > t.memory.accepted.Most(t.call.Call.Model)
}

// TooLong is what a provider reported of a request that exceeds its context window.
type TooLong struct {
	Requested int  // tokens of the messages, 0 if unknown
	Limit     int  // tokens of the context window, 0 if unknown
	Suspected bool // whether the provider named no reason, so that the size is a guess; see IsLargest
}

// leftOfRejected are the shares of the messages that requests have after one that was too long, if
// the provider did not report its size. Afterwards only the newest round is sent.
var leftOfRejected = [...]float64{0.6, 0.5, 0.33}

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
	t.most = t.mostAfter(last, r)
	t.rejected++
	t.mu.Unlock()
	messages, err = t.Fit(b)
	t.mu.Lock()
	defer t.mu.Unlock()
	if err != nil || t.call.Messages >= before {
		return nil, 0, false, err
	}
	left = before - t.call.Messages
	t.call.Call.Rejected, t.call.Call.Suspected = left, r.Suspected
	return messages, left, true, nil
}

// mostAfter returns how many tokens messages may have after a rejected call.
func (t *Turn) mostAfter(last *change.CallRecord, r TooLong) int {
	if t.rejected == 0 && r.Requested > 0 {
		return max(last.Tokens-1, 1) // the factor determines how much more has to leave
	}
	if t.rejected >= len(leftOfRejected) {
		return 1
	}
	most := int(float64(last.Tokens) * leftOfRejected[t.rejected])
	others := last.Call.Estimate - last.Tokens
	if known := t.corrections()[last.Call.Model].Accepted - others; t.rejected == 0 && known < last.Tokens {
		most = max(most, known)
	}
	return max(most, 1)
}

// learn raises the factor by what a rejected request shows: its size, or that it has
// more tokens than the window.
func (t *Turn) learn(b Budget, r TooLong) {
	switch size := t.call.Call.Estimate; {
	case r.Suspected:
		t.suspected = suspicion{first: cmp.Or(t.suspected.first, size), newest: size}
		return
	case r.Requested == 0 && r.Limit == 0, t.rejected > 0:
		t.factors = t.factors.Raised(t.corrections().WasRefused(b.Model, size))
	}
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
