package memory

import (
	"errors"
	"fmt"
)

// TurnPolicy decides what Begin does while another turn of the session is active. Queue
// orders the turns of this process; except in a context of WithLease or WithServerLease, those of
// other processes run at the same time, and the later commit follows the earlier one. The others hold for all
// processes that use the store, by a lease in the session. Append, Set and Clear always wait:
// they are short.
type TurnPolicy string

// The policies for a second turn.
const (
	Queue     TurnPolicy = "queue"     // it waits
	Reject    TurnPolicy = "reject"    // it fails with a *BusyError
	Interrupt TurnPolicy = "interrupt" // it cancels the older turn
)

func (t TurnPolicy) valid() bool { return t == Queue || t == Reject || t == Interrupt }

// BusyError reports that another turn of the session is active (concurrent_turns: reject).
type BusyError struct {
	Memory  string // the memory's id
	Session string // the session's id
}

// Error names the memory and the session.
func (e *BusyError) Error() string {
	return fmt.Sprintf("memory %s: session %q is busy with another turn (concurrent_turns: reject)", e.Memory, e.Session)
}

// InterruptedError reports that a newer turn replaced this one (turns:
// interrupt). It is the cause with which the older turn's context ends.
type InterruptedError struct {
	Memory  string // the memory's id
	Session string // the session's id

	expired bool // concurrent_turns: reject or queue; the lease was not renewed in time, or the session was deleted
}

// Error names the memory and the session.
func (e *InterruptedError) Error() string {
	if e.expired {
		return fmt.Sprintf("memory %s: session %q was deleted, or another process began a turn after the lease of this one had ended", e.Memory, e.Session)
	}
	return fmt.Sprintf("memory %s: a newer turn of session %q replaced this one (concurrent_turns: interrupt)", e.Memory, e.Session)
}

// ErrStopped is the cause with which the context of a turn ends when its user stops it; see Turn.Stop.
var ErrStopped = errors.New("the run was cancelled")

// ErrSuspended is the reason of an Abort that records nothing: the turn will be
// repeated, for example after a restart of the program.
var ErrSuspended = errors.New("the turn was suspended and will be repeated")
