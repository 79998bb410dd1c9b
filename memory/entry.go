package memory

import (
	"time"

	"github.com/qtype-dev/qtype/chat"
)

// Status tells where a message of the history stands.
type Status uint8

// The statuses. A store keeps InWindow or Failed as it was told;
// Memory.History works the others out.
const (
	InWindow Status = iota // sent with the next call
	Flushed                // said, and gone from the window
	Failed                 // said in a turn that failed or was cancelled: never in the window again
	Replaced               // a system message that a newer one took the place of
)

// String is the status in lower case, as the command line shows it.
func (s Status) String() string {
	switch s {
	case InWindow:
		return "in window"
	case Flushed:
		return "flushed"
	case Failed:
		return "failed"
	case Replaced:
		return "replaced"
	}
	return "unknown"
}

// Entry is one message of a session's history.
type Entry struct {
	Message chat.Message // what was said; its id is unique among the session's entries that did not fail
	Seq     int64        // its place in the history, counted from 1 without gaps
	Turn    int64        // the turn that said it, counted from 1
	Tokens  int          // its size, counted once, when it was said
	Time    time.Time    // when its turn ended, in UTC
	Status  Status       // where it stands
}

// Window is what the next call of a model is sent.
type Window struct {
	System  *Entry  // the system message, nil where there is none; Seq is 0 where a step brought it along
	Entries []Entry // the chat messages, oldest first
	Tokens  int     // the sum over Entries; the system message is not counted (reference memory.md 2.6)
	Limit   int     // the most that Tokens may be: the chat share of the token limit
}

// EventKind says what happened to a window.
type EventKind string

// The kinds of events.
const (
	EventFlush  EventKind = "flush"  // the oldest messages left the window
	EventFailed EventKind = "failed" // a turn failed; its messages never entered the window
	EventSet    EventKind = "set"    // the whole window was replaced
)

// Event is one thing that happened to a session's window.
type Event struct {
	Kind     EventKind `json:"kind"`             // what happened
	Turn     int64     `json:"turn"`             // the turn in which it happened
	From     int64     `json:"from"`             // the first entry that it concerns
	To       int64     `json:"to"`               // the last one
	Messages int       `json:"messages"`         // how many messages left; failed: how many were said
	Tokens   int       `json:"tokens"`           // their tokens
	Before   int       `json:"before,omitempty"` // flush: the window's tokens before
	Limit    int       `json:"limit,omitempty"`  // flush: the chat share that was exceeded
	Reason   string    `json:"reason"`           // one line for a person: the rule and its numbers, or why the turn failed
	Time     time.Time `json:"time"`             // when, in UTC
}

// SessionInfo is a line of `qtype memory list`.
type SessionInfo struct {
	Session  string    // the session's id
	Messages int64     // how many messages were ever said in it, failed turns included
	InWindow int       // how many of them the next call is sent, the system message aside
	Tokens   int       // the window's tokens
	Limit    int       // the most that Tokens may be
	LastSaid time.Time // when the newest message was said, in UTC
	Flushes  int       // how often messages were flushed
}
