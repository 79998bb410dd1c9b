package store

import (
	"time"

	"github.com/qtype-dev/qtype/internal/memory/prefix"
	"github.com/qtype-dev/qtype/spec"
	"github.com/qtype-dev/qtype/spec/chat"
)

// Status is the status of a message in the history.
type Status uint8

// The statuses. A store keeps InWindow and Failed; Memory.History derives the
// others from the session's state.
const (
	InWindow Status = iota // part of the window
	Flushed                // no longer part of the window
	Failed                 // from a turn that failed, or that was stopped before anything was said; never part of the window
	Replaced               // a system message that a newer one replaced
	Rewound                // from a turn that was rewound; never part of the window again
	Deleted                // deleted; never part of the window again
	Edited                 // a newer text took its place
)

// String returns the status in lower case.
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
	case Rewound:
		return "rewound"
	case Deleted:
		return "deleted"
	case Edited:
		return "edited"
	}
	return "unknown"
}

// Entry is one message of a session's history.
type Entry struct {
	Message chat.Message // its id is unique among the entries of the session that did not fail
	Seq     int64        // position in the history, from 1 without gaps
	Turn    int64        // number of its turn, from 1
	Tokens  int          // its size, counted once, when it was added
	Time    time.Time    // when its turn ended, in UTC
	Status  Status       // its status
}

// Unit is what the limit of a window counts.
type Unit string

// The units.
const (
	InTokens     Unit = "tokens"
	InMessages   Unit = "messages"
	InCharacters Unit = "characters" // Unicode code points of the texts
	InRounds     Unit = "rounds"     // a user message and the messages up to the next one
)

// EventKind is the kind of an event.
type EventKind string

// The kinds of events.
const (
	EventFlush  EventKind = "flush"  // messages left the window
	EventFailed EventKind = "failed" // a turn failed; its messages never entered the window
	EventSet    EventKind = "set"    // the whole window was replaced
	EventRewind EventKind = "rewind" // the messages of a turn and of those after it left for good
	EventDelete EventKind = "delete" // messages were deleted
	EventEdit   EventKind = "edit"   // a message has another text
	EventPin    EventKind = "pin"    // a message was pinned: the policy keeps it
	EventUnpin  EventKind = "unpin"  // a message is no longer pinned
	EventSent   EventKind = "sent"   // the last call of a model in a turn

	EventSummary   EventKind = "summary"   // evicted messages were added to the summary
	EventVariables EventKind = "variables" // variables were set or removed
	EventFacts     EventKind = "facts"     // evicted messages were read for facts

	EventObservations EventKind = "observations" // evicted messages were read for the log of observations, or its lines merged
)

// EventKinds returns all kinds of events.
func EventKinds() []EventKind {
	return []EventKind{EventFlush, EventFailed, EventSet, EventRewind, EventDelete, EventEdit, EventPin, EventUnpin, EventSent,
		EventSummary, EventVariables, EventFacts, EventObservations}
}

// IsEarly reports whether events of the kind are stored before the turn that they belong to, which
// may be yet to come or fail.
func (k EventKind) IsEarly() bool {
	return k == EventSummary || k == EventFacts || k == EventObservations
}

// Event describes a change of a session's window or values.
type Event struct {
	Kind     EventKind   `json:"kind"`              // what happened
	Turn     int64       `json:"turn"`              // the turn in which it happened
	From     int64       `json:"from"`              // position of the first message concerned; sent: 0 for none
	To       int64       `json:"to"`                // position of the last one
	Messages int         `json:"messages"`          // number of messages: evicted, failed or sent
	Tokens   int         `json:"tokens"`            // their tokens
	Rule     spec.Policy `json:"rule,omitempty"`    // flush: the policy
	Before   int         `json:"before,omitempty"`  // flush: size of the window before, in Unit
	Limit    int         `json:"limit,omitempty"`   // flush: the exceeded limit, in Unit
	Others   int         `json:"others,omitempty"`  // flush with Compaction.At: of Before, what calls need besides messages
	Unit     Unit        `json:"unit,omitempty"`    // flush: unit of Before and Limit; tokens if empty
	Rewound  int64       `json:"rewound,omitempty"` // rewind: the first turn that left
	Revised  bool        `json:"revised,omitempty"` // rewind: edits and deletions of earlier messages stay
	By       int64       `json:"by,omitempty"`      // edit: position of the new text
	Reason   string      `json:"reason"`            // one line for users: the rule with its numbers, or why the turn failed
	Call     *Call       `json:"call,omitempty"`    // sent: the model and its room
	Time     time.Time   `json:"time"`              // in UTC
}

