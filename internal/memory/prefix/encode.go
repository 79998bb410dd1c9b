package prefix

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"slices"
)

// kinds are the kinds of parts in their stored form. The order is fixed.
func kinds() []Kind {
	return []Kind{System, Context, Message, "pinned", "summary", "facts", "variables", "retrieval"}
}

// Encode returns parts as a text that a session keeps: without their content and their ids. added has
// the positions of messages that had none, by their ids; nil for none.
func Encode(parts []Part, added map[string]int64) []byte {
	known := kinds()
	raw := make([]byte, 0, len(parts)*partBytes)
	last := int64(0)
	for i := range parts {
		p := &parts[i]
		kind := max(slices.Index(known, p.Kind), 0)
		raw = append(raw, byte(kind)<<4|byte(p.Form))
		seq := p.Seq
		if seq == 0 && p.ID != "" {
			seq = added[p.ID]
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

var errDamaged = errors.New("the stored form of a request is damaged")

// Decode reads what Encode wrote.
func Decode(text []byte) ([]Part, error) {
	raw, err := base64.RawStdEncoding.AppendDecode(nil, text)
	if err != nil {
		return nil, errDamaged
	}
	known := kinds()
	parts := make([]Part, 0, len(raw)/partBytes+1)
	last := int64(0)
	for len(raw) > 0 {
		kind, form := int(raw[0]>>4), Form(raw[0]&15)
		raw = raw[1:]
		seq, n := binary.Varint(raw)
		if n <= 0 || kind >= len(known) {
			return nil, errDamaged
		}
		raw = raw[n:]
		var sizes [2]uint64
		for i := range sizes {
			if sizes[i], n = binary.Uvarint(raw); n <= 0 {
				return nil, errDamaged
			}
			raw = raw[n:]
		}
		if len(raw) < 4 {
			return nil, errDamaged
		}
		last += seq
		parts = append(parts, Part{Kind: known[kind], Seq: last, Form: form, Bytes: int(sizes[0]), Tokens: int(sizes[1]), sum: binary.BigEndian.Uint32(raw)})
		raw = raw[4:]
	}
	return parts, nil
}
