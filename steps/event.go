package steps

import (
	"context"
	"slices"
)

// EventKind says what an Event reports.
type EventKind string

// The kinds of events.
const (
	EventText       EventKind = "text"        // more of an answer's text
	EventToolCall   EventKind = "tool-call"   // a tool is about to be called
	EventToolResult EventKind = "tool-result" // a tool answered or failed
	EventUsage      EventKind = "usage"       // tokens that a model call read and wrote
	EventCacheHit   EventKind = "cache-hit"   // the step's cache had the row's results; the step did not work
	EventCacheMiss  EventKind = "cache-miss"  // it had not
)

// Event is something that happened inside a step while it worked on a row.
type Event struct {
	Kind    EventKind // what happened
	Step    string    // the step's id
	Session string    // the row's session
	Row     int64     // the row's number
	Text    string    // text: the delta; tool-call: the arguments; tool-result: the result
	Tool    string    // the tool's name
	CallID  string    // the tool call's id
	Err     error     // tool-result: why the tool failed
	Input   int       // usage: tokens read
	Output  int       // usage: tokens written
	Model   string    // usage: the id of the model that was asked, a fallback or one of a memory's; empty for the step's own
}

type eventsKey struct{}

// listener is who wants to know, and of what.
type listener struct {
	sink  func(Event)
	kinds []EventKind // empty means all
	outer *listener   // who listened before
}

// WithEvents makes steps that run under the context report events of the given
// kinds, or of all where none is given, to sink, beside those who listen
// already. It must be safe for concurrent use and must not block for long.
// Models are asked to stream where EventText is wanted.
func WithEvents(ctx context.Context, sink func(Event), kinds ...EventKind) context.Context {
	outer, _ := ctx.Value(eventsKey{}).(*listener)
	return context.WithValue(ctx, eventsKey{}, &listener{sink, kinds, outer})
}

func (l *listener) wants(kind EventKind) bool {
	return len(l.kinds) == 0 || slices.Contains(l.kinds, kind)
}

// wanted tells whether somebody listens to events of a kind.
func wanted(ctx context.Context, kind EventKind) bool {
	l, _ := ctx.Value(eventsKey{}).(*listener)
	for ; l != nil; l = l.outer {
		if l.wants(kind) {
			return true
		}
	}
	return false
}

// Report hands an event to all who listen to its kind.
func Report(ctx context.Context, ev Event) {
	l, _ := ctx.Value(eventsKey{}).(*listener)
	for ; l != nil; l = l.outer {
		if l.wants(ev.Kind) {
			l.sink(ev)
		}
	}
}
