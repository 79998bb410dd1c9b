package window

import (
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

// Of returns the content of an entry whose message is sent as m. It is not found if the view does not have the
// entry, or other blocks are sent. Calls must be in the order of entries.
func (c *Contents) Of(e *store.Entry, m *chat.Message) (content prefix.Content, found bool) {
	if e == nil || e.Seq == 0 {
		return content, false
	}
	for len(c.entries) > 0 && c.entries[0].Seq < e.Seq {
		c.entries, c.contents = c.entries[1:], c.contents[1:]
	}
	own := e.Message.Blocks
	if len(c.entries) == 0 || c.entries[0] != e || len(own) == 0 || len(own) != len(m.Blocks) || &own[0] != &m.Blocks[0] {
		return content, false
	}
	return c.contents[0], true
}
