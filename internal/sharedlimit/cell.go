// Package sharedlimit has limits that processes share by a store: the calls and
// tokens of models in a minute, and what a run may spend. Each is one value of the store,
// which is replaced if no other process has replaced it meanwhile. Times are those of the
// store.
package sharedlimit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/qtype-dev/qtype/internal/appstate"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/model"
)

// valueName is the name of the value of a cell.
const valueName = "value"

const (
	maxOutage = 30 * time.Second       // for a store that does not answer
	firstWait = 50 * time.Millisecond  // before the second attempt
	longWait  = 2 * time.Second        // the longest one between two attempts
	raceWait  = 2 * time.Millisecond   // after a change by another process, for each attempt
	longRace  = 100 * time.Millisecond // the longest one after a change by another process
)

// cell is one record with one value.
type cell struct {
	records store.Records
	id      string
	keep    time.Duration // how long the value is kept after a change
}

// reading is what a change is computed from.
type reading struct {
	began     time.Time // before the store was asked for its time, by the clock of this process
	now       time.Time // the time of the store
	value     []byte    // nil for none
	uncertain bool      // an earlier attempt may have been stored
}

// attempts is the state of one update.
type attempts struct {
	tried     int64 // the version of the change that may have been stored; 0 for none
	uncertain bool
}

// update replaces the value by what change returns; nil leaves it as it is. change is called
// again if another process has replaced the value, or the store has not answered.
func (c *cell) update(ctx context.Context, change func(reading) ([]byte, error)) error {
	var a attempts
	end := time.Now().Add(maxOutage)
	wait := firstWait
	for n := 1; ; n++ {
		err := c.try(ctx, &a, change)
		pause := rand.N(min(time.Duration(n)*raceWait, longRace))
		var failed *store.Error
		switch {
		case err == nil:
			return nil
		case errors.Is(err, store.ErrConflict):
		case errors.As(err, &failed) && failed.Temporary && time.Now().Before(end):
			pause, wait = wait, min(2*wait, longWait)
		default:
			return err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// try makes one attempt.
func (c *cell) try(ctx context.Context, a *attempts, change func(reading) ([]byte, error)) error {
	r := reading{began: time.Now()}
	var err error
	if r.now, err = store.TimeOf(ctx, c.records.Application().Store); err != nil {
		return err
	}
	rec, err := c.records.Get(ctx, c.id)
	if err != nil {
		return err
	}
	if a.tried != 0 && rec.Version == a.tried {
		return nil
	}
	r.value, r.uncertain = rec.Values[valueName], a.uncertain
	value, err := change(r)
	if err != nil || value == nil {
		return err
	}
	// Versions are random, so that a change of this process is recognized by its version.
	next := store.NextVersion(0)
	err = c.records.Write(ctx, c.id, store.RecordChange{Version: rec.Version, Next: next, Stored: r.now, Expires: r.now.Add(c.keep), Values: map[string][]byte{valueName: value}})
	if err != nil && !errors.Is(err, store.ErrConflict) {
		a.tried, a.uncertain = next, true
	}
	return err
}

const (
	keepBudgets = 30 * 24 * time.Hour // after the last call of a run
	maxRemoved  = 100                 // when a run begins
)

// Spent is what calls of models and tools have used.
type Spent struct {
	Calls  int     `json:"calls,omitempty"`
	Tokens int     `json:"tokens,omitempty"`
	Money  float64 `json:"money,omitempty"`
}

func (s Spent) plus(o Spent) Spent {
	return Spent{Calls: s.Calls + o.Calls, Tokens: s.Tokens + o.Tokens, Money: s.Money + o.Money}
}

// Budget is what the parts of a run have spent together. Each part is a sequence of chunks of
// rows, one of which is run at a time.
type Budget struct{ cell cell }

// NewBudget returns the budget of a run of an application with an id.
func NewBudget(app store.Application, id string) *Budget {
	return &Budget{cell{records: app.Records(appstate.Budgets), id: id, keep: keepBudgets}}
}

// spending is the stored value of a Budget.
type spending struct {
	Ended Spent        `json:"ended"` // by chunks before those of Parts
	Parts map[int]part `json:"parts"`
}

// part is the newest chunk of a part of a run.
type part struct {
	Chunk int   `json:"chunk"`
	Spent Spent `json:"spent"`
}

// Set replaces what a chunk has spent, and returns the sum of all. A chunk that was run by
// several processes has spent the most that one of them has. What is set for a chunk after a
// later one of its part changes nothing.
func (b *Budget) Set(ctx context.Context, partition, chunk int, spent Spent) (sum Spent, err error) {
	isNew := false
	err = b.cell.update(ctx, func(r reading) ([]byte, error) {
		s := spending{Parts: map[int]part{}}
		if isNew = r.value == nil; !isNew {
			if err := json.Unmarshal(r.value, &s); err != nil {
				return nil, fmt.Errorf("the stored budget is damaged: %w", err)
			}
		}
		changed := s.set(partition, chunk, spent)
		sum = s.sum()
		if !changed {
			return nil, nil
		}
		return json.Marshal(s)
	})
	if err == nil && isNew {
		_, err = b.cell.records.Purge(ctx, maxRemoved)
	}
	return sum, err
}

// set reports whether anything has changed.
func (s *spending) set(partition, chunk int, spent Spent) bool {
	p, known := s.Parts[partition]
	switch {
	case known && chunk < p.Chunk:
		return false
	case known && chunk > p.Chunk:
		s.Ended = s.Ended.plus(p.Spent)
		p.Spent = Spent{}
	}
	next := part{Chunk: chunk, Spent: Spent{
		Calls: max(p.Spent.Calls, spent.Calls), Tokens: max(p.Spent.Tokens, spent.Tokens), Money: max(p.Spent.Money, spent.Money),
	}}
	s.Parts[partition] = next
	return !known || next != p || chunk > p.Chunk
}

func (s *spending) sum() Spent {
	sum := s.Ended
	for _, p := range s.Parts {
		sum = sum.plus(p.Spent)
	}
	return sum
}

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
