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

	"github.com/qtype-dev/qtype/internal/memory/change"
	"github.com/qtype-dev/qtype/internal/memory/window"
	"github.com/qtype-dev/qtype/internal/timer"
	"github.com/qtype-dev/qtype/memory/store"
)

// defaultLease is how long the lease of a turn lasts without renewal: so long a session
// stays busy after its process was killed.
const defaultLease = 15 * time.Second

// How long a turn waits before it looks whether a lease is free: longer each time.
const (
	firstLeaseWait = 5 * time.Millisecond
	mostLeaseWait  = 100 * time.Millisecond
)

// leaseRecord is the value of a session in which one turn runs, with concurrent_turns other
// than queue, or in a context of WithLease. The version of the session is the fence: a turn
// commits only while the version that it read has its own record.
type leaseRecord struct {
	Owner string    `json:"owner"`          // a random name of the turn
	Work  string    `json:"work,omitempty"` // see WithLease
	Until time.Time `json:"until,omitzero"` // by the store's clock; zero if a newer turn may always take over
}

// leaseOf returns the record in the values of a session, the zero record for none.
func leaseOf(values map[string][]byte) (r leaseRecord) {
	_ = json.Unmarshal(values[change.LeaseValue], &r) // an unreadable lease is none
	return r
}

// work is what WithLease and WithServerLease add to a context.
type work struct {
	name        string
	lost        func()
	onlyServers bool // leases are for stores that several machines share
}

type workKey struct{}

// WithLease returns a context in which turns with concurrent_turns: queue also wait for turns that
// other processes began in such a context, in no particular order, by a lease in the session. name
// names the work that the turn is part of: a turn of the same work takes the lease over at once,
// because the process that had it was killed, or is no longer to do that work. A turn that loses its
// lease in this way leaves nothing, as with ErrSuspended, and lost, if not nil, is called, which
// should end the work in this process. It may be called repeatedly.
func WithLease(ctx context.Context, name string, lost func()) context.Context {
	if lost == nil {
		lost = func() {}
	}
	return context.WithValue(ctx, workKey{}, work{name: name, lost: lost})
}

// WithServerLease is like WithLease for memories in a server that several machines share, such
// as PostgreSQL or Redis. In a context of WithLease it changes nothing.
func WithServerLease(ctx context.Context, name string, lost func()) context.Context {
	if ctx.Value(workKey{}) != nil {
		return ctx
	}
	if lost == nil {
		lost = func() {}
	}
	return context.WithValue(ctx, workKey{}, work{name: name, lost: lost, onlyServers: true})
}

// Work returns the name of the work (see WithLease) whose turn has the lease of a session, in
// any process; empty if there is none, and with concurrent_turns: interrupt, where the next
// turn takes over.
func (m *Memory) Work(ctx context.Context, session string) (string, error) {
	if m.turns == Interrupt || m.turns == Queue && !store.IsServer(m.reader.Store) { // turns of other processes are not expected
		return "", nil
	}
	head, err := m.reader.Store.Head(ctx, m.key(session))
	if err != nil {
		return "", err
	}
	l := leaseOf(head.Values)
	if l.Work == "" {
		return "", nil
	}
	now, err := m.clock.Now(ctx, m.reader.Store)
	if err != nil || !l.Until.After(now) {
		return "", err
	}
	return l.Work, nil
}

// needsLease reports whether turns in a context have a lease.
func (m *Memory) needsLease(ctx context.Context) bool {
	if m.turns != Queue {
		return true
	}
	w, given := ctx.Value(workKey{}).(work)
	return given && (!w.onlyServers || store.IsServer(m.reader.Store))
}

// lease is the right of one turn to commit.
type lease struct {
	memory  *Memory
	key     store.Key
	owner   string
	work    work                    // see WithLease
	created bool                    // the session did not exist before
	cancel  context.CancelCauseFunc // ends the context of the turn
	stop    context.CancelFunc
	ended   sync.WaitGroup
}

// errLeased reports that a turn of another process has the lease for now.
var errLeased = errors.New("another process has the lease")

// acquire takes the lease of a session that the caller has locked, and returns it and the
// session after it; base is the session before. It returns a *BusyError if a turn of another
// process has it and the memory rejects concurrent turns. cancel is called when another turn
// takes the lease.
func (m *Memory) acquire(ctx context.Context, key store.Key, base *window.View, policy window.Policy, cancel context.CancelCauseFunc) (*lease, *window.View, error) {
	l := &lease{memory: m, key: key, owner: rand.Text(), cancel: cancel}
	l.work, _ = ctx.Value(workKey{}).(work)
	waited := 0
	for attempt := 0; attempt < maxAttempts; {
		err := l.take(ctx, base)
		if err == nil {
			l.keep(ctx)
			return l, base, nil
		}
		m.sessions.SetView(key.Session, nil)
		switch {
		case errors.Is(err, errLeased):
			waited++
			if err = timer.Sleep(ctx, min(time.Duration(waited)*firstLeaseWait, mostLeaseWait)); err != nil {
				return nil, nil, m.waitError(key.Session, err)
			}
		case store.IsConflict(err):
			if err = pause(ctx, attempt); err != nil {
				return nil, nil, err
			}
			attempt++
		default:
			return nil, nil, err
		}
		if base, err = m.load(ctx, key); err == nil {
			base, err = m.reader.ExtendBack(ctx, key, base, policy)
		}
		if err != nil {
			return nil, nil, err
		}
	}
	return nil, nil, fmt.Errorf("memory %s, session %q: %w, %d times in a row", m.id, key.Session, store.ErrConflict, maxAttempts)
}

// take writes the record to the session at the version of base.
func (l *lease) take(ctx context.Context, base *window.View) error {
	m := l.memory
	record, now, err := l.record(ctx)
	if err != nil {
		return err
	}
	if other := leaseOf(base.Values); other.Until.After(now) && (l.work.name == "" || l.work.name != other.Work) {
		switch m.turns {
		case Reject:
			return &BusyError{Memory: m.id, Session: l.key.Session}
		case Queue:
			return errLeased
		}
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
	r := leaseRecord{Owner: l.owner, Work: l.work.name}
	if l.memory.turns != Interrupt {
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
			if err := l.renew(ctx); errors.As(err, new(*InterruptedError)) || errors.Is(err, ErrSuspended) {
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
		return l.lost(head.Values)
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

// lost returns the error of a turn without its lease, in a session with the values.
func (l *lease) lost(values map[string][]byte) error {
	if l.work.name != "" && leaseOf(values).Work == l.work.name {
		l.work.lost()
		return fmt.Errorf("memory %s, session %q: another process took over: %w", l.memory.id, l.key.Session, ErrSuspended)
	}
	return &InterruptedError{Memory: l.memory.id, Session: l.key.Session, expired: l.memory.turns != Interrupt}
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
