package wire

import (
	"slices"

	"github.com/qtype-dev/qtype/model"
	"github.com/qtype-dev/qtype/spec/chat"
)

// hasItems reports whether a message has items.
func hasItems(m *chat.Message) bool {
	return slices.ContainsFunc(m.Blocks, func(b chat.Block) bool { return b.Item != nil })
}

// ForOrigin returns messages as they can be sent to an origin: without the items of other origins
// and without reasoning that has no item. What another model has said before its answer is text.
// Approvals of its provider's calls are left out. Blocks of the types of models, other than calls, have items in the result.
func ForOrigin(messages []chat.Message, to *chat.Origin) []chat.Message {
	messages = withoutApprovals(messages, to)
	out := messages
	for i := range messages {
		m := &messages[i]
		own := m.Origin.SentTo(to)
		if !own && (m.Origin != nil || hasItems(m)) || hasPortable(m) {
			if &out[0] == &messages[0] {
				out = slices.Clone(messages)
			}
			out[i] = portable(*m, own)
		}
	}
	return out
}

// hasPortable reports whether a message has reasoning or commentary without an item.
func hasPortable(m *chat.Message) bool {
	for i := range m.Blocks { // a copy of each block costs more than the comparison
		if b := &m.Blocks[i]; b.Item == nil && b.Call == nil && b.IsModels() {
			return true
		}
	}
	return false
}

// portable returns a message without reasoning and commentary that cannot be sent as they are.
func portable(m chat.Message, own bool) chat.Message {
	if !own {
		m = m.WithoutItems()
	}
	blocks := make([]chat.Block, 0, len(m.Blocks))
	for _, b := range m.Blocks {
		switch {
		case b.Item != nil:
		case b.Type == chat.CommentaryType:
			b.Type = "text"
		case b.Type == chat.ReasoningType, b.Type == chat.ItemType:
			continue
		}
		blocks = append(blocks, b)
	}
	m.Blocks = blocks
	return m
}

// withoutApprovals returns messages without the calls by which other providers asked for approvals, and
// without their results.
func withoutApprovals(messages []chat.Message, to *chat.Origin) []chat.Message {
	foreign := map[string]bool{} // the ids of the calls
	for i := range messages {
		for j := range messages[i].Blocks {
			if b := &messages[i].Blocks[j]; b.Call != nil && isApproval(*b) && !messages[i].Origin.SentTo(to) {
				foreign[b.Call.ID] = true
			}
		}
	}
	if len(foreign) == 0 {
		return messages
	}
	out := make([]chat.Message, 0, len(messages))
	for _, m := range messages {
		if m.ToolCallID != "" && foreign[m.ToolCallID] {
			continue
		}
		if !slices.ContainsFunc(m.Blocks, isApproval) || m.Origin.SentTo(to) {
			out = append(out, m)
			continue
		}
		m.Blocks = slices.DeleteFunc(slices.Clone(m.Blocks), isApproval)
		isSaid := func(b chat.Block) bool { return b.Type != chat.ReasoningType && b.Type != chat.ItemType }
		if slices.ContainsFunc(m.Blocks, isSaid) {
			out = append(out, m)
		}
	}
	return out
}

// isApproval reports whether a block is a call by which a provider asks for an approval.
func isApproval(b chat.Block) bool {
	return b.Call != nil && b.Item != nil && b.Item.Field == model.ApprovalRequest
}

// TurnStart returns the index of the first message of the current turn: the one after the last
// message of the user. Items of the turn's own messages must be sent back.
func TurnStart(messages []chat.Message) int {
	for i := len(messages) - 1; i >= 0; i-- {
		if NormalizeRole(messages[i].Role) == chat.User {
			return i + 1
		}
	}
	return 0
}
