package memory

import (
	"slices"

	"github.com/qtype-dev/qtype/internal/memory/change"
	"github.com/qtype-dev/qtype/internal/memory/prefix"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/spec/chat"
)

// notePrefix notes the request of a call, and how much of it is the beginning of the request
// before: that of the former call of the turn or, for its first one, of the session.
func (t *Turn) notePrefix(isFirst bool, messages []chat.Message, sent []*store.Entry, context []store.ContextBlockReport) {
	n := t.call
	former := n.Parts
	n.Parts = t.memory.newParts(len(messages) + 2)
	*n.Parts = t.partsOf(*n.Parts, messages, sent, context)
	var before prefix.Parts
	if former != nil {
		defer t.memory.recycle(former)
		before = *former
	}
	if stored := prefix.Stored(t.base.Values[change.RequestValue]); isFirst && len(stored) > 0 {
		if shared, whole := stored.Continued(*n.Parts); whole {
			n.Call.Prefix = append(n.Call.Prefix, store.Prefix{Call: n.Call.Calls, Bytes: shared.Bytes, Tokens: shared.Tokens})
			return
		}
		before, _ = stored.Decode() // a damaged one is none
	}
	d := prefix.Compare(before, *n.Parts)
	if !isFirst && d.Reason == prefix.ContextLeft { // nothing of it has room any more
		d.Reason = prefix.ContextChanged
	}
	if len(before) == 0 || !isFirst && d.Reason == prefix.Appended {
		return
	}
	n.Call.Prefix = append(slices.Clip(n.Call.Prefix), store.Prefix{Call: n.Call.Calls, Bytes: d.Bytes, Tokens: d.Tokens,
		Lost: prefix.Sum(before[d.Parts:]), Reason: d.Reason, Part: d.Kind, Message: d.Seq})
	if d.Seq == 0 && d.ID != "" {
		n.Differs = append(slices.Clip(n.Differs), change.Differing{Index: len(n.Call.Prefix) - 1, ID: d.ID})
	}
}

// partsOf adds the parts of a request.
func (t *Turn) partsOf(parts prefix.Parts, messages []chat.Message, sent []*store.Entry, context []store.ContextBlockReport) prefix.Parts {
	known := t.base.Contents()
	newContext := 0 // tokens before the question
	for i := range context {
		if !context[i].Stable {
			newContext += context[i].Tokens
		}
	}
	for i := range messages {
		m := &messages[i]
		if m.Role == chat.System {
			parts = append(parts, t.systemParts(m, context)...)
			continue
		}
		var e *store.Entry
		if len(sent) > 0 && sent[0].Message.ID == m.ID { // others are results that Balance adds
			e, sent = sent[0], sent[1:]
		} else if at := slices.IndexFunc(sent, func(e *store.Entry) bool { return e.Message.ID == m.ID }); at >= 0 {
			e, sent = sent[at], sent[at+1:]
		}
		if content, found := known.Of(e, m); found {
			parts = append(parts, prefix.Part{Kind: prefix.Message, Seq: e.Seq, Tokens: e.Tokens, Content: content})
			continue
		}
		parts = t.addMessage(parts, m, e, newContext)
	}
	return parts
}

// systemParts returns the parts of the system message: what the step or a message supplies, and
// what context blocks add.
func (t *Turn) systemParts(m *chat.Message, context []store.ContextBlockReport) []prefix.Part {
	blocks, added := m.Blocks, []prefix.Part(nil)
	for i := range context {
		if c := &context[i]; c.Stable && c.Text != "" {
			added = append(added, prefix.OfText(prefix.Kind(c.Block), c.Text, c.Tokens))
		}
	}
	if len(added) > 0 {
		blocks = blocks[:len(blocks)-1] // the last one has the texts of context blocks
	}
	if len(blocks) == 0 {
		return added
	}
	own := prefix.Of(prefix.System, m, blocks)
	own.ID, own.Tokens = "", t.call.Call.System
	return append([]prefix.Part{own}, added...)
}

// addMessage adds the parts of a message: its context, and the message. e is nil for a message that is
// not part of the session.
func (t *Turn) addMessage(parts []prefix.Part, m *chat.Message, e *store.Entry, newContext int) []prefix.Part {
	first, blocks := len(parts), m.Blocks
	if len(blocks) > 0 && blocks[0].MimeType == chat.MemoryMimeType {
		parts, blocks = append(parts, prefix.Of(prefix.Context, m, blocks[:1])), blocks[1:]
	}
	parts = append(parts, prefix.Of(prefix.Message, m, blocks))
	added := parts[first:]
	own := &added[len(added)-1]
	if e == nil {
		const bytesOfToken = 4
		own.Tokens = own.Bytes / bytesOfToken
		return parts
	}
	own.Tokens, own.Form = e.Tokens, t.formOf(e)
	if len(added) > 1 {
		before := &added[0]
		if e.Message.Context == "" {
			before.Tokens = newContext
		} else { // it was counted with the message
			before.Tokens = e.Tokens * before.Bytes / max(before.Bytes+own.Bytes, 1)
			own.Tokens -= before.Tokens
		}
	}
	for i := range added {
		added[i].Seq = e.Seq
	}
	return parts
}

// formOf returns the form in which the call sends a message.
func (t *Turn) formOf(e *store.Entry) prefix.Form {
	switch {
	case slices.Contains(t.call.Shortened, e):
		return prefix.Shortened
	case slices.Contains(t.call.Plain, e):
		return prefix.Imageless
	}
	return prefix.Whole
}
