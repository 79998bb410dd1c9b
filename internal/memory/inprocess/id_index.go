package inprocess

import (
	"hash/maphash"
	"slices"

	"github.com/qtype-dev/qtype/memory/store"
)

// maxHashed is the number of entries of a session whose ids are found by their hashes: four
// bytes for each, which are read from one place, while a map takes more than the ids. Most
// sessions of many are shorter.
const maxHashed = 1024

// idIndex finds the live entries of a session by the ids of their messages. It is built when it is
// first used; most sessions get messages with new ids only.
type idIndex struct {
	hashes []uint32         // of the ids of the first entries, 0 for those that failed; not used beyond maxHashed entries
	byID   map[string]int64 // Seq of the entries up to mapped; beyond maxHashed
	mapped int
}

// seed is that of all hashes of this process.
var seed = maphash.MakeSeed()

// hashOf returns the hash of an id, never 0.
func hashOf(id string) uint32 { return uint32(maphash.String(seed, id)) | 1 }

// find returns the position of the live entry with a message id, 0 for none. entries are the
// entries of the session, which only grow.
func (x *idIndex) find(entries []*store.Entry, id string) int64 {
	if len(entries) > maxHashed {
		return x.mappedTo(entries)[id]
	}
	for _, e := range entries[len(x.hashes):] {
		hash := uint32(0)
		if e.Status != store.Failed {
			hash = hashOf(e.Message.ID)
		}
		x.hashes = append(x.hashes, hash)
	}
	wanted := hashOf(id)
	for i, hash := range slices.Backward(x.hashes) {
		if hash == wanted && entries[i].Message.ID == id {
			return entries[i].Seq
		}
	}
	return 0
}

// mappedTo returns the map of all entries.
func (x *idIndex) mappedTo(entries []*store.Entry) map[string]int64 {
	if x.byID == nil {
		x.byID, x.hashes = make(map[string]int64, len(entries)), nil
	}
	for _, e := range entries[x.mapped:] {
		if e.Status != store.Failed {
			x.byID[e.Message.ID] = e.Seq
		}
	}
	x.mapped = len(entries)
	return x.byID
}
