package journal

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
)

// The form of the file (docs/runs.md):
//
//	"qtype journal 1\n"
//	frames: length of the payload, CRC-32C of the payload (4 bytes each, little
//	endian), payload
//	payload: kind, body
//
// The body of a header and of a session is JSON or empty; that of results is
// the row (or the group: the leg and 16 bytes), a flag byte, the number of
// results, and the results.
const (
	magic     = "qtype journal 1\n"
	frameHead = 8       // bytes before the payload
	maxFrame  = 1 << 30 // a longer payload is no payload
)

// The kinds of frames.
const (
	kindHeader  byte = 'H' // the first frame: what the run is of
	kindSession byte = 'S' // another process went on from here
	kindResults byte = 'R' // what became of a row
	kindGroup   byte = 'G' // what became of a row that was made of others
)

// The bits of a frame's flag byte: the row is finished with it, and one of its
// results failed. A result's own flag byte has the second.
const (
	flagLast   byte = 1
	flagFailed byte = 2
)

// The kinds of values.
const (
	tagNil byte = iota
	tagText
	tagInt
	tagFloat
	tagFalse
	tagTrue
	tagBytes
	tagJSON
)

// castagnoli is the polynomial that processors know.
func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

// frame is a whole frame.
func frame(kind byte, body []byte) []byte {
	b := append(make([]byte, frameHead, frameHead+1+len(body)), kind)
	b = append(b, body...)
	seal(b)
	return b
}

// seal fills in the head of a frame whose payload is there.
func seal(b []byte) {
	payload := b[frameHead:]
	binary.LittleEndian.PutUint32(b, uint32(len(payload))) // maxFrame bounds it
	binary.LittleEndian.PutUint32(b[4:], crc32.Checksum(payload, castagnoli()))
}

// appendRow begins the payload of a frame of results of a row.
func appendRow(b []byte, row int64) []byte {
	return binary.AppendVarint(append(b, kindResults), row)
}

// appendGroup begins the payload of a frame of results of a group.
func appendGroup(b []byte, g BatchKey) []byte {
	return append(binary.AppendUvarint(append(b, kindGroup), uint64(g.Leg)), g.Digest[:]...)
}

// appendResults adds the results to the payload that begins at start.
func appendResults(b []byte, start int, results []Result, last bool) ([]byte, error) {
	flags := byte(0)
	if last {
		flags = flagLast
	}
	for i := range results {
		if results[i].Failure != nil {
			flags |= flagFailed
		}
	}
	b = append(b, flags)
	b = binary.AppendUvarint(b, uint64(len(results)))
	for i := range results {
		var err error
		if b, err = appendResult(b, &results[i]); err != nil {
			return b, err
		}
	}
	if len(b)-start > maxFrame {
		return b, errors.New("a row's results are longer than a journal holds")
	}
	return b, nil
}

func appendResult(b []byte, r *Result) ([]byte, error) {
	if f := r.Failure; f != nil {
		b = append(b, flagFailed)
		for _, s := range []string{f.Step, f.Code, f.Message} {
			b = appendText(b, s)
		}
	} else {
		b = append(b, 0)
	}
	b = binary.AppendUvarint(b, uint64(len(r.Values)))
	for _, v := range r.Values {
		switch v := v.(type) {
		case nil:
			b = append(b, tagNil)
		case string:
			b = appendText(append(b, tagText), v)
		case int64:
			b = binary.AppendVarint(append(b, tagInt), v)
		case int:
			b = binary.AppendVarint(append(b, tagInt), int64(v))
		case float64:
			b = binary.LittleEndian.AppendUint64(append(b, tagFloat), math.Float64bits(v))
		case bool:
			tag := tagFalse
			if v {
				tag = tagTrue
			}
			b = append(b, tag)
		case []byte:
			b = appendText(append(b, tagBytes), v)
		case json.RawMessage:
			b = appendText(append(b, tagJSON), v)
		default:
			return b, fmt.Errorf("a value of a kind that a journal does not hold (%T)", v)
		}
	}
	return b, nil
}

func appendText[T string | []byte | json.RawMessage](b []byte, s T) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// errDamaged says that a frame does not hold what its sum says it does.
var errDamaged = errors.New("the journal is damaged")

// body reads the parts of a payload; what is missing is remembered in bad.
type body struct {
	b   []byte
	bad bool
}

func (p *body) byte() byte {
	if len(p.b) == 0 {
		p.bad = true
		return 0
	}
	c := p.b[0]
	p.b = p.b[1:]
	return c
}

func (p *body) varint() int64 {
	v, n := binary.Varint(p.b)
	p.skip(n)
	return v
}

func (p *body) uvarint() uint64 {
	v, n := binary.Uvarint(p.b)
	p.skip(n)
	return v
}

func (p *body) skip(n int) {
	if n <= 0 || n > len(p.b) {
		p.bad, p.b = true, nil
		return
	}
	p.b = p.b[n:]
}

func (p *body) bytes(n uint64) []byte {
	if n > uint64(len(p.b)) {
		p.bad, p.b = true, nil
		return nil
	}
	s := p.b[:n]
	p.b = p.b[n:]
	return s
}

func (p *body) text() string { return string(p.bytes(p.uvarint())) }

// head reads what stands before the results of a row.
func (p *body) head() (row int64, flags byte) {
	row = p.varint()
	return row, p.byte()
}

// group reads what stands before the results of a group.
func (p *body) group() (g BatchKey, flags byte) {
	g.Leg = int(p.uvarint() & 0x7fffffff)
	copy(g.Digest[:], p.bytes(uint64(len(g.Digest))))
	return g, p.byte()
}

// results reads the results behind the head.
func (p *body) results() ([]Result, error) {
	n := p.uvarint()
	var all []Result
	for range n {
		if p.bad {
			break
		}
		all = append(all, p.result())
	}
	if p.bad || len(p.b) > 0 {
		return nil, errDamaged
	}
	return all, nil
}

func (p *body) result() Result {
	var r Result
	if p.byte()&flagFailed != 0 {
		r.Failure = &Failure{Step: p.text(), Code: p.text(), Message: p.text()}
	}
	n := p.uvarint()
	for range n {
		if p.bad {
			break
		}
		r.Values = append(r.Values, p.value())
	}
	return r
}

func (p *body) value() any {
	switch p.byte() {
	case tagNil:
		return nil
	case tagText:
		return p.text()
	case tagInt:
		return p.varint()
	case tagFloat:
		if b := p.bytes(8); b != nil {
			return math.Float64frombits(binary.LittleEndian.Uint64(b))
		}
	case tagFalse:
		return false
	case tagTrue:
		return true
	case tagBytes:
		return append([]byte(nil), p.bytes(p.uvarint())...)
	case tagJSON:
		return json.RawMessage(append([]byte(nil), p.bytes(p.uvarint())...))
	}
	p.bad = true
	return nil
}
