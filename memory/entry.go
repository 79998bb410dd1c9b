package memory

import (
	"time"

	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
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

// Window is what the next call of a model is sent. Its entries are shared with
// the memory: nobody changes them.
type Window struct {
	System   *Entry   // the system message, nil where there is none; Seq is 0 where a step brought it along
	SystemAt int      // how many of Entries stand before the system message
	Entries  []*Entry // the chat messages, oldest first
	Tokens   int      // the tokens that the policy counts: the system message is one of them only where it is evicted by (message_window, token_window)
	Used     int      // how much of Limit is taken
	Limit    int      // the most that Used may be, 0 for no limit
	Unit     Unit     // what Used and Limit count
	Cut      bool     // max_context took something away; Entries may begin with texts that were cut
}

// EventKind says what happened to a window.
type EventKind string

// The kinds of events.
const (
	EventFlush  EventKind = "flush"  // the oldest messages left the window
	EventFailed EventKind = "failed" // a turn failed; its messages never entered the window
	EventSet    EventKind = "set"    // the whole window was replaced
	EventSent   EventKind = "sent"   // a turn sent the window to a model, for the last time in this turn

	EventSummary   EventKind = "summary"   // messages that left the window were folded into the summary
	EventVariables EventKind = "variables" // variables were set or removed
)

// Event is one thing that happened to a session's window.
type Event struct {
	Kind     EventKind   `json:"kind"`             // what happened
	Turn     int64       `json:"turn"`             // the turn in which it happened
	From     int64       `json:"from"`             // the first entry that it concerns; sent: 0 where none was sent
	To       int64       `json:"to"`               // the last one
	Messages int         `json:"messages"`         // how many messages left; failed: how many were said; sent: how many were sent
	Tokens   int         `json:"tokens"`           // their tokens
	Rule     spec.Policy `json:"rule,omitempty"`   // flush: by which policy
	Before   int         `json:"before,omitempty"` // flush: how much was in the window before, in Unit
	Limit    int         `json:"limit,omitempty"`  // flush: the limit that was exceeded, in Unit
	Unit     Unit        `json:"unit,omitempty"`   // flush: what Before and Limit count; tokens where it is empty
	Reason   string      `json:"reason"`           // one line for a person: the rule and its numbers, or why the turn failed
	Call     *Call       `json:"call,omitempty"`   // sent: to which model and with how much room
	Time     time.Time   `json:"time"`             // when, in UTC
}

// Call is what is known of the last call of a model in a turn.
type Call struct {
	Model         string `json:"model,omitempty"`          // what the provider calls the model
	ContextWindow int    `json:"context_window,omitempty"` // tokens that it reads and writes in one call, 0 where unknown
	Answer        int    `json:"answer,omitempty"`         // of those, kept free for the answer
	Tools         int    `json:"tools,omitempty"`          // of those, taken by the descriptions of tools
	System        int    `json:"system,omitempty"`         // of those, taken by the system message
	Seen          int64  `json:"seen"`                     // the newest entry when the turn began; later ones up to the turn's own were not sent
	Left          int    `json:"left,omitempty"`           // messages left out for this call alone, because the context window had no room
	Cut           bool   `json:"cut,omitempty"`            // the first messages were cut by max_context
	Calls         int    `json:"calls"`                    // how many calls the turn made

	Room    int                  `json:"room,omitempty"`    // tokens that the context had; 0 without context
	Context []ContextBlockReport `json:"context,omitempty"` // what became of each context block
}

// SessionInfo is a line of `qtype memory list`.
type SessionInfo struct {
	Session  string    // the session's id
	Messages int64     // how many messages were ever said in it, failed turns included
	InWindow int       // how many of them the next call is sent, the system message aside
	Tokens   int       // the window's tokens
	Used     int       // how much of Limit is taken
	Limit    int       // the most that Used may be, 0 for no limit
	Unit     Unit      // what Used and Limit count
	LastSaid time.Time // when the newest message was said, in UTC
	Flushes  int       // how often messages were flushed
}
