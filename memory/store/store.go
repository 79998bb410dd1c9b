// Package store is the contract between a memory and what keeps its sessions: the
// interface Store, with what stores may implement in addition to it, and the form of a
// stored session, its entries, events and state. Stores need this package only; a memory
// interprets what they keep. docs/writing-a-store.md writes a store.
package store

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"time"
)

// Store keeps the sessions of memories. Packages internal/memory/inprocess, internal/memory/sqlite,
// distribution/memory/postgres and distribution/memory/redis implement it; docs/writing-a-store.md
// describes how to write another one, and package memory/storetest tests it.
//
// A session is a history of entries, numbered from 1 and only ever appended to,
// a list of events, and a head: a version, a state and named values. A store
// need not interpret any of them.
//
// All methods are safe for concurrent use. They return the context's error if
// it ends, and have then changed nothing. Failures of the outside (a full disk, a
// locked file, an unreachable server) are reported as a *Error. Neither
// side modifies slices and messages that it has passed or received.
type Store interface {
	// Head returns the head of a session, the zero Head for an unknown one.
	// It creates nothing.
	Head(ctx context.Context, key Key) (Head, error)
	// Entries yields the entries that q selects, by ascending Seq, and reads
	// them while the range continues. An error is yielded once and ends the range.
	Entries(ctx context.Context, key Key, q Query) iter.Seq2[*Entry, error]
	// Events yields the session's events in the order in which they were added.
	Events(ctx context.Context, key Key) iter.Seq2[Event, error]
	// Apply makes one change, as a whole or not at all, if the session's version
	// is c.Version (0: the session is unknown); otherwise it returns ErrConflict
	// and changes nothing. When it returns nil the change is as durable as the
	// store can make it, and visible to every later read. After any other error
	// the caller does not know whether the change was made, and reads again.
	Apply(ctx context.Context, key Key, c Change) error
	// Delete removes everything that the store has of a session. It does
	// nothing for an unknown one.
	Delete(ctx context.Context, key Key) error
	// Sessions yields the sessions of one memory, ordered by id.
	Sessions(ctx context.Context, memory string) iter.Seq2[SessionHead, error]
	// Close releases the store's resources. No method is called after it.
	Close() error
}

// Remover is implemented by stores that can delete a session on the condition
// that it has not changed. A memory with a ttl uses it. With a store that does
// not implement it, a message that another process adds during the deletion of
// an expired session may be lost.
type Remover interface {
	// Remove deletes a session as Delete does if its version is version;
	// otherwise it returns ErrConflict and changes nothing.
	Remove(ctx context.Context, key Key, version int64) error
}

// BatchRemover is implemented by stores that delete many sessions in less time than one by one.
type BatchRemover interface {
	// RemoveAll deletes the sessions of a memory that still have the version of their
	// head, and returns their number. After an error some may be deleted.
	RemoveAll(ctx context.Context, memory string, sessions []SessionHead) (int, error)
}

// Deduplicator is implemented by stores that can reject messages that the
// session has already. A memory then does not look ids up, which saves a round trip.
type Deduplicator interface {
	// Distinct reports whether Apply returns ErrDuplicateMessage, and changes
	// nothing, if a change adds a message with the id of another entry of the
	// session and neither of the two has failed.
	Distinct() bool
}

// Key names a session. Both parts are arbitrary strings.
type Key struct {
	Memory  string // the memory's id
	Session string // the session's id
}

// Head is the current version, state and values of a session.
type Head struct {
	Version int64             // 0: the store does not have the session
	State   State             // stored as a whole, for example as JSON: later versions of this package add fields
	Values  map[string][]byte // named values such as the running summary; nil for none
}

// State is what a memory needs to know of a session without reading its history.
//
// The window consists of the system message and of the entries from First on
// that have not failed, are not system messages and are not in Evicted.
type State struct {
	Last     int64     `json:"last"`               // position of the newest entry: the length of the history
	Turns    int64     `json:"turns"`              // number of the newest turn
	First    int64     `json:"first"`              // position at which the window begins
	Evicted  string    `json:"evicted,omitempty"`  // positions from First on that left the window, such as "5-7,9"; empty for policies that evict the oldest messages only
	System   int64     `json:"system,omitempty"`   // position of the current system message, 0 for none
	InWindow int       `json:"in_window"`          // messages of the window without the system message
	Tokens   int       `json:"tokens"`             // their tokens
	Floor    int64     `json:"floor,omitempty"`    // no message before this position returns: the window was replaced there
	Rewound  string    `json:"rewound,omitempty"`  // positions that are not part of the conversation, in the form of Evicted: rewound, deleted, or the text of an edit
	Deleted  string    `json:"deleted,omitempty"`  // of those, positions that were deleted
	Edited   string    `json:"edited,omitempty"`   // messages that were edited, with the positions of their texts, such as "5>12"; the last one of a message counts
	Pinned   string    `json:"pinned,omitempty"`   // positions of messages that the policy keeps, in the form of Evicted
	Keep     int64     `json:"keep,omitempty"`     // round_window: later reads may need the messages from this position on
	Kept     int       `json:"kept,omitempty"`     // round_window: the number of those messages
	Used     int       `json:"used,omitempty"`     // round_window: characters in the window
	Open     bool      `json:"open,omitempty"`     // a tool call left the window before its results: they leave at once
	Flushes  int       `json:"flushes,omitempty"`  // how often messages were evicted
	LastSaid time.Time `json:"last_said,omitzero"` // when the newest message was added
	Expires  time.Time `json:"expires,omitzero"`   // of a session that is a cached result: when it expires; zero for never
	Size     int64     `json:"size,omitempty"`     // of a session that is a cached result: its bytes
}

