package memory

import (
	"slices"

	"github.com/qtype-dev/qtype/spec/chat"
)

// repairs returns how many changes chat.Balance makes to the messages of a call, and the
// tokens of the results that it adds: stores may have sessions of other programs, or of
// older versions, in which calls have no results or results no call.
func repairs(c Counter, entries []*Entry) (changes, tokens int) {
	if !slices.ContainsFunc(entries, isToolUse) {
		return 0, 0
	}
	msgs := make([]chat.Message, len(entries))
	for i, e := range entries {
		msgs[i] = e.Message
	}
	balanced, changes := chat.Balance(msgs)
	if changes == 0 {
		return 0, 0
	}
	for i := range balanced {
		if balanced[i].Text() == chat.MissingResult {
			tokens += tokensOf(c, &balanced[i])
		}
	}
	return changes, tokens
}
