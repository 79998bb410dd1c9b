package steps

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/qtype-dev/qtype/internal/citation"
	"github.com/qtype-dev/qtype/model"
)

// EventKind is what an Event reports.
type EventKind string

// The kinds of events.
const (
	EventStepStart  EventKind = "step-start"  // a step begins to process a row
	EventStepEnd    EventKind = "step-end"    // a step has its first result for the row, or failed
	EventReasoning  EventKind = "reasoning"   // a delta of a model's reasoning
	EventCommentary EventKind = "commentary"  // a delta of what a model writes before its answer
	EventText       EventKind = "text"        // a delta of an answer's text
	EventToolCall   EventKind = "tool-call"   // a tool is about to be called
	EventToolResult EventKind = "tool-result" // a tool returned or failed
	EventSource     EventKind = "source"      // an answer cites a passage
	EventUsage      EventKind = "usage"       // tokens that a model call read and wrote
	EventShortened  EventKind = "shortened"   // a request was too long for the provider and is sent again without its oldest rounds
	EventTurn       EventKind = "turn"        // a turn of a memory ended, or a step set its variables
	EventRepaired   EventKind = "repaired"    // a conversation had tool calls without results, or results without calls; the request has neither
	EventDropped    EventKind = "dropped"     // a request is without a part of the one before: reasoning of earlier answers, because what comes before it has changed, or the tools
	EventFallback   EventKind = "fallback"    // a fallback answered, because the models before it failed
	EventRepeated   EventKind = "repeated"    // a call is made again, because its process ended before the result was recorded
	EventCacheHit   EventKind = "cache-hit"   // the row's results came from the step's cache
	EventCacheMiss  EventKind = "cache-miss"  // the row's results were not in the step's cache
)

// Event reports something that happened inside a step while it processed a row.
type Event struct {
	Kind      EventKind        // what happened
	Step      string           // the step's id
	Session   string           // the row's session
	Row       int64            // the row's number
	Origin    string           // in a run with batches: the id of the call that the event follows; empty before the first
	Text      string           // text, reasoning, commentary: the delta; tool-call: the arguments; tool-result: the result; shortened, dropped: what was left out; repeated: what is called; fallback: the error of the model that failed
	Tool      string           // the tool's name
	CallID    string           // the tool call's id
	Err       error            // tool-result, step-end: why the tool or the step failed
	Source    *citation.Source // source: the passage
	Input     int              // usage: tokens read
	Output    int              // usage: tokens written
	Estimated bool             // usage: Input and Output are estimates, because the server reports none
	Finish    string           // usage: why the answer ended, such as stop, length or content_filter; empty if it is not known
	Cached    int              // usage: tokens read from the provider's prompt cache, included in Input
	Cost      float64          // usage: by the prices of the model; 0 without prices
	Saved     float64          // usage: what a call in a batch cost less than one that is made at once
	Model     string           // usage: id of the model called, a fallback or one of a memory's; empty for the step's own. fallback: the model that answered
	Memory    string           // turn: the memory's id
	Flushes   int              // turn: how often messages left the window
	Repeated  int              // repeated: how often the call was made before
	Failed    *model.Failure   // fallback: why a model did not answer
}

type eventsKey struct{}

// listener receives events of some kinds.
type listener struct {
	sink   func(Event)
	kinds  []EventKind   // empty for all kinds
	outer  *listener     // the listener of the enclosing context
	origin func() string // see WithOrigin; nil for none
	logged *atomic.Value // the key of the newest call that a CallLog has, a string
}

// WithEvents returns a context in which steps report events of the given kinds, of
// all kinds if none is given, to sink, in addition to the sinks of ctx. sink must be
// safe for concurrent use and must not block for long. Models stream their answers
// where EventText is listened to.
func WithEvents(ctx context.Context, sink func(Event), kinds ...EventKind) context.Context {
	outer, _ := ctx.Value(eventsKey{}).(*listener)
	return context.WithValue(ctx, eventsKey{}, &listener{sink: sink, kinds: kinds, outer: outer})
}

// WithOrigin returns a context whose events have the origin that origin returns when they are reported, or the key of
// the newest call that the CallLog has: it is the same if the call is repeated.
func WithOrigin(ctx context.Context, origin func() string) context.Context {
	l, _ := ctx.Value(eventsKey{}).(*listener)
	if l == nil {
		return ctx
	}
	made := *l
	made.origin, made.logged = origin, &atomic.Value{}
	return context.WithValue(ctx, eventsKey{}, &made)
}

// originOf returns the listener of WithOrigin; nil for none.
func originOf(ctx context.Context) *listener {
	l, _ := ctx.Value(eventsKey{}).(*listener)
	for l != nil && l.origin == nil {
		l = l.outer
	}
	return l
}

// noteLogged makes the key of a call that the CallLog has the origin of the next events.
func noteLogged(ctx context.Context, key string) {
	if l := originOf(ctx); l != nil {
		l.logged.Store(key)
	}
}

func (l *listener) wants(kind EventKind) bool {
	return len(l.kinds) == 0 || slices.Contains(l.kinds, kind)
}

// Wanted reports whether a sink of ctx receives events of a kind.
func Wanted(ctx context.Context, kind EventKind) bool {
	l, _ := ctx.Value(eventsKey{}).(*listener)
	for ; l != nil; l = l.outer {
		if l.wants(kind) {
			return true
		}
	}
	return false
}

// Report sends an event to the sinks of ctx that receive its kind.
func Report(ctx context.Context, ev Event) {
	l, _ := ctx.Value(eventsKey{}).(*listener)
	for ; l != nil; l = l.outer {
		if ev.Origin == "" && l.origin != nil {
			if ev.Origin, _ = l.logged.Load().(string); ev.Origin == "" {
				ev.Origin = l.origin()
			}
		}
		if l.wants(ev.Kind) {
			l.sink(ev)
		}
	}
}
