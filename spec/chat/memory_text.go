package chat

import "slices"

// MemoryMimeType is the MimeType of a text that a memory put before what a user
// said: values and earlier messages that the model should know. It is sent like
// any other text.
const MemoryMimeType = "text/x-remembered"

// TextWithoutMemory is the text of a message without what a memory put before it.
func (m Message) TextWithoutMemory() string {
	remembered := func(b Block) bool { return b.MimeType == MemoryMimeType }
	if !slices.ContainsFunc(m.Blocks, remembered) {
		return m.Text()
	}
	m.Blocks = slices.DeleteFunc(slices.Clone(m.Blocks), remembered)
	return m.Text()
}
