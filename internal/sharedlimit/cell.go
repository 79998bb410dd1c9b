// Package sharedlimit has limits that processes share by a store of memories: the calls and
// tokens of models in a minute, and what a run may spend. Each is one value of the store,
// which is replaced if no other process has replaced it meanwhile. Times are those of the
// store.
package sharedlimit

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	memstore "github.com/qtype-dev/qtype/memory/store"
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

// cell is one value of a store: that of a session without messages.
type cell struct {
	store memstore.Store
	key   memstore.Key
}

// Memories returns the memories of a store that have limits and budgets.
func Memories() []string { return []string{quotasMemory, budgetsMemory} }

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
		var failed *memstore.Error
		switch {
		case err == nil:
			return nil
		case errors.Is(err, memstore.ErrConflict):
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
	if r.now, err = memstore.TimeOf(ctx, c.store); err != nil {
		return err
	}
	head, err := c.store.Head(ctx, c.key)
	if err != nil {
		return err
	}
	if a.tried != 0 && head.Version == a.tried {
		return nil
	}
	r.value, r.uncertain = head.Values[valueName], a.uncertain
	value, err := change(r)
	if err != nil || value == nil {
		return err
	}
	// Versions are random, so that a change of this process is recognized by its version.
	next := memstore.NextVersion(0)
	err = c.store.Apply(ctx, c.key, memstore.Change{Version: head.Version, Next: next, State: memstore.State{LastSaid: r.now}, Values: map[string][]byte{valueName: value}})
	if err != nil && !errors.Is(err, memstore.ErrConflict) {
		a.tried, a.uncertain = next, true
	}
	return err
}
