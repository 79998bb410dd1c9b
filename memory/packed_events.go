package memory

import (
	"math"
	"slices"
	"time"

	"github.com/qtype-dev/qtype/spec"
)

// packedEvents are a session's events in this process. Windows that evict at every
// append have as many as messages, so those are kept in 48 bytes each.
type packedEvents struct {
	short [][]packedEvent // every event, in order; pieces of chunkLen, the last one shorter
	whole [][]Event       // those that are more than an eviction; the same
	told  int64           // how many there are in whole
}

// packedEvent is an Event of the kind EventFlush whose reason its numbers tell, or
// stands for one in evictions.whole.
type packedEvent struct {
	from     int64 // Event.From; the place in whole
	turn     int64
	micros   int64 // when, since 1970
	span     int32 // Event.To - Event.From
	messages int32
	tokens   int32
	before   int32
	limit    int32
	rule     uint8 // an index into evictionRules; wholeEvent
	unit     uint8 // an index into evictionUnits
}

// wholeEvent is the rule of what stands in evictions.whole.
const wholeEvent = math.MaxUint8

func evictionRules() [2]spec.Policy {
	return [2]spec.Policy{spec.PolicyMessageWindow, spec.PolicyTokenWindow}
}

func evictionUnits() [2]Unit { return [2]Unit{InMessages, InTokens} }

// add puts an event at the end.
func (v *packedEvents) add(e *Event) {
	one, ok := packEvent(e)
	if !ok {
		one = packedEvent{from: v.told, rule: wholeEvent}
		v.whole = appendPiece(v.whole, *e)
		v.told++
	}
	v.short = appendPiece(v.short, one)
}

// packEvent is an event as an eviction; ok is false where that would lose something.
func packEvent(e *Event) (one packedEvent, ok bool) {
	if e.Kind != EventFlush || e.Reason != "" || e.Call != nil || !isMicroUTC(e.Time) {
		return packedEvent{}, false
	}
	rules, units := evictionRules(), evictionUnits()
	rule, unit := slices.Index(rules[:], e.Rule), slices.Index(units[:], e.Unit)
	one = packedEvent{from: e.From, turn: e.Turn, micros: e.Time.UnixMicro(), span: int32(e.To - e.From),
		messages: int32(e.Messages), tokens: int32(e.Tokens), before: int32(e.Before), limit: int32(e.Limit),
		rule: uint8(max(rule, 0)), unit: uint8(max(unit, 0))}
	return one, rule >= 0 && unit >= 0 && int64(one.span) == e.To-e.From && int(one.messages) == e.Messages &&
		int(one.tokens) == e.Tokens && int(one.before) == e.Before && int(one.limit) == e.Limit
}

// isMicroUTC tells whether a time is what time.UnixMicro makes of its microseconds, in UTC.
func isMicroUTC(t time.Time) bool { return t.Nanosecond()%1000 == 0 && t.Location() == time.UTC }

// event is what was added.
func (v *packedEvents) event(one *packedEvent) Event {
	if one.rule == wholeEvent {
		return v.whole[one.from/chunkLen][one.from%chunkLen]
	}
	return Event{Kind: EventFlush, Turn: one.turn, From: one.from, To: one.from + int64(one.span),
		Messages: int(one.messages), Tokens: int(one.tokens), Rule: evictionRules()[one.rule],
		Before: int(one.before), Limit: int(one.limit), Unit: evictionUnits()[one.unit],
		Time: time.UnixMicro(one.micros).UTC()}
}

// snapshot is what was added by now, to be read while more is added.
func (v *packedEvents) snapshot() packedEvents {
	return packedEvents{short: slices.Clone(v.short), whole: slices.Clone(v.whole)} // pieces are added to behind their ends only
}
