package chat

import "slices"

// MemoryMimeType is the MimeType of a text block that a memory inserts before a
// user's text: variables and earlier messages for the model. It is sent like any
// other text.
const MemoryMimeType = "text/x-remembered"

// TextWithoutMemory returns the text of a message without the blocks that a memory
// inserted.
func (m Message) TextWithoutMemory() string {
	remembered := func(b Block) bool { return b.MimeType == MemoryMimeType }
	if !slices.ContainsFunc(m.Blocks, remembered) {
		return m.Text()
	}
	m.Blocks = slices.DeleteFunc(slices.Clone(m.Blocks), remembered)
	return m.Text()
}
