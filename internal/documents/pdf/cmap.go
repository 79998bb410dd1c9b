package pdf

import (
	"strings"

	xencoding "golang.org/x/text/encoding"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"
)

// cmap maps codes to Unicode, or to glyphs.
type cmap struct {
	spaces []codeSpace
	text   map[uint32]string // codes with the length of the code in the upper byte
	ranges []codeRange
	glyphs []glyphRange // of the CMap of an encoding
}

// glyphRange maps successive codes to successive glyphs.
type glyphRange struct {
	low, high uint32
	length    int
	first     uint32
}

type codeSpace struct {
	low, high uint32
	length    int
}

// codeRange maps successive codes to successive characters.
type codeRange struct {
	low, high uint32
	length    int
	start     []rune
}

// maxMappings is the maximum number of mappings of a font.
const maxMappings = 200_000

// parseCMap reads a ToUnicode map, or the CMap of an encoding.
func parseCMap(data []byte) *cmap {
	m := &cmap{text: map[uint32]string{}}
	l := &lexer{data: data}
	for !l.end() {
		switch l.next() {
		case keyword("begincodespacerange"):
			m.codeSpaces(l)
		case keyword("beginbfchar"):
			m.chars(l)
		case keyword("beginbfrange"):
			m.bfRanges(l)
		case keyword("begincidchar"):
			m.glyphRanges(l, false)
		case keyword("begincidrange"):
			m.glyphRanges(l, true)
		}
	}
	return m
}

func (m *cmap) codeSpaces(l *lexer) {
	for len(m.spaces) < 100 {
		low, ok := l.next().(text)
		high, ok2 := l.next().(text)
		if !ok || !ok2 {
			return
		}
		m.spaces = append(m.spaces, codeSpace{codeOf(low), codeOf(high), len(low)})
	}
}

func (m *cmap) chars(l *lexer) {
	for {
		code, ok := l.next().(text)
		if !ok {
			return
		}
		if value, ok := l.next().(text); ok {
			m.set(codeOf(code), len(code), decodeUTF16(string(value)))
		}
	}
}

func (m *cmap) set(code uint32, length int, value string) {
	if len(m.text) < maxMappings && len(value) < 256 {
		m.text[code|uint32(length)<<24] = value
	}
}

func (m *cmap) bfRanges(l *lexer) {
	for {
		low, ok := l.next().(text)
		high, ok2 := l.next().(text)
		if !ok || !ok2 {
			return
		}
		switch value := l.next().(type) {
		case text:
			if start := []rune(decodeUTF16(string(value))); len(start) > 0 && len(start) < 64 && len(m.ranges) < maxMappings {
				m.ranges = append(m.ranges, codeRange{codeOf(low), codeOf(high), len(low), start})
			}
		case array:
			for i, o := range value {
				if s, ok := o.(text); ok && codeOf(low)+uint32(i) <= codeOf(high) {
					m.set(codeOf(low)+uint32(i), len(low), decodeUTF16(string(s)))
				}
			}
		}
	}
}

// glyphRanges reads ranges of codes, or codes, with the first glyph.
func (m *cmap) glyphRanges(l *lexer, isRange bool) {
	for len(m.glyphs) < maxMappings {
		low, ok := l.next().(text)
		high := low
		if isRange && ok {
			high, ok = l.next().(text)
		}
		first, ok2 := l.next().(float64)
		if !ok || !ok2 || first < 0 {
			return
		}
		m.glyphs = append(m.glyphs, glyphRange{codeOf(low), codeOf(high), len(low), uint32(first)})
	}
}

// glyph returns the glyph of a code; the code itself if there is none.
func (m *cmap) glyph(code uint32, length int) uint32 {
	for _, r := range m.glyphs {
		if code >= r.low && code <= r.high && length == r.length {
			return r.first + code - r.low
		}
	}
	return code
}

func codeOf(t text) uint32 {
	var n uint32
	for i := range min(len(t), 4) {
		n = n<<8 | uint32(t[i])
	}
	return n & 0xffffff
}

// lookup returns the text of a code.
func (m *cmap) lookup(code uint32, length int) (string, bool) {
	if s, ok := m.text[code|uint32(length)<<24]; ok {
		return s, true
	}
	for _, r := range m.ranges {
		if code >= r.low && code <= r.high && length == r.length {
			out := append([]rune(nil), r.start...)
			out[len(out)-1] += rune(code - r.low)
			s := string(out)
			m.set(code, length, s) // so that few lookups search the ranges
			return s, true
		}
	}
	return "", false
}

// charsetOf returns the charset of a predefined CMap with codes of a legacy charset, and
// whether its codes are UTF-16; nil and false for other CMaps.
func charsetOf(cmapName string) (enc xencoding.Encoding, utf16 bool) {
	switch {
	case strings.Contains(cmapName, "UTF16"), strings.Contains(cmapName, "UCS2"):
		return nil, true
	case strings.HasPrefix(cmapName, "90ms"), strings.HasPrefix(cmapName, "90pv"), strings.HasPrefix(cmapName, "83pv"):
		return japanese.ShiftJIS, false
	case strings.HasPrefix(cmapName, "EUC-"):
		return japanese.EUCJP, false
	case strings.HasPrefix(cmapName, "GB"):
		return simplifiedchinese.GB18030, false
	case strings.HasPrefix(cmapName, "KSC"):
		return korean.EUCKR, false
	case strings.HasPrefix(cmapName, "ETen"), strings.HasPrefix(cmapName, "B5"), strings.HasPrefix(cmapName, "HKscs"):
		return traditionalchinese.Big5, false
	}
	return nil, false
}
