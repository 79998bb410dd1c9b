package pdf

import (
	"strconv"
	"strings"
	"sync"

	xencoding "golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"
	"golang.org/x/text/unicode/norm"
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

// encoding maps the codes of a simple font to text; empty text is unknown.
type encoding [256]string

// winAnsi returns the character of a code of WinAnsiEncoding.
func winAnsi(code byte) string { return charText(charmap.Windows1252.DecodeByte(code)) }

func charText(r rune) string {
	if r == '\uFFFD' || r < ' ' || r >= 0x7f && r < 0xa0 {
		return ""
	}
	return string(r)
}

// baseEncoding returns an encoding of the format by its name; the standard one for
// other names.
func baseEncoding(n name) encoding {
	var e encoding
	for code := range 256 {
		switch n {
		case "WinAnsiEncoding":
			e[code] = winAnsi(byte(code))
		case "MacRomanEncoding":
			e[code] = charText(charmap.Macintosh.DecodeByte(byte(code)))
		default:
			if code >= ' ' && code < 0x7f {
				e[code] = string(rune(code))
			}
		}
	}
	if n != "WinAnsiEncoding" && n != "MacRomanEncoding" {
		e['\''], e['`'] = "’", "‘"
		for code, r := range []rune("¡¢£⁄¥ƒ§¤'“«‹›ﬁﬂ\x00–†‡·\x00¶•‚„”»…‰\x00¿\x00`´ˆ˜¯˘˙¨\x00˚¸\x00˝˛ˇ—") {
			if r != 0 {
				e[0xa1+code] = string(r) //nolint:gosec // the list ends at 0xd0
			}
		}
		for code, r := range map[int]string{0xe1: "Æ", 0xe3: "ª", 0xe8: "Ł", 0xe9: "Ø", 0xea: "Œ", 0xeb: "º", 0xf1: "æ", 0xf5: "ı", 0xf8: "ł", 0xf9: "ø", 0xfa: "œ", 0xfb: "ß"} {
			e[code] = r
		}
	}
	return e
}

// glyphNames are the names of glyphs that are not composed of a letter and an accent,
// nor letters themselves (Adobe Glyph List).
const glyphNames = `space  |exclam !|quotedbl "|numbersign #|dollar $|percent %|ampersand &|quotesingle '|quoteright ’|parenleft (|parenright )|asterisk *|plus +|comma ,|hyphen -|minus −|period .|slash /|` +
	`zero 0|one 1|two 2|three 3|four 4|five 5|six 6|seven 7|eight 8|nine 9|colon :|semicolon ;|less <|equal =|greater >|question ?|at @|bracketleft [|backslash \|bracketright ]|asciicircum ^|underscore _|` +
	"quoteleft ‘|grave `|braceleft {|bar ¦|braceright }|asciitilde ~|exclamdown ¡|cent ¢|sterling £|fraction ⁄|yen ¥|florin ƒ|section §|currency ¤|quotedblleft “|guillemotleft «|guilsinglleft ‹|guilsinglright ›|" +
	`ff ff|fi fi|fl fl|ffi ffi|ffl ffl|f_f ff|f_i fi|f_l fl|f_f_i ffi|f_f_l ffl|st st|c_t ct|s_t st|t_t tt|T_h Th|endash –|dagger †|daggerdbl ‡|periodcentered ·|paragraph ¶|bullet •|quotesinglbase ‚|quotedblbase „|quotedblright ”|guillemotright »|` +
	`ellipsis …|perthousand ‰|questiondown ¿|acute ´|circumflex ˆ|tilde ˜|macron ¯|breve ˘|dotaccent ˙|dieresis ¨|ring ˚|cedilla ¸|hungarumlaut ˝|ogonek ˛|caron ˇ|emdash —|AE Æ|ordfeminine ª|Lslash Ł|Oslash Ø|OE Œ|ordmasculine º|` +
	`ae æ|dotlessi ı|dotlessj ȷ|lslash ł|oslash ø|oe œ|germandbls ß|Thorn Þ|thorn þ|Eth Ð|eth ð|Dcroat Đ|dcroat đ|Hbar Ħ|hbar ħ|Eng Ŋ|eng ŋ|Euro €|copyright ©|registered ®|trademark ™|degree °|plusminus ±|multiply ×|divide ÷|logicalnot ¬|mu µ|` +
	`onesuperior ¹|twosuperior ²|threesuperior ³|onequarter ¼|onehalf ½|threequarters ¾|brokenbar ¦|nbspace  |sfthyphen -|Alpha Α|Beta Β|Gamma Γ|Delta Δ|Epsilon Ε|Zeta Ζ|Eta Η|Theta Θ|Iota Ι|Kappa Κ|Lambda Λ|Mu Μ|Nu Ν|Xi Ξ|Omicron Ο|Pi Π|` +
	`Rho Ρ|Sigma Σ|Tau Τ|Upsilon Υ|Phi Φ|Chi Χ|Psi Ψ|Omega Ω|alpha α|beta β|gamma γ|delta δ|epsilon ε|epsilon1 ε|zeta ζ|eta η|theta θ|theta1 ϑ|iota ι|kappa κ|lambda λ|nu ν|xi ξ|omicron ο|pi π|rho ρ|rho1 ϱ|sigma σ|sigma1 ς|tau τ|upsilon υ|phi φ|phi1 ϕ|chi χ|` +
	`psi ψ|omega ω|partialdiff ∂|product ∏|summation ∑|radical √|infinity ∞|integral ∫|approxequal ≈|notequal ≠|lessequal ≤|greaterequal ≥|lozenge ◊|arrowleft ←|arrowright →|arrowup ↑|arrowdown ↓|arrowdblright ⇒|element ∈|intersection ∩|union ∪|` +
	`logicaland ∧|logicalor ∨|universal ∀|existential ∃|emptyset ∅|similar ∼|equivalence ≡|gradient ∇|propersubset ⊂|propersuperset ⊃|asteriskmath ∗|minute ′|second ″|circle ○|filledbox ■|checkmark ✓|afii61352 №`

// accents are the combining characters of the accents in names of glyphs.
const accents = "acute \u0301|grave \u0300|circumflex \u0302|dieresis \u0308|tilde \u0303|cedilla \u0327|ring \u030a|caron \u030c|macron \u0304|breve \u0306|ogonek \u0328|hungarumlaut \u030b|dotaccent \u0307|commaaccent \u0326"

// pairs parses a list of names and texts.
func pairs(list string) map[string]string {
	m := map[string]string{}
	for entry := range strings.SplitSeq(list, "|") {
		if key, value, ok := strings.Cut(entry, " "); ok {
			m[key] = value
		}
	}
	m["bar"], m["brokenbar"] = "|", "¦"
	return m
}

var (
	glyphTable  = sync.OnceValue(func() map[string]string { return pairs(glyphNames) })
	accentTable = sync.OnceValue(func() map[string]string { return pairs(accents) })
)

// glyphText returns the text of a glyph by its name, empty if it is unknown.
func glyphText(glyph string) string {
	if value, ok := glyphTable()[glyph]; ok {
		return value
	}
	base, _, _ := strings.Cut(glyph, ".") // "a.alt"
	if base != glyph && base != "" {
		return glyphText(base)
	}
	if len(glyph) <= 1 {
		return glyph
	}
	if digits, ok := strings.CutPrefix(glyph, "uni"); ok && len(digits) >= 4 && len(digits)%4 == 0 && len(digits) <= 32 {
		var b strings.Builder
		for ; len(digits) > 0; digits = digits[4:] {
			n, err := strconv.ParseUint(digits[:4], 16, 16)
			if err != nil {
				return ""
			}
			b.WriteRune(rune(n))
		}
		return b.String()
	}
	if digits, ok := strings.CutPrefix(glyph, "u"); ok && len(digits) >= 4 && len(digits) <= 6 {
		if n, err := strconv.ParseUint(digits, 16, 32); err == nil {
			return string(rune(n))
		}
	}
	if len(glyph) < 20 && glyph[0] < 0x80 {
		if accent, ok := accentTable()[glyph[1:]]; ok {
			return norm.NFC.String(glyph[:1] + accent)
		}
	}
	return numberedGlyph(glyph)
}

// numberedGlyph returns the text of a name that pdfTeX writes for bitmap fonts: "a" and
// the code in TeX's encodings, which are ASCII with ligatures below.
func numberedGlyph(glyph string) string {
	code, err := strconv.Atoi(strings.TrimPrefix(glyph, "a"))
	if glyph[0] != 'a' || err != nil || code > 255 {
		return ""
	}
	return texText(code)
}

// texText returns the text of a code in TeX's encodings.
func texText(code int) string {
	ligatures := []string{"ff", "fi", "fl", "ffi", "ffl"}
	switch {
	case code >= 27 && code <= 31:
		return ligatures[code-27] //nolint:gosec // below 5
	case code >= 11 && code <= 15:
		return ligatures[code-11] //nolint:gosec // below 5
	case code == 21:
		return "–"
	case code == 22:
		return "—"
	case code == 16:
		return "“"
	case code == 17:
		return "”"
	case code >= ' ' && code < 0x7f:
		return string(rune(code))
	case code == 0x88: // of its encoding of symbols
		return "•"
	case code == 0xff:
		return "ß"
	case code == 0xd7:
		return "Œ"
	case code == 0xf7:
		return "œ"
	case code >= 0xc0:
		return charText(charmap.ISO8859_1.DecodeByte(byte(code)))
	}
	return ""
}
