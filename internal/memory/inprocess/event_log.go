package inprocess

import (
	"encoding/binary"
	"math"
	"math/bits"
	"slices"
	"time"

	"github.com/qtype-dev/qtype/internal/memory/prefix"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/spec"
)

// eventLog is the events of a session in an in-process store. A session of a
// policy with a window has one for nearly every message, and one for each call of a model: they
// are encoded, in about 20 and 40 bytes. Its arrays are only ever appended to: a copy is the
// log at that time.
type eventLog struct {
	encoded []byte        // evictions and calls; firstOther means the next of others
	others  []store.Event // the events that are not encoded
}

// Codes in place of a rule.
const (
	firstOther = 0      // an event that is not encoded
	sentEvent  = 1 << 7 // a call of a model
)

// add appends an event.
func (l *eventLog) add(e *store.Event) {
	if e.Kind == store.EventSent && l.addSent(e) {
		return
	}
	rule, unit := slices.Index(encodedRules[:], e.Rule), slices.Index(encodedUnits[:], e.Unit)
	sizes := [...]int64{e.Turn, e.From, e.To - e.From, int64(e.Messages), int64(e.Tokens), int64(e.Before), int64(e.Limit), e.Time.UnixMicro()}
	if e.Kind != store.EventFlush || rule <= firstOther || unit < 0 || e.Others != 0 || e.Rewound != 0 || e.By != 0 || e.Revised || e.Reason != "" || e.Call != nil || e.Time != time.UnixMicro(sizes[7]).UTC() {
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
		switch l.encoded[0] {
		case firstOther:
			e, l.encoded, l.others = l.others[0], l.encoded[1:], l.others[1:]
		case sentEvent:
			e = l.decodeSent()
		default:
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
	e := store.Event{Kind: store.EventFlush, Rule: rule, Unit: unit, Turn: l.next(), From: l.next()}
	e.To = e.From + l.next()
	e.Messages, e.Tokens, e.Before, e.Limit = int(l.next()), int(l.next()), int(l.next()), int(l.next())
	e.Time = time.UnixMicro(l.next()).UTC()
	return e
}

// next removes a number from the begin of the encoded events.
func (l *eventLog) next() int64 {
	n, size := binary.Varint(l.encoded)
	l.encoded = l.encoded[size:]
	return n
}

// addSent appends the event of a call, and reports whether it is encoded: its parts are numbers
// and the model.
func (l *eventLog) addSent(e *store.Event) bool { //nolint:cyclop // one case for each field of an event
	c, micros := e.Call, e.Time.UnixMicro()
	if c == nil || e.Rule != "" || e.Unit != "" || e.Before != 0 || e.Limit != 0 || e.Others != 0 ||
		e.Rewound != 0 || e.By != 0 || e.Revised || e.Reason != "" || e.Time != time.UnixMicro(micros).UTC() ||
		c.Omitted != "" || c.Shortened != "" || c.Imageless != "" || c.Context != nil {
		return false
	}
	b := l.encoded
	b = append(b, sentEvent)
	for _, n := range [...]int64{e.Turn, e.From, e.To - e.From, int64(e.Messages), int64(e.Tokens), micros, c.Seen} {
		b = binary.AppendVarint(b, n)
	}
	for _, n := range callNumbers(c) {
		b = binary.AppendVarint(b, int64(*n))
	}
	flags := byte(0)
	if c.Cut {
		flags |= cutFlag
	}
	if c.Suspected {
		flags |= suspectedFlag
	}
	b = append(b, flags)
	b = binary.AppendUvarint(b, bits.ReverseBytes64(math.Float64bits(c.Factor))) // short for numbers such as 1.5
	b = appendText(b, c.Model)
	b = binary.AppendVarint(b, int64(len(c.Prefix)))
	for i := range c.Prefix {
		p := &c.Prefix[i]
		for _, n := range prefixNumbers(p) {
			b = binary.AppendVarint(b, int64(*n))
		}
		b = binary.AppendVarint(b, p.Message)
		b = appendText(appendText(b, string(p.Reason)), string(p.Part))
	}
	l.encoded = b
	return true
}

func appendText(b []byte, text string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}

// text removes a text from the begin of the encoded events.
func (l *eventLog) text() string {
	n, size := binary.Uvarint(l.encoded)
	end := size + int(n)
	text := string(l.encoded[size:end])
	l.encoded = l.encoded[end:]
	return text
}

// prefixNumbers returns the numbers of a description of a prefix.
func prefixNumbers(p *store.Prefix) [4]*int { return [...]*int{&p.Call, &p.Bytes, &p.Tokens, &p.Lost} }

// The flags of an encoded call.
const (
	cutFlag       = 1 << iota // Call.Cut
	suspectedFlag             // Call.Suspected
)

// callNumbers returns the numbers of a call.
func callNumbers(c *store.Call) [12]*int {
	return [...]*int{&c.ContextWindow, &c.Answer, &c.Tools, &c.System, &c.Left, &c.Estimate, &c.Reported, &c.Rejected, &c.Repairs, &c.Calls, &c.Room, &c.Passages}
}

// decodeSent removes the first event, which addSent has encoded.
func (l *eventLog) decodeSent() store.Event {
	l.encoded = l.encoded[1:]
	c := &store.Call{}
	e := store.Event{Kind: store.EventSent, Turn: l.next(), From: l.next(), Call: c}
	e.To = e.From + l.next()
	e.Messages, e.Tokens, e.Time = int(l.next()), int(l.next()), time.UnixMicro(l.next()).UTC()
	c.Seen = l.next()
	for _, n := range callNumbers(c) {
		*n = int(l.next())
	}
	flags := l.encoded[0]
	c.Cut, c.Suspected, l.encoded = flags&cutFlag != 0, flags&suspectedFlag != 0, l.encoded[1:]
	factor, size := binary.Uvarint(l.encoded)
	l.encoded = l.encoded[size:]
	c.Factor = math.Float64frombits(bits.ReverseBytes64(factor))
	c.Model = l.text()
	if n := int(l.next()); n > 0 {
		c.Prefix = make([]store.Prefix, n)
	}
	for i := range c.Prefix {
		p := &c.Prefix[i]
		for _, n := range prefixNumbers(p) {
			*n = int(l.next())
		}
		p.Message = l.next()
		p.Reason, p.Part = prefix.Reason(l.text()), prefix.Kind(l.text())
	}
	return e
}
