package checkpoint

import "encoding/binary"

// reader reads the parts of an encoding. After a missing part bad is true, and everything
// later is empty.
type reader struct {
	text []byte
	bad  bool
}

// next reads n bytes; it returns nil if there are fewer.
func (r *reader) next(n int) []byte {
	if n > len(r.text) {
		r.fail()
		return nil
	}
	b := r.text[:n:n]
	r.text = r.text[n:]
	return b
}

func (r *reader) fail() { r.text, r.bad = nil, true }

func (r *reader) byte() byte {
	if b := r.next(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *reader) varint() int64 { return number(r, binary.Varint) }

func (r *reader) uvarint() uint64 { return number(r, binary.Uvarint) }

// number reads a number with a function of package binary.
func number[T int64 | uint64](r *reader, decode func([]byte) (T, int)) T {
	v, n := decode(r.text)
	if n <= 0 {
		r.fail()
		return 0
	}
	r.next(n)
	return v
}

// length reads the number of bytes or items that follow. It is at most the
// number of bytes left, so a damaged length does not allocate much.
func (r *reader) length() int {
	v := r.uvarint()
	if v > uint64(len(r.text)) {
		r.fail()
		return 0
	}
	return int(v)
}

func (r *reader) bytes() []byte { return r.next(r.length()) }

func (r *reader) string() string { return string(r.bytes()) }