// Call describes the last call of a model in a turn.
type Call struct {
	Model         string  `json:"model,omitempty"`          // the provider's name of the model
	ContextWindow int     `json:"context_window,omitempty"` // tokens that the model reads and writes in one call, 0 if unknown
	Answer        int     `json:"answer,omitempty"`         // of those, reserved for the answer
	Tools         int     `json:"tools,omitempty"`          // of those, used by the descriptions of tools
	Passages      int     `json:"passages,omitempty"`       // of those, used by the passages of the key sources
	System        int     `json:"system,omitempty"`         // of those, used by the system message
	Seen          int64   `json:"seen"`                     // position of the newest message when the turn began; later ones of other turns were not sent
	Left          int     `json:"left,omitempty"`           // messages left out of this call only, for lack of room in the context window
	Omitted       string  `json:"omitted,omitempty"`        // positions after the first message that were not sent, so that the question of the turn stays, such as "5-7,9"
	Shortened     string  `json:"shortened,omitempty"`      // positions of messages that were sent in a short form, such as "5-7,9"
	Imageless     string  `json:"imageless,omitempty"`      // positions of messages that were sent with captions in place of their images, such as "5-7,9"
	Factor        float64 `json:"factor,omitempty"`         // the provider's count of earlier calls, divided by this memory's: the window was fitted by it
	Estimate      int     `json:"estimate,omitempty"`       // tokens of the whole request as this memory counts them
	Reported      int     `json:"reported,omitempty"`       // tokens of the whole request as the provider counted them, 0 if it reported none
	Rejected      int     `json:"rejected,omitempty"`       // of Left, messages that were left out after the provider had rejected the request as too long
	Suspected     bool    `json:"suspected,omitempty"`      // the provider gave no reason for that rejection
	Repairs       int     `json:"repairs,omitempty"`        // results of tool calls that were missing and added to this call, and results without a call that were left out
	Cut           bool    `json:"cut,omitempty"`            // max_context shortened the first messages
	Calls         int     `json:"calls"`                    // number of calls in the turn

	Prefix []Prefix `json:"prefix,omitempty"` // how the first call of the turn continues the request before, and each further call that does not begin with it

	Room    int                  `json:"room,omitempty"`    // tokens available for the context; 0 without context
	Context []ContextBlockReport `json:"context,omitempty"` // what was sent of each context block
}

// Prefix describes how much of a request is the beginning of the request before: what a
// provider's cache has of it. Tools and the syntax of the provider do not count.
type Prefix struct {
	Call    int           `json:"call"`              // number of the call in the turn, from 1
	Bytes   int           `json:"bytes"`             // where the first difference is: bytes of the texts, calls and media of the equal parts
	Tokens  int           `json:"tokens"`            // tokens of the equal parts
	Lost    int           `json:"lost,omitempty"`    // tokens of the request before that follow them
	Reason  prefix.Reason `json:"reason,omitempty"`  // why they end; empty if the request begins with the whole one before
	Part    prefix.Kind   `json:"part,omitempty"`    // what is different
	Message int64         `json:"message,omitempty"` // position of the message concerned, 0 for none
}

// BlockKind is the kind of a context block, as in documents.
type BlockKind string

// ContextBlockReport describes what a call sends of one context block.
type ContextBlockReport struct {
	Block    BlockKind `json:"block"`             // its kind
	Priority int       `json:"priority"`          // the block with the highest number is cut first
	Tokens   int       `json:"tokens"`            // approximate size: the blocks are counted together
	Units    int       `json:"units"`             // lines of text, values or messages that were sent
	Cut      int       `json:"cut,omitempty"`     // how many of them had no room
	Found    []int64   `json:"found,omitempty"`   // retrieval: positions of the messages that were sent
	Through  int64     `json:"through,omitempty"` // summary: position of the newest message that it covers
	Problem  string    `json:"problem,omitempty"` // why the block is out of date or empty
	Text     string    `json:"text,omitempty"`    // what was sent; not stored in events
	Pending  bool      `json:"pending,omitempty"` // retrieval: computed when the next message is added
	Stable   bool      `json:"-"`                 // sent with the system message, not before the newest user message
}
