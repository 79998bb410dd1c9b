//go:build !js

package tokenfile

import (
	"bytes"
	"encoding/binary"
	"errors"
)

// charsMap is the table of replacements that SentencePiece compiles: a trie of
// the texts that are replaced, followed by the replacements.
type charsMap struct {
	units        []uint32
	replacements []byte // each ends with a zero byte
}

func newCharsMap(data []byte) (*charsMap, error) {
	m := &charsMap{}
	if len(data) == 0 {
		return m, nil
	}
	if len(data) < 4 {
		return nil, errTruncatedMap
	}
	size := int64(binary.LittleEndian.Uint32(data))
	if size%4 != 0 || size > int64(len(data)-4) {
		return nil, errTruncatedMap
	}
	for i := int64(4); i < 4+size; i += 4 {
		m.units = append(m.units, binary.LittleEndian.Uint32(data[i:]))
	}
	m.replacements = data[4+size:]
	return m, nil
}

var errTruncatedMap = errors.New("the table of normalized characters is incomplete")

// The fields of a unit of the array.
func hasLeaf(unit uint32) bool  { return unit>>8&1 == 1 }
func label(unit uint32) uint32  { return unit & (1<<31 | 0xFF) }
func offset(unit uint32) uint32 { return (unit >> 10) << ((unit & (1 << 9)) >> 6) }

// walk calls found with the length and the replacement of each key that text begins
// with, the shortest first, until it returns false.
func (m *charsMap) walk(text string, found func(length int, index uint32) bool) {
	if len(m.units) == 0 {
		return
	}
	at := offset(m.units[0])
	for i := range len(text) {
		at ^= uint32(text[i])
		if int64(at) >= int64(len(m.units)) || label(m.units[at]) != uint32(text[i]) {
			return
		}
		unit := m.units[at]
		at ^= offset(unit)
		if int64(at) >= int64(len(m.units)) {
			return
		}
		if hasLeaf(unit) && !found(i+1, m.units[at]&(1<<31-1)) {
			return
		}
	}
}

// first returns the replacement of the shortest key that text begins with.
func (m *charsMap) first(text string) (to string, ok bool) {
	m.walk(text, func(_ int, index uint32) bool {
		to, ok = m.at(index), true
		return false
	})
	return to, ok
}

// longest returns the replacement of the longest key that text begins with, and its length.
func (m *charsMap) longest(text string) (to string, length int) {
	var last uint32
	m.walk(text, func(n int, index uint32) bool {
		length, last = n, index
		return true
	})
	if length > 0 {
		to = m.at(last)
	}
	return to, length
}

func (m *charsMap) at(index uint32) string {
	if int64(index) >= int64(len(m.replacements)) {
		return ""
	}
	text, _, _ := bytes.Cut(m.replacements[index:], []byte{0})
	return string(text)
}
