package index

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"math"
	"strings"
)

// Hash returns the hash of what an index stores of an entry: its text, document and metadata, its vector
// if it has one, and the identity of the model that the vectors of the index are made with; empty for an
// index without vectors. Two entries with one id and equal hashes need not be written again, see
// IsUnchanged. The identity follows the hash, so that a search learns it from what stores return. It fails
// for metadata that JSON cannot represent.
func Hash(e Entry, model string) (string, error) {
	metadata, err := json.Marshal(e.Metadata) // sorts the keys
	if err != nil {
		return "", fmt.Errorf("the metadata cannot be stored: %w", err)
	}
	h := sha256.New()
	for _, part := range []string{"1", model, e.Document, e.Text, string(metadata)} {
		writePart(h, part)
	}
	vector := make([]byte, 0, 4*len(e.Vector))
	for _, x := range e.Vector {
		vector = binary.LittleEndian.AppendUint32(vector, math.Float32bits(x))
	}
	writePart(h, string(vector))
	sum := hex.EncodeToString(h.Sum(nil)[:16])
	if model != "" {
		sum += modelMark + model
	}
	return sum, nil
}

// modelMark is between a hash and the identity of the model.
const modelMark = "@"

// IsUnchanged reports whether a stored hash is that of an entry. Earlier versions stored it without the model,
// which is a part of what is hashed.
func IsUnchanged(stored, hash string) bool {
	sum, _, _ := strings.Cut(hash, modelMark)
	return stored == hash || stored == sum
}

// modelOf returns the identity of the model in a hash; empty for unknown.
func modelOf(hash string) string {
	_, model, _ := strings.Cut(hash, modelMark)
	return model
}

// writePart adds a part with its length, so that parts cannot be confused.
func writePart(h hash.Hash, part string) {
	var length [8]byte
	binary.LittleEndian.PutUint64(length[:], uint64(len(part)))
	_, _ = h.Write(length[:]) // a hash never fails
	_, _ = h.Write([]byte(part))
}
