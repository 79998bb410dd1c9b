package tokenizer

import (
	"sync"
	"unicode"
	"unicode/utf8"
)

// A class is a set of the character sets of the splitting patterns, 0 for other
// characters such as punctuation, symbols and control characters.
type class uint8

const (
	upper   class = 1 << iota // \p{Lu} \p{Lt}; \p{Lm} and \p{Lo} are upper and lower
	lower                     // \p{Ll}
	mark                      // \p{M}
	number                    // \p{N}
	blank                     // \s, which is White_Space
	newline                   // \r and \n, which are blank as well

	letter = upper | lower           // \p{L}
	word   = letter | number | blank // the complement of [^\s\p{L}\p{N}]
)

const (
	pageSize = 256 // characters per page
	lastPage = unicode.MaxRune / pageSize
)

// classes maps characters to classes in two stages, because most pages are equal.
type classes struct {
	ascii [utf8.RuneSelf]class
	page  [lastPage + 1]uint16 // index into pages, by character / pageSize
	pages [][pageSize]class
}

// unicodeClasses builds the table once.
var unicodeClasses = sync.OnceValue(newClasses)

func newClasses() *classes {
	all := make([]class, unicode.MaxRune+1)
	for _, set := range []struct {
		table *unicode.RangeTable
		class class
	}{
		{unicode.Lu, upper},
		{unicode.Lt, upper},
		{unicode.Ll, lower},
		{unicode.Lm, letter},
		{unicode.Lo, letter},
		{unicode.M, mark},
		{unicode.N, number},
		{unicode.White_Space, blank},
	} {
		assign(all, set.table, set.class)
	}
	all['\r'] |= newline
	all['\n'] |= newline

	c := &classes{}
	copy(c.ascii[:], all)
	seen := map[[pageSize]class]uint16{}
	for i := range c.page {
		page := [pageSize]class(all[i*pageSize:])
		at, ok := seen[page]
		if !ok {
			at = uint16(len(c.pages))
			seen[page] = at
			c.pages = append(c.pages, page)
		}
		c.page[i] = at
	}
	return c
}

// assign sets the class of all characters of a Unicode table.
func assign(all []class, table *unicode.RangeTable, to class) {
	for _, r := range table.R16 {
		for char := uint32(r.Lo); char <= uint32(r.Hi); char += uint32(r.Stride) {
			all[char] = to
		}
	}
	for _, r := range table.R32 {
		for char := r.Lo; char <= r.Hi; char += r.Stride {
			all[char] = to
		}
	}
}

// at returns the class of the character at text[i:] and its length in bytes.
func (c *classes) at(text string, i int) (class, int) {
	if b := text[i]; b < utf8.RuneSelf {
		return c.ascii[b], 1
	}
	return c.wide(text[i:])
}

// wide is at for a character that is not ASCII.
func (c *classes) wide(text string) (class, int) {
	char, size := utf8.DecodeRuneInString(text)
	return c.pages[c.page[char/pageSize]][char%pageSize], size
}

// run returns the end of the run of characters at text[i:] that have any bit
// of the set.
func (c *classes) run(text string, i int, set class) int {
	for i < len(text) {
		is, size := c.at(text, i)
		if is&set == 0 {
			break
		}
		i += size
	}
	return i
}

// runOthers returns the end of the run of [^\s\p{L}\p{N}] at text[i:].
func (c *classes) runOthers(text string, i int) int {
	for i < len(text) {
		is, size := c.at(text, i)
		if is&word != 0 {
			break
		}
		i += size
	}
	return i
}
