package memory

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/qtype-dev/qtype/memory/internal/change"
	"github.com/qtype-dev/qtype/memory/internal/window"
	"github.com/qtype-dev/qtype/memory/store"
)

// defaultLease is how long the lease of a turn lasts without renewal: so long a session
// stays busy after its process was killed.
const defaultLease = 15 * time.Second

// leaseRecord is the value of a session in which one turn runs, with concurrent_turns other
// than queue. The version of the session is the fence: a turn commits only while the
// version that it read has its own record.
type leaseRecord struct {
	Owner string    `json:"owner"`          // a random name of the turn
	Until time.Time `json:"until,omitzero"` // by the store's clock; zero if a newer turn may always take over
}

// leaseOf returns the record in the values of a session, the zero record for none.
func leaseOf(values map[string][]byte) (r leaseRecord) {
	_ = json.Unmarshal(values[change.LeaseValue], &r) // an unreadable lease is none
	return r
}

// lease is the right of one turn to commit.
type lease struct {
	memory  *Memory
	key     store.Key
	owner   string
	created bool                    // the session did not exist before
	cancel  context.CancelCauseFunc // ends the context of the turn
	stop    context.CancelFunc
	ended   sync.WaitGroup
}

// acquire takes the lease of a session that the caller has locked, and makes base the
// session after it. It returns a *BusyError if a turn of another process has it and the
// memory rejects concurrent turns. cancel is called when another turn takes the lease.
func (m *Memory) acquire(ctx context.Context, key store.Key, base *window.View, cancel context.CancelCauseFunc) (*lease, *window.View, error) {
	l := &lease{memory: m, key: key, owner: rand.Text(), cancel: cancel}
	for attempt := range maxAttempts {
		err := l.take(ctx, base)
		if err == nil {
			l.keep(ctx)
			return l, base, nil
		}
		m.sessions.SetView(key.Session, nil)
		if !store.IsConflict(err) {
			return nil, nil, err
		}
		if err = pause(ctx, attempt); err != nil {
			return nil, nil, err
		}
		if base, err = m.load(ctx, key); err != nil {
			return nil, nil, err
		}
	}
	return nil, nil, fmt.Errorf("memory %s, session %q: %w, %d times in a row", m.id, key.Session, store.ErrConflict, maxAttempts)
}

// take writes the record to a session whose version is that of base.
func (l *lease) take(ctx context.Context, base *window.View) error {
	m := l.memory
	record, now, err := l.record(ctx)
	if err != nil {
		return err
	}
	if m.turns == Reject && leaseOf(base.Values).Until.After(now) {
		return &BusyError{Memory: m.id, Session: l.key.Session}
	}
	state := base.State
	state.Extend(m.moment()) // a session in use does not expire
	c := store.Change{Version: base.Version, Next: store.NextVersion(base.Version), State: state, Values: map[string][]byte{change.LeaseValue: record}}
	stored, err := m.applyChange(ctx, l.key, base.Stored, &c)
	if err != nil {
		return err
	}
	l.created = base.Version == 0
	values := maps.Clone(base.Values)
	if values == nil {
		values = map[string][]byte{}
	}
	values[change.LeaseValue] = record
	base.Version, base.State, base.Values, base.Stored = c.Next, state, values, stored
	return nil
}

// record returns a new record, and the time of the store.
func (l *lease) record(ctx context.Context) (text []byte, now time.Time, err error) {
	r := leaseRecord{Owner: l.owner}
	if l.memory.turns == Reject {
		if now, err = l.memory.clock.Now(ctx, l.memory.reader.Store); err != nil {
			return nil, now, err
		}
		r.Until = now.Add(l.memory.leaseTime())
	}
	text, err = json.Marshal(r)
	return text, now, err
}

// keep starts to renew the lease, or to look for a newer turn, until release.
func (l *lease) keep(ctx context.Context) {
	ctx, l.stop = context.WithCancel(context.WithoutCancel(ctx))
	every := l.memory.leaseTime() / 3
	if l.memory.turns == Interrupt {
		every = l.memory.leaseTime() / 15 // the other turn waits for nothing, but this one costs money
	}
	l.ended.Go(func() {
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			if err := l.renew(ctx); errors.As(err, new(*InterruptedError)) {
				l.cancel(err)
				return
			}
		}
	})
}

// renew returns an *InterruptedError if the lease was lost. After another error the next
// call tries again.
func (l *lease) renew(ctx context.Context) error {
	head, err := l.memory.reader.Store.Head(ctx, l.key)
	switch {
	case err != nil:
		return err
	case !l.owns(head.Values):
		return l.lost()
	case l.memory.turns == Interrupt:
		return nil
	}
	record, _, err := l.record(ctx)
	if err != nil {
		return err
	}
	return l.memory.reader.Store.Apply(ctx, l.key, store.Change{Version: head.Version, Next: store.NextVersion(head.Version), State: head.State,
		Values: map[string][]byte{change.LeaseValue: record}})
}

// owns reports whether the values of a session have this lease.
func (l *lease) owns(values map[string][]byte) bool { return leaseOf(values).Owner == l.owner }

// lost returns the error of a turn without its lease.
func (l *lease) lost() error {
	return &InterruptedError{Memory: l.memory.id, Session: l.key.Session, expired: l.memory.turns == Reject}
}

// end stops the renewal.
func (l *lease) end() {
	l.stop()
	l.ended.Wait()
}

func (m *Memory) leaseTime() time.Duration {
	if m.lease > 0 {
		return m.lease
	}
	return defaultLease
}
