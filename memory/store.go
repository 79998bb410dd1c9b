package memory

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"
)

// Store keeps the sessions of memories. The package brings NewInProcess,
// memory/sqlite brings a durable one, and a program may bring its own: the
// suite in memory/storetest tells whether it keeps this contract.
//
// A session is a history (entries numbered from 1, only ever added to), a list
// of events, and a head: a version, a state and named values. A store need not
// understand any of them. What the window holds follows from the state.
//
// All methods are safe for concurrent use. A context that ends makes them
// return its error; nothing is half done then. What the outside does (a full
// disk, a locked file, a server that is down) is reported as a *StoreError.
// Slices and messages that go in or come out are never changed afterwards by
// either side.
type Store interface {
	// Head is where the session stands; the zero Head for one that the store
	// does not hold, which is no error. Reading never creates anything.
	Head(ctx context.Context, key Key) (Head, error)
	// Entries yields the entries that q asks for, by rising Seq, reading them
	// as the range goes on. An error is yielded once and ends the range.
	Entries(ctx context.Context, key Key, q Query) iter.Seq2[*Entry, error]
	// Events yields the session's events in the order in which they were added.
	Events(ctx context.Context, key Key) iter.Seq2[Event, error]
	// Apply makes one change, whole or not at all, if the session's version
	// still is c.Version (0: the store does not hold the session); otherwise it
	// changes nothing and returns ErrConflict. When it returns nil the change
	// is as durable as the store can make it, and every later read sees it.
	// An error that is neither ErrConflict nor the caller's mistake may leave
	// open whether the change was made; the memory reads again and finds out.
	Apply(ctx context.Context, key Key, c Change) error
	// Delete removes everything that the session has. Deleting what is not
	// there is no error.
	Delete(ctx context.Context, key Key) error
	// Sessions yields the sessions of one memory, ordered by id.
	Sessions(ctx context.Context, memory string) iter.Seq2[SessionHead, error]
	// Close releases what the store holds. Nothing is called after it.
	Close() error
}

// Remover is implemented by stores that can delete a session only if nobody
// wrote to it meanwhile. A memory with a ttl uses it; with a store that lacks it,
// what another process says at the very moment of deletion may be lost.
type Remover interface {
	// Remove does as Delete does if the session's version still is version;
	// otherwise it changes nothing and returns ErrConflict.
	Remove(ctx context.Context, key Key, version int64) error
}

// Deduplicator is implemented by stores that can refuse what was said before: a
// memory need not look ids up then, which saves a round trip.
type Deduplicator interface {
	// Distinct tells whether Apply returns ErrDuplicateMessage, and changes nothing, where a
	// change would say a message whose id another entry of the session has, both
	// of them not failed.
	Distinct() bool
}

// Key names one conversation. Both parts are arbitrary strings.
type Key struct {
	Memory  string // the memory's id in the document
	Session string // the session's id
}

// Head is where a session stands.
type Head struct {
	Version int64             // 0: the store does not hold the session
	State   State             // kept whole, as JSON for instance: later versions of this package add fields
	Values  map[string][]byte // named values of the session, such as its running summary; nil where there are none
}

// State is what a memory must know of a session without reading its history.
// The window is: the system message, then the entries from First on that
// neither failed nor are system messages.
type State struct {
	Last     int64     `json:"last"`               // the newest entry's Seq: how many messages were ever said
	Turns    int64     `json:"turns"`              // the newest turn's number
	First    int64     `json:"first"`              // the window begins at this Seq
	System   int64     `json:"system,omitempty"`   // the Seq of the system message that holds, 0 for none
	InWindow int       `json:"in_window"`          // messages in the window, the system message aside
	Tokens   int       `json:"tokens"`             // their tokens
	Floor    int64     `json:"floor,omitempty"`    // nothing before this Seq comes back: the window was set anew there
	Keep     int64     `json:"keep,omitempty"`     // round_window: later reads may want what stands from this Seq on
	Kept     int       `json:"kept,omitempty"`     // round_window: how many messages that are
	Used     int       `json:"used,omitempty"`     // round_window: characters in the window
	Open     bool      `json:"open,omitempty"`     // a tool call left the window before its results came: they leave at once
	Flushes  int       `json:"flushes,omitempty"`  // how often messages were flushed
	LastSaid time.Time `json:"last_said,omitzero"` // when the newest message was said
}

// Query chooses entries of one session.
type Query struct {
	From int64    // from this Seq on
	To   int64    // up to and with this Seq; 0: to the end
	Live bool     // leave out the entries whose Status is Failed
	IDs  []string // only the messages with these ids; nil: all
}

// Change is what one Apply does to a session.
type Change struct {
	Version int64             // the version that the session must have; 0: it must not exist
	Next    int64             // the version that it has afterwards; never one that the session had before
	State   State             // its state afterwards
	Entries []*Entry          // to be added, numbered from State.Last-len+1 to State.Last
	Events  []Event           // to be added
	Values  map[string][]byte // to be set; a nil value removes the name; names that are not here stay
}

// SessionHead is a session and where it stands; Head.Values is left out.
type SessionHead struct {
	Session string // the session's id
	Head    Head   // its version and state
}

// ErrConflict is what Apply answers when another writer was faster.
var ErrConflict = errors.New("the session was changed by another writer")

// ErrDuplicateMessage is what Apply of a Distinct store answers when the session holds one
// of the messages already.
var ErrDuplicateMessage = errors.New("the session holds this message already")

// ErrorKind classes what can be wrong with a store.
type ErrorKind string

// The problems.
const (
	Unavailable ErrorKind = "unavailable" // it cannot be reached or opened
	Locked      ErrorKind = "locked"      // another program keeps it busy for too long
	Full        ErrorKind = "full"        // no room is left
	Denied      ErrorKind = "denied"      // no permission
	Corrupt     ErrorKind = "corrupt"     // what is there is not what a store wrote
	WrongKey    ErrorKind = "wrong key"   // it is encrypted with a key that was not given
	TooNew      ErrorKind = "too new"     // a newer version of this program wrote it
)

// StoreError is what the outside did to a store.
type StoreError struct {
	Place   string    // the file or the server, without credentials
	Problem ErrorKind // which kind of trouble
	Message string    // what is wrong, one line without the place
	Err     error     // what lies below, where there is something
}

// Error is one line that names the place.
func (e *StoreError) Error() string { return fmt.Sprintf("memory store %s: %s", e.Place, e.Message) }

// Unwrap is what lies below.
func (e *StoreError) Unwrap() error { return e.Err }
