// Package sharedlimit has limits that processes share by a store: the calls and
// tokens of models in a minute, and what a run may spend. Each is one value of the store,
// which is replaced if no other process has replaced it meanwhile. Times are those of the
// store.
package sharedlimit

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/qtype-dev/qtype/memory/store"
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
