package window

import (
	"bytes"

	"github.com/qtype-dev/qtype/internal/memory/prefix"
	"github.com/qtype-dev/qtype/memory/store"
	"github.com/qtype-dev/qtype/spec/chat"
)

// Contents finds the contents of messages that a view has computed once.
type Contents struct {
	entries  []*store.Entry
	contents []prefix.Content
}

// Contents returns the contents of the entries of the view.
func (v *View) Contents() Contents { return Contents{entries: v.Entries, contents: v.contents} }

// Of returns the content of an entry that is sent as m, with blocks. It is not found if the view does not have the
// entry, or m is another form of its message. Calls must be in the order of entries.
func (c *Contents) Of(e *store.Entry, m *chat.Message, blocks []chat.Block) (content prefix.Content, found bool) {
	if e == nil || e.Seq == 0 {
		return content, false
	}
	for len(c.entries) > 0 && c.entries[0].Seq < e.Seq {
		c.entries, c.contents = c.entries[1:], c.contents[1:]
	}
	if len(c.entries) == 0 || c.entries[0] != e || !isSame(&e.Message, m, blocks) {
		return content, false
	}
	return c.contents[0], true
}

// isSame reports whether m with blocks has the content of a message. Texts that were not copied are not read.
func isSame(message, m *chat.Message, blocks []chat.Block) bool {
	if len(blocks) != len(message.Blocks) || m.Role != message.Role || m.Name != message.Name || m.ToolCallID != message.ToolCallID {
		return false
	}
	for i := range blocks {
		a, b := &blocks[i], &message.Blocks[i]
		if a != b && (a.Type != b.Type || a.Text != b.Text || a.MimeType != b.MimeType || a.Call != b.Call || a.Item != b.Item || !bytes.Equal(a.Data, b.Data)) {
			return false
		}
	}
	return true
}
