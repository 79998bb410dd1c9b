package prefix

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"iter"
	"slices"
)

// kinds are the kinds of parts in their stored form. The order is fixed.
func kinds() []Kind {
	return []Kind{System, Context, Message, "pinned", "summary", "facts", "variables", "retrieval", "observations"}
}

// Encode returns parts as a text that a session keeps: without their content and their ids. position
// returns the position of a message that had none.
func Encode(parts []Part, position func(id string) int64) []byte {
	known := kinds()
	var short [shortBytes]byte
	raw := short[:0]
	last := int64(0)
	for i := range parts {
		p := &parts[i]
		kind := max(slices.Index(known, p.Kind), 0)
		raw = append(raw, byte(kind)<<4|byte(p.Form))
		seq := p.Seq
		if seq == 0 && p.ID != "" {
			seq = position(p.ID)
		}
		raw = binary.AppendVarint(raw, seq-last)
		raw = binary.AppendUvarint(raw, uint64(max(p.Bytes, 0)))
		raw = binary.AppendUvarint(raw, uint64(max(p.Tokens, 0)))
		raw = binary.BigEndian.AppendUint32(raw, p.sum)
		last = seq
	}
	return base64.RawStdEncoding.AppendEncode(nil, raw)
}

// partBytes is about how many bytes a stored part has.
const partBytes = 9

// shortBytes is the size of most stored requests, which need no memory of their own to be read.
const shortBytes = 512

var errDamaged = errors.New("the stored form of a request is damaged")

// Stored is a request as Encode wrote it.
type Stored []byte

// Decode returns the parts of the request.
func (s Stored) Decode() (parts []Part, err error) {
	parts = make([]Part, 0, len(s)*3/4/partBytes+1)
	for p, err := range s.all() {
		if err != nil {
			return nil, err
		}
		parts = append(parts, p)
	}
	return parts, nil
}

// Continued returns what a request has in common with the stored one, if it begins with the whole of that.
func (s Stored) Continued(now []Part) (shared Shared, whole bool) {
	for p, err := range s.all() {
		if err != nil || shared.Parts == len(now) || !p.equal(&now[shared.Parts]) {
			return shared, false
		}
		shared.add(&now[shared.Parts])
	}
	return shared, true
}

// all yields the parts of the request.
func (s Stored) all() iter.Seq2[Part, error] {
	return func(yield func(Part, error) bool) {
		known, last := kinds(), int64(0)
		var short [shortBytes]byte
		raw, err := base64.RawStdEncoding.AppendDecode(short[:0], s)
		for len(raw) > 0 && err == nil {
			var p Part
			if p, raw, err = decodePart(raw, last, known); err == nil && !yield(p, nil) {
				return
			}
			last = p.Seq
		}
		if err != nil {
			yield(Part{}, errDamaged)
		}
	}
}

// decodePart reads the first part of raw, and returns the rest. last is the position of the part before.
func decodePart(raw []byte, last int64, known []Kind) (p Part, rest []byte, err error) {
	kind, form := int(raw[0]>>4), Form(raw[0]&15)
	seq, n := binary.Varint(raw[1:])
	if n <= 0 || kind >= len(known) {
		return p, nil, errDamaged
	}
	raw = raw[1+n:]
	var sizes [2]uint64
	for i := range sizes {
		if sizes[i], n = binary.Uvarint(raw); n <= 0 {
			return p, nil, errDamaged
		}
		raw = raw[n:]
	}
	if len(raw) < 4 {
		return p, nil, errDamaged
	}
	p = Part{Kind: known[kind], Seq: last + seq, Form: form, Tokens: int(sizes[1])}
	p.Content = Content{Bytes: int(sizes[0]), sum: binary.BigEndian.Uint32(raw)}
	return p, raw[4:], nil
}
