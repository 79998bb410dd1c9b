// Package jsontext has what the readers and writers of JSON texts share.
package jsontext

import "math/bits"

// Each byte of a constant is one of a word of eight.
const (
	ones = 0x0101010101010101
	high = 0x8080808080808080
)

// Plain returns how many bytes at the start of a text are printable ASCII other than quotes and
// backslashes: they are the same in a JSON text. It looks at eight bytes at a time.
func Plain(s string) int {
	at := 0
	for ; len(s)-at >= 8; at += 8 {
		w := s[at : at+8]
		x := uint64(w[0]) | uint64(w[1])<<8 | uint64(w[2])<<16 | uint64(w[3])<<24 |
			uint64(w[4])<<32 | uint64(w[5])<<40 | uint64(w[6])<<48 | uint64(w[7])<<56
		quote, backslash, del := x^(ones*'"'), x^(ones*'\\'), x^(ones*0x7f)
		// A subtraction borrows only from the byte above a match, so the lowest match is
		// right.
		found := x | (x-ones*' ')&^x | (quote-ones)&^quote | (backslash-ones)&^backslash | (del-ones)&^del
		if found &= high; found != 0 {
			return at + bits.TrailingZeros64(found)/8
		}
	}
	for ; at < len(s); at++ {
		if c := s[at]; c < ' ' || c >= 0x7f || c == '"' || c == '\\' {
			break
		}
	}
	return at
}
