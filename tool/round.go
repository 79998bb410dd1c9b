package tool

import (
	"context"
	"sync"
)

// Round is a number of tool calls that a model requested in one answer and that are
// made at the same time. Those that need the client of the run are announced to it
// together, once the others have ended. It is safe for concurrent use.
type Round struct {
	mu       sync.Mutex
	open     int         // calls that have neither ended nor need the client
	requests []any       // of the calls that need the client, by the number of the call
	commit   func([]any) // announces them
}

// NewRound returns a round of n calls.
func NewRound(n int) *Round { return &Round{open: n, requests: make([]any, n)} }

// roundCall is one call of a round.
type roundCall struct {
	round *Round
	index int
	done  bool // it no longer delays the announcement; guarded by the mutex of the round
}

type roundCallKey struct{}

// Join returns the context for call i of the round, counted from 0. ended must be called
// when the call has ended.
func (r *Round) Join(ctx context.Context, i int) (call context.Context, ended func()) {
	c := &roundCall{round: r, index: i}
	return context.WithValue(ctx, roundCallKey{}, c), func() { c.settle(nil, nil) }
}

// Announce calls commit with request, or with the requests of all calls of the round of
// ctx once none of them delays it. Requests of a round are in the order of the calls; all
// must be announced by equal functions. It does not wait for the announcement.
func Announce(ctx context.Context, request any, commit func([]any)) {
	c, _ := ctx.Value(roundCallKey{}).(*roundCall)
	if c == nil || !c.settle(request, commit) {
		commit([]any{request})
	}
}

// settle counts the call as ended, or as one that needs the client. It reports false if
// it was counted before.
func (c *roundCall) settle(request any, commit func([]any)) bool {
	r := c.round
	r.mu.Lock()
	defer r.mu.Unlock()
	if c.done {
		return false
	}
	c.done = true
	r.open--
	if request != nil {
		r.requests[c.index], r.commit = request, commit
	}
	if r.open > 0 || r.commit == nil {
		return true
	}
	var all []any
	for _, req := range r.requests {
		if req != nil {
			all = append(all, req)
		}
	}
	r.commit(all)
	return true
}
