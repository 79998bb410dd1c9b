package inprocess

import (
	"encoding/binary"
	"slices"
	"time"

	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/spec"
)

// eventLog is the events of a session in an in-process store. A session of a
// policy with a window has one for nearly every message, so those of evictions are
// encoded, in about 20 bytes. Its arrays are only ever appended to: a copy is the
// log at that time.
type eventLog struct {
	encoded []byte        // evictions; firstOther means the next of others
	others  []store.Event // the events that are not encoded
}

// firstOther is the code in place of a rule for an event that is not encoded.
const firstOther = 0

// add appends an event.
func (l *eventLog) add(e *store.Event) {
	rule, unit := slices.Index(encodedRules[:], e.Rule), slices.Index(encodedUnits[:], e.Unit)
	sizes := [...]int64{e.Turn, e.From, e.To - e.From, int64(e.Messages), int64(e.Tokens), int64(e.Before), int64(e.Limit), e.Time.UnixMicro()}
	if e.Kind != store.EventFlush || rule <= firstOther || unit < 0 || e.Rewound != 0 || e.By != 0 || e.Revised || e.Reason != "" || e.Call != nil || e.Time != time.UnixMicro(sizes[7]).UTC() {
		l.encoded, l.others = append(l.encoded, firstOther), append(l.others, *e)
		return
	}
	l.encoded = append(l.encoded, byte(rule), byte(unit))
	for _, n := range sizes {
		l.encoded = binary.AppendVarint(l.encoded, n)
	}
}

// encodedRules and encodedUnits are the rules and units of encoded events by their codes.
var (
	encodedRules = [...]spec.Policy{firstOther: "", 1: spec.PolicyFlush, 2: spec.PolicyMessageWindow, 3: spec.PolicyTokenWindow, 4: spec.PolicyRoundWindow}
	encodedUnits = [...]store.Unit{store.InTokens, store.InMessages, store.InCharacters, store.InRounds}
)

// all yields the events in order.
func (l eventLog) all(yield func(store.Event) bool) {
	for len(l.encoded) > 0 {
		var e store.Event
		if l.encoded[0] == firstOther {
			e, l.encoded, l.others = l.others[0], l.encoded[1:], l.others[1:]
		} else {
			e = l.decode()
		}
		if !yield(e) {
			return
		}
	}
}

// decode removes the first event, which is encoded.
func (l *eventLog) decode() store.Event {
	rule, unit := encodedRules[l.encoded[0]], encodedUnits[l.encoded[1]]
	l.encoded = l.encoded[2:]
	next := func() int64 {
		n, size := binary.Varint(l.encoded)
		l.encoded = l.encoded[size:]
		return n
	}
	e := store.Event{Kind: store.EventFlush, Rule: rule, Unit: unit, Turn: next(), From: next()}
	e.To = e.From + next()
	e.Messages, e.Tokens, e.Before, e.Limit = int(next()), int(next()), int(next()), int(next())
	e.Time = time.UnixMicro(next()).UTC()
	return e
}
