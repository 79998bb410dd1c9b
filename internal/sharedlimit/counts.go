package sharedlimit

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/qtype-dev/qtype/model"
)

// counts is the stored value of a quota. Times are milliseconds since 1970.
type counts struct {
	Paused int64  `json:"paused,omitempty"` // no call starts before
	Slots  []slot `json:"slots,omitempty"`  // what counts, by the ends of the slots
}

// slot is a sum of grants that count until the same time.
type slot struct {
	End    int64 `json:"end"`
	Calls  int   `json:"calls,omitempty"`
	Tokens int   `json:"tokens,omitempty"`
}

// exchange is what a process returns and wants.
type exchange struct {
	limits model.Limits
	unused []slot        // to be returned
	owed   int           // tokens that calls took beyond their estimates
	pause  time.Duration // which the provider has requested
	want   int           // calls; 0 for none
	tokens int           // of each call
}

// grant is what the counts gives.
type grant struct {
	end           int64         // of the slot
	calls, tokens int           // 0 calls for no room
	wait          time.Duration // until there may be room, if there is none
	paused        time.Duration // no call may start meanwhile
}

// spans are the lengths that a quota works with.
type spans struct {
	window time.Duration // that of the limits
	grain  time.Duration // slots end at multiples of it
}

func decodeCounts(data []byte) (*counts, error) {
	l := &counts{}
	if data == nil {
		return l, nil
	}
	if err := json.Unmarshal(data, l); err != nil {
		return nil, fmt.Errorf("the stored rate limit is damaged: %w", err)
	}
	return l, nil
}

// do makes an exchange at a time. A grant may be used for the time lease, so it counts for
// that time longer than the window. changed reports whether the counts must be stored.
func (l *counts) do(x *exchange, at time.Time, lease time.Duration, s spans) (g grant, changed bool) {
	now := at.UnixMilli()
	l.Slots = slices.DeleteFunc(l.Slots, func(s slot) bool { return s.End <= now })
	for _, u := range x.unused {
		changed = l.subtract(u) || changed
	}
	end := roundUp(now+(lease+s.window).Milliseconds()+1, s.grain.Milliseconds())
	if x.owed > 0 {
		l.add(slot{End: end, Tokens: x.owed})
		changed = true
	}
	if until := now + x.pause.Milliseconds(); x.pause > 0 && until > l.Paused {
		l.Paused, changed = until, true
	}
	g.paused = time.Duration(max(l.Paused-now, 0)) * time.Millisecond
	if g.paused > 0 {
		g.wait = g.paused
		return g, changed
	}
	if x.want == 0 {
		return g, changed
	}
	if g.wait = l.wait(x, now); g.wait > 0 {
		return g, changed
	}
	g.end = end
	g.calls = l.room(x)
	granted := slot{End: end}
	if x.limits.Requests > 0 {
		granted.Calls = g.calls
	}
	if x.limits.Tokens > 0 {
		granted.Tokens = g.calls * x.tokens
	}
	g.tokens = granted.Tokens
	l.add(granted)
	return g, true
}

// room returns how many calls are granted: half of what is free, so that other processes get
// some too, and at least one.
func (l *counts) room(x *exchange) int {
	calls, tokens := l.sums()
	n := x.want
	if x.limits.Requests > 0 {
		n = min(n, (x.limits.Requests-calls)/2)
	}
	if x.limits.Tokens > 0 && x.tokens > 0 {
		n = min(n, (x.limits.Tokens-tokens)/x.tokens/2)
	}
	return max(n, 1)
}

// wait returns how long there is no room for one call.
func (l *counts) wait(x *exchange, now int64) time.Duration {
	calls, tokens := l.sums()
	until := int64(0)
	for _, s := range l.Slots {
		isFull := x.limits.Requests > 0 && calls >= x.limits.Requests ||
			x.limits.Tokens > 0 && tokens > 0 && tokens+x.tokens > x.limits.Tokens
		if !isFull {
			break
		}
		calls, tokens, until = calls-s.Calls, tokens-s.Tokens, s.End
	}
	if until == 0 {
		return 0
	}
	return time.Duration(until-now) * time.Millisecond
}

func (l *counts) sums() (calls, tokens int) {
	for _, s := range l.Slots {
		calls, tokens = calls+s.Calls, tokens+s.Tokens
	}
	return calls, tokens
}

// add counts a grant.
func (l *counts) add(s slot) {
	i, found := slices.BinarySearchFunc(l.Slots, s.End, func(s slot, end int64) int { return int(s.End - end) })
	if !found {
		l.Slots = slices.Insert(l.Slots, i, s)
		return
	}
	l.Slots[i].Calls += s.Calls
	l.Slots[i].Tokens += s.Tokens
}

// subtract subtracts what was not used, and reports whether it still counted.
func (l *counts) subtract(u slot) bool {
	i := slices.IndexFunc(l.Slots, func(s slot) bool { return s.End == u.End })
	if i < 0 {
		return false
	}
	s := &l.Slots[i]
	s.Calls, s.Tokens = max(s.Calls-u.Calls, 0), max(s.Tokens-u.Tokens, 0)
	return true
}

// roundUp returns the next multiple of step.
func roundUp(n, step int64) int64 { return (n + step - 1) / step * step }
