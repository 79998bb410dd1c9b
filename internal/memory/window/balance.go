package window

import (
	"slices"

	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/spec/chat"
)

// Repairs returns how many changes chat.Balance makes to the messages of a call, and the
// tokens of the results that it adds: stores may have sessions of other programs, or of
// older versions, in which calls have no results or results no call. ok is false if the
// turn, whose entries begin at own, adds a result without a call: that is an error of the
// caller, and is sent as it is.
func Repairs(c Counter, entries []*store.Entry, own int) (changes, tokens int, ok bool) {
	msgs := make([]chat.Message, len(entries))
	for i, e := range entries {
		msgs[i] = e.Message
	}
	balanced, changes := chat.Balance(msgs)
	if changes == 0 {
		return 0, 0, true
	}
	for _, e := range entries[min(own, len(entries)):] {
		if !slices.ContainsFunc(balanced, func(m chat.Message) bool { return m.ID == e.Message.ID }) {
			return 0, 0, false
		}
	}
	for i := range balanced {
		if balanced[i].Text() == chat.MissingResult {
			tokens += TokensOf(c, &balanced[i])
		}
	}
	return changes, tokens, true
}
