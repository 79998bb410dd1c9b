package memory

import (
	"encoding/hex"
	"math/rand/v2"

	"github.com/qtype-dev/qtype/spec/chat"
)

// entryArena gives out what a session's history keeps of a message, from chunks that
// are made beforehand: an append of its own makes nothing. Histories keep their
// entries as long as they live themselves, so a chunk is not kept for one of its
// entries alone. The zero value is ready.
type entryArena struct {
	entries []Entry      // not given out yet; all zero
	blocks  []chat.Block // likewise, one for each message that is a text and nothing else
	ids     string       // likewise, idLen letters each
	made    int          // entries of the newest chunk
}

const (
	firstChunk = 4 // messages: most sessions are short
	lastChunk  = 64
	idLen      = 32 // letters, as chat.NewID makes them
)

// entry is a fresh one.
func (s *entryArena) entry() *Entry {
	if len(s.entries) == 0 {
		s.made = min(max(2*s.made, firstChunk), lastChunk)
		s.entries = make([]Entry, s.made)
	}
	e := &s.entries[0]
	s.entries = s.entries[1:]
	return e
}

// text is a message's blocks: this text and nothing else.
func (s *entryArena) text(text string) []chat.Block {
	if len(s.blocks) == 0 {
		s.blocks = make([]chat.Block, max(s.made, firstChunk))
	}
	b := s.blocks[:1:1]
	s.blocks = s.blocks[1:]
	b[0] = chat.Block{Type: "text", Text: text}
	return b
}

// id is a fresh message id, of as many random bits as those of chat.NewID.
func (s *entryArena) id() string {
	if len(s.ids) == 0 {
		s.ids = randomIDs(max(s.made, firstChunk))
	}
	id := s.ids[:idLen]
	s.ids = s.ids[idLen:]
	return id
}

// randomIDs is n ids in one string.
func randomIDs(n int) string {
	var raw [lastChunk * idLen / 2]byte
	for i := 0; i < n*idLen/2; i += 8 {
		bits := rand.Uint64()
		for at := range 8 {
			raw[i+at] = byte(bits >> (8 * at))
		}
	}
	var letters [lastChunk * idLen]byte
	return string(letters[:hex.Encode(letters[:], raw[:n*idLen/2])])
}