// Query selects entries of one session.
type Query struct {
	From int64    // the first position
	To   int64    // the last position; 0: the end
	Live bool     // without entries whose Status is Failed
	IDs  []string // only messages with these ids; nil: all
}

// Change is what one Apply does to a session.
type Change struct {
	Version int64             // the version that the session must have; 0: it must not exist
	Next    int64             // the version that it has afterwards; the session never had it before
	State   State             // its state afterwards
	Entries []*Entry          // added, with the positions State.Last-len+1 to State.Last
	Events  []Event           // added
	Values  map[string][]byte // set; a nil value removes the name; other names stay
}

// SessionHead is a session with its head.
type SessionHead struct {
	Session string // the session's id
	Head    Head   // its version and state, without values
}

// ErrConflict is returned by Apply if the session has another version.
var ErrConflict = errors.New("the session was changed by another writer")

// ErrDuplicateMessage is returned by Apply of a Deduplicator if the session has
// one of the messages already.
var ErrDuplicateMessage = errors.New("the session has this message already")

// IsConflict reports whether another writer was faster, so that a change can be tried again.
func IsConflict(err error) bool {
	return errors.Is(err, ErrConflict) || errors.Is(err, ErrDuplicateMessage)
}

// ErrorKind classifies failures of a store.
type ErrorKind string

// The kinds of failures.
const (
	Unavailable ErrorKind = "unavailable" // unreachable or cannot be opened
	Locked      ErrorKind = "locked"      // locked by another program for too long
	Full        ErrorKind = "full"        // no space left
	Denied      ErrorKind = "denied"      // no permission
	Corrupt     ErrorKind = "corrupt"     // not in the form that a store writes
	WrongKey    ErrorKind = "wrong key"   // encrypted with an unknown key
	TooNew      ErrorKind = "too new"     // written by a newer version of this program
)

// Error is a failure of a store that the program did not cause.
type Error struct {
	Location string    // the file or server, without credentials
	Problem  ErrorKind // the kind of failure
	Message  string    // what is wrong, one line without the location
	Err      error     // the cause, if any

	Temporary bool // trying again later may succeed: a server that restarts, a locked file
}

// Error returns one line that names the place.
func (e *Error) Error() string { return fmt.Sprintf("memory store %s: %s", e.Location, e.Message) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Remove deletes a session if its version is version; otherwise it returns
// ErrConflict. For a store that is not a Remover the check and the deletion are
// two steps: a message that another process adds in between is lost.
func Remove(ctx context.Context, store Store, key Key, version int64) error {
	if r, ok := store.(Remover); ok {
		return r.Remove(ctx, key, version)
	}
	head, err := store.Head(ctx, key)
	if err != nil {
		return err
	}
	if head.Version != version {
		return ErrConflict
	}
	return store.Delete(ctx, key)
}

// RemoveAll deletes those of the sessions of a memory that still have the version of their
// head, and returns their number. With a store that is not a BatchRemover each is deleted by
// Remove.
func RemoveAll(ctx context.Context, store Store, memory string, sessions []SessionHead) (removed int, err error) {
	if r, ok := store.(BatchRemover); ok {
		return r.RemoveAll(ctx, memory, sessions)
	}
	for i := range sessions {
		switch err := Remove(ctx, store, Key{Memory: memory, Session: sessions[i].Session}, sessions[i].Head.Version); {
		case err == nil:
			removed++
		case !errors.Is(err, ErrConflict):
			return removed, err
		}
	}
	return removed, nil
}

// NextVersion returns a version after v. A session hardly ever has a version twice, not even
// after it was deleted and created again, because versions begin at a random number, nor after a
// server of the store has lost its last changes, because they grow by random numbers.
func NextVersion(v int64) int64 {
	if v == 0 {
		return rand.Int64N(1<<62) + 1
	}
	return v + 1 + rand.Int64N(maxStep)
}

// maxStep is the most by which a version grows. Versions that differ by more than 2⁴⁰, or by 2³²
// during a read, belong to another session with the id.
const maxStep = 1 << 16

// EncryptedType is the media type of what an encrypting store (package
// internal/memory/encrypted) puts in the place of a message.
const EncryptedType = "application/vnd.qtype.sealed"

// EncryptedError reports that the store's content is encrypted, and that the
// store was opened without encryption.
type EncryptedError struct {
	Memory  string // the memory's id
	Session string // the session's id
}

// Error names both and what to do.
func (e *EncryptedError) Error() string {
	return fmt.Sprintf("memory %s, session %q: the stored messages are encrypted; set the store's encryption and its key", e.Memory, e.Session)
}

// CheckDecrypted returns an *EncryptedError for an entry that is still encrypted.
func CheckDecrypted(key Key, e *Entry) error {
	if b := e.Message.Blocks; len(b) == 1 && b[0].MimeType == EncryptedType {
		return &EncryptedError{Memory: key.Memory, Session: key.Session}
	}
	return nil
}
