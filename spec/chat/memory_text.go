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

// AsSent returns the message as a model receives it: its context is a block before the others.
func (m Message) AsSent() Message {
	if m.Context == "" {
		return m
	}
	blocks := make([]Block, 0, len(m.Blocks)+1)
	blocks = append(blocks, Block{Type: "text", Text: m.Context, MimeType: MemoryMimeType})
	m.Blocks, m.Context = append(blocks, m.Blocks...), ""
	return m
}
